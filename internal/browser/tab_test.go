package browser_test

import (
	"net/http"
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

// The clock belongs to all tabs: it must outlive the one that it was set in.
func TestClockOutlivesTheFirstTab(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>first</title><a id=a href="/second" target=_blank>open</a>`)
	s.Page("/second", `<title>second</title><output id=log></output><script>let n=0;setInterval(()=>n++,100)</script>`)
	s.Go("/")
	s.OK(`click(selector="#a"); tab_focus(0); tab_close()`)
	if o := s.See(browser.View{}); o.Title != "second" || len(o.Tabs) != 1 {
		t.Fatalf("title %q, tabs %+v", o.Title, o.Tabs)
	}
	before, ticks := value(t, s, "Date.now()"), value(t, s, "n")
	if again := value(t, s, "n"); again != ticks {
		t.Fatalf("the page goes on by itself: %s, %s", ticks, again)
	}
	s.OK("noop(1000)")
	if got := value(t, s, "(Date.now()-"+before+")+'/'+(n-"+ticks+")"); got != "1000/10" {
		t.Fatalf("in 1000 ms the page saw %s", got)
	}
	if got := value(t, s, "new Intl.DateTimeFormat().resolvedOptions().timeZone+' '+new Intl.NumberFormat().resolvedOptions().locale"); got != "UTC en-US" {
		t.Fatalf("time zone and language are %s", got)
	}
	s.OK("tab_close()")
	if o := s.See(browser.View{}); len(o.Tabs) != 1 || o.URL != "about:blank" {
		t.Fatalf("closing the last tab leaves %+v", o.Tabs)
	}
	s.OK(`goto("` + s.URL + `/second")`)
}

// A frame that may not load is nothing that the agent has done.
func TestFrameThatMayNotLoad(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>x</title><a id=a href="/ads">go</a>`)
	s.Page("/ads", `<title>ads</title><iframe src="http://localhost:1/"></iframe><iframe src="data:text/html,<p>inline</p>"></iframe>`)
	s.Go("/")
	s.OK(`click(selector="#a")`)
	if o := s.See(browser.View{}); o.Title != "ads" {
		t.Fatalf("title %q", o.Title)
	}
}

// A link in a new tab that leads to a file or to nothing does not hold the step up.
func TestNewTabThatShowsNothing(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=report.csv")
		_, _ = w.Write([]byte("a,b\n"))
	})
	s.Mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s.Page("/", `<title>first</title><a id=file href="/file" target=_blank>file</a> <a id=empty href="/empty" target=_blank>empty</a>`)
	for _, id := range []string{"file", "empty"} {
		s.Go("/")
		out := s.OK(`click(selector="#` + id + `")`)
		if out.Settle.Capped {
			t.Errorf("%s: the step was held up: %+v", id, out)
		}

		s.OK(`tab_close()`)
	}
}
