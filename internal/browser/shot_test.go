package browser_test

import (
	"testing"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

func TestScreenshotAtScale2(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t, func(c *browser.Config) { c.Scale = 2 })
	s.Page("/", `<button style="position:absolute;left:180px;top:180px;width:60px;height:60px" onclick="log.value+='hit '"></button><output id=log></output>`)
	s.Go("/")
	if got := value(t, s, "[devicePixelRatio,innerWidth,innerHeight]"); got != "2,1280,720" {
		t.Fatalf("the page has %s", got)
	}
	shot := s.See(browser.View{Screenshot: "png"}).Screenshot
	if shot == nil || shot.Width != 2560 || shot.Height != 1440 || shot.Scale != 2 {
		t.Fatalf("shot %+v", shot)
	}
	s.OK("mouse_click(210, 210)")
	wantLog(t, s, "hit ")
}
