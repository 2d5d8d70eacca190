package browser_test

import (
	"testing"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

// value reads an expression in the page.
func value(t testing.TB, s *browsertest.Site, expr string) string {
	t.Helper()
	var v string
	if err := s.EvalPage(browsertest.Context(t), "String("+expr+")", &v); err != nil {
		t.Fatalf("read %s: %v", expr, err)
	}
	return v
}

func wantLog(t testing.TB, s *browsertest.Site, want string) {
	t.Helper()
	if got := value(t, s, "document.getElementById('log').value"); got != want {
		t.Fatalf("log is %q, want %q", got, want)
	}
}

func TestClickBasic(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>t</title><button id=a onclick="log.value+='a '+event.isTrusted+' '">A</button><output id=log></output>`)
	s.Go("/")
	s.OK(`click(selector="#a")`)
	wantLog(t, s, "a true ")
	o := s.See(browser.View{Elements: true})
	t.Log(o.Text, o.URL, o.Tabs, o.VirtualTimeMS)
	s.Fails(action.NotFound, `click(selector="#nope")`)
}

// run changes something in the page.
func run(t testing.TB, s *browsertest.Site, expr string) {
	t.Helper()
	if err := s.EvalPage(browsertest.Context(t), expr, nil); err != nil {
		t.Fatalf("run %s: %v", expr, err)
	}
}
