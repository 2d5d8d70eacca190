package browser_test

import (
	"testing"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

func TestWindowOpenedLate(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>first</title><button id=w onclick="const x=window.open('about:blank');setTimeout(()=>x.location='/second',700)">late</button><output id=log></output>`)
	s.Page("/second", `<title>second</title><h1>here</h1><button id=back onclick="opener.document.getElementById('log').value+='back ';window.close()">back</button>`)
	s.Go("/")
	out := s.OK(`click(selector="#w")`)
	o := s.See(browser.View{})
	if o.Title != "second" || len(o.Tabs) != 2 || !o.Tabs[1].Active {
		t.Fatalf("title %q, tabs %+v, outcome %+v", o.Title, o.Tabs, out)
	}
	s.OK(`click(selector="#back")`)
	if o := s.See(browser.View{}); o.Title != "first" || len(o.Tabs) != 1 {
		t.Fatalf("title %q, tabs %+v", o.Title, o.Tabs)
	}
	wantLog(t, s, "back ")
}
