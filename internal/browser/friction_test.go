package browser_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

// friction gives fates by path.
type friction struct {
	patterns []browser.Pattern
	fates    map[string]browser.Fate
	changes  func(browser.Shown) []browser.Change
	asked    atomic.Int32
}

func (f *friction) Patterns() []browser.Pattern { return f.patterns }
func (f *friction) Request(r browser.Request) browser.Fate {
	f.asked.Add(1)
	for path, fate := range f.fates {
		if strings.Contains(r.URL, path) {
			return fate
		}
	}
	return browser.Fate{}
}
func (f *friction) Shown(s browser.Shown) []browser.Change {
	if f.changes == nil {
		return nil
	}
	return f.changes(s)
}

const frictionPage = `<!doctype html><title>start</title><button id=b>go</button><output id=o></output><a id=next href=/next>next</a>
<form method=post action=/post><button id=send>send</button></form><script>
const t0 = () => performance.now();
b.onclick = async () => { const s = t0(); o.textContent = 'asked';
  try { const r = await fetch('/data'); o.textContent = r.status + ' ' + await r.text() + ' after ' + Math.round(t0() - s); }
  catch (e) { o.textContent = e.name + ' after ' + Math.round(t0() - s); } };
</script>`

// site is a page whose requests a Friction decides about, and a count of what reached the server.
func frictionSite(t *testing.T, f *friction) (*browsertest.Site, *atomic.Int32) {
	t.Helper()
	s := browsertest.NewSite(t)
	var served atomic.Int32
	s.Page("/start", frictionPage)
	s.Page("/next", "<!doctype html><title>next</title><p>arrived</p>")
	s.Mux.HandleFunc("/data", func(w http.ResponseWriter, _ *http.Request) { served.Add(1); fmt.Fprint(w, "data") })
	s.Mux.HandleFunc("/post", func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		fmt.Fprint(w, "<title>posted</title>posted")
	})
	s.Go("/start")
	if err := s.SetEpisode(browsertest.Context(t), 1, time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.Go("/start")
	if f.patterns == nil {
		f.patterns = []browser.Pattern{{URL: "*", Type: "document"}, {URL: "*", Type: "fetch"}}
	}
	if err := s.SetFriction(browsertest.Context(t), f); err != nil {
		t.Fatal(err)
	}
	return s, &served
}

func act(t *testing.T, s *browsertest.Site, text string) browser.Outcome {
	t.Helper()
	calls, err := action.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Browser.Do(browsertest.Context(t), calls)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func see(t *testing.T, s *browsertest.Site) *browser.Observation {
	t.Helper()
	o, err := s.Browser.Observe(browsertest.Context(t), browser.View{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// after matches a time of at least ms, up to two more: clocks show whole milliseconds.
func after(ms int) string { return fmt.Sprintf("after (%d|%d|%d)\\b", ms, ms+1, ms+2) }

func wantMatch(t *testing.T, s *browsertest.Site, want string) {
	t.Helper()
	if o := see(t, s); !regexp.MustCompile(want).MatchString(o.Text) {
		t.Errorf("the page does not show %q:\n%s", want, o.Text)
	}
}

func wantText(t *testing.T, s *browsertest.Site, want string) {
	t.Helper()
	if o := see(t, s); !strings.Contains(o.Text, want) {
		t.Errorf("the page does not show %q:\n%s", want, o.Text)
	}
}

// TestHeldFetch: a script's request is held in virtual time: within the horizon the step
// waits for it, beyond it the page is seen waiting. No wall time goes by.
func TestHeldFetch(t *testing.T) {
	t.Parallel()
	s, _ := frictionSite(t, &friction{fates: map[string]browser.Fate{"/data": {Hold: 700 * time.Millisecond}}})
	act(t, s, "click(selector='#b')")
	wantMatch(t, s, "200 data "+after(700))

	f := &friction{patterns: []browser.Pattern{{URL: "*/data", Type: "fetch"}}, fates: map[string]browser.Fate{"/data": {Hold: 5 * time.Minute}}}
	if err := s.SetFriction(browsertest.Context(t), f); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	act(t, s, "click(selector='#b')")
	wantText(t, s, "asked")
	for range 40 {
		act(t, s, "wait(ms=10000)")
	}
	wantMatch(t, s, "200 data "+after(300000))
	if took := time.Since(begin); took > 40*time.Second {
		t.Errorf("five virtual minutes took %v", took)
	}
}

// TestHeldDocument: a step waits for a document however long it is held.
func TestHeldDocument(t *testing.T) {
	t.Parallel()
	s, _ := frictionSite(t, &friction{fates: map[string]browser.Fate{"/next": {Hold: 8 * time.Second}}})
	before := see(t, s).VirtualTimeMS
	act(t, s, "click(selector='#next')")
	o := see(t, s)
	if o.Title != "next" || o.VirtualTimeMS-before < 8000 || o.VirtualTimeMS-before > 10000 {
		t.Errorf("after %v ms the page is %q", o.VirtualTimeMS-before, o.Title)
	}
	act(t, s, "go_back()")
	wantText(t, s, "button")
}

// TestFates: errors, resets and changed answers; what the server saw of them.
func TestFates(t *testing.T) {
	t.Parallel()
	lost := func(browser.Answer) (*browser.Answer, string) { return nil, "ConnectionReset" }
	cut := func(a browser.Answer) (*browser.Answer, string) { a.Body = a.Body[:2]; return &a, "" }
	for name, c := range map[string]struct {
		path string
		fate browser.Fate
		do   string
		want string
		// served is how many requests reached the server.
		served int32
	}{
		"error":      {"/data", browser.Fate{Answer: &browser.Answer{Status: 503, Body: []byte("busy")}}, "click(selector='#b')", "503 busy", 0},
		"reset":      {"/data", browser.Fate{Fail: "ConnectionReset"}, "click(selector='#b')", "TypeError after", 0},
		"timeout":    {"/data", browser.Fate{Hold: 900 * time.Millisecond, Fail: "TimedOut"}, "click(selector='#b')", "TypeError " + after(900), 0},
		"lost reply": {"/data", browser.Fate{Rewrite: lost}, "click(selector='#b')", "TypeError after", 1},
		"truncated":  {"/data", browser.Fate{Rewrite: cut}, "click(selector='#b')", "200 da after", 1},
		"form":       {"/post", browser.Fate{Answer: &browser.Answer{Status: 502, Headers: [][2]string{{"Content-Type", "text/html"}}, Body: []byte("<h1>Bad gateway</h1>")}}, "click(selector='#send')", "Bad gateway", 0},
		"form lost":  {"/post", browser.Fate{Rewrite: lost}, "click(selector='#send')", "site can’t be reached[^$]*ERR_CONNECTION_RESET[^$]*Reload", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, served := frictionSite(t, &friction{fates: map[string]browser.Fate{c.path: c.fate}})
			act(t, s, c.do)
			wantMatch(t, s, c.want)
			if got := served.Load(); got != c.served {
				t.Errorf("%d requests reached the server, want %d", got, c.served)
			}
		})
	}
}

// oneFailure lets the first request of a page fail.
type oneFailure struct {
	friction
	had atomic.Bool
}

func (f *oneFailure) Request(r browser.Request) browser.Fate {
	if strings.HasSuffix(r.URL, "/next") && !f.had.Swap(true) {
		return browser.Fate{Hold: 3 * time.Second, Fail: "TimedOut"}
	}
	return browser.Fate{}
}

// TestUnreachable: a document that failed is told of at its own address, can be loaded again,
// and the page before it can be gone back to; no renderer is ended for it.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	f := &oneFailure{friction: friction{patterns: []browser.Pattern{{URL: "*", Type: "document"}}}}
	s, _ := frictionSite(t, &f.friction)
	if err := s.SetFriction(browsertest.Context(t), f); err != nil {
		t.Fatal(err)
	}
	act(t, s, "click(selector='#next')")
	wantText(t, s, "127.0.0.1 took too long to respond.")
	wantText(t, s, "ERR_TIMED_OUT")
	if o := see(t, s); !strings.HasSuffix(o.URL, "/next") {
		t.Errorf("the address is %s", o.URL)
	}
	act(t, s, `click(selector="role=button[name='Reload']")`)
	wantText(t, s, "arrived")
	act(t, s, "go_back()")
	wantText(t, s, "button 'go'")
}

// TestChangesToDocuments: each document is shown once; scripts and windows change.
func TestChangesToDocuments(t *testing.T) {
	t.Parallel()
	var shown []string
	f := &friction{changes: func(d browser.Shown) []browser.Change {
		shown = append(shown, d.URL[strings.LastIndexByte(d.URL, '/'):])
		return []browser.Change{{Script: "setTimeout(() => document.body.append('late words ' + innerWidth), 300)", Width: 900, Height: 600, Scheme: "dark"}}
	}}
	s, _ := frictionSite(t, f)
	wantText(t, s, "late words 900")
	act(t, s, "noop()")
	act(t, s, "click(selector='#next')")
	wantText(t, s, "late words 900")
	if got := strings.Join(shown, " "); got != "/start /next" {
		t.Errorf("shown were %s", got)
	}
}

// TestUntouchedRequests: what no pattern chooses is not asked about.
func TestUntouchedRequests(t *testing.T) {
	t.Parallel()
	f := &friction{patterns: []browser.Pattern{{URL: "*/elsewhere*", Type: "document"}}}
	s, _ := frictionSite(t, f)
	act(t, s, "click(selector='#b')")
	wantText(t, s, "200 data after 0")
	if n := f.asked.Load(); n != 0 {
		t.Errorf("%d requests were asked about", n)
	}
}

// TestHeldRequestOfALeftPage: a request that was held when its page went away holds up nothing.
func TestHeldRequestOfALeftPage(t *testing.T) {
	t.Parallel()
	s, served := frictionSite(t, &friction{fates: map[string]browser.Fate{"/data": {Hold: time.Hour}}})
	act(t, s, "click(selector='#b')")
	wantText(t, s, "asked")
	act(t, s, "click(selector='#next')")
	wantText(t, s, "arrived")
	act(t, s, "go_back()")
	act(t, s, "noop()")
	if n := served.Load(); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
}
