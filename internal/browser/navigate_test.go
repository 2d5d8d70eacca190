package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
	"github.com/pommelgym/pommel/internal/fault"
)

func TestGotoAndHistory(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	for _, p := range []string{"one", "two", "three"} {
		s.Page("/"+p, "<title>"+p+"</title><h1>"+p+"</h1>")
	}
	s.Mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	at := func(want string) {
		t.Helper()
		if o := s.See(browser.View{}); o.Title != want || o.URL != s.URL+"/"+want {
			t.Fatalf("the page is %q at %s, want %s", o.Title, o.URL, want)
		}
	}
	if err := s.ClearState(browsertest.Context(t)); err != nil {
		t.Fatal(err)
	}
	s.Go("/one")
	s.Fails(action.NavigationError, "go_back()")
	s.OK(`goto("/two"); goto("three")`)
	at("three")
	s.OK("go_back(); go_back()")
	at("one")
	s.OK("go_forward()")
	at("two")
	s.OK(`goto("/none")`)
	at("two")
	s.Fails(action.InvalidValue, `goto("http://[")`)
}

func TestPlacesThatAreNotAllowed(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.FormValue("to"), http.StatusFound) })
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	urls := []string{
		"file:///etc/passwd", "view-source:" + s.URL, "chrome://version", "data:text/html,out", "javascript:document.title='js'", "blob:" + s.URL + "/x",
		"http://127.0.0.1:1/", "http://localhost:" + port + "/", "http://[::1]:" + port + "/", "http://2130706433:" + port + "/x", "http://0.0.0.0:" + port + "/",
		"http://169.254.169.254/latest/", "https://outside.example/", "ftp://127.0.0.1/",
	}
	links := "<title>in</title><main>in</main>"
	for i, u := range urls {
		links += fmt.Sprintf(`<a id=l%d href="%s">link</a> <a id=t%d target=_blank href="%s">tab</a> <br>`, i, u, i, u)
	}
	s.Page("/", links+`<a id=r href="/redirect?to=http://127.0.0.1:1/">redirect</a><button id=w onclick="window.open('http://localhost:1/')">w</button><form action="http://localhost:1/" method=post><button id=f>f</button></form>`)
	s.Go("/")
	in := func(after string) {
		t.Helper()
		if o := s.See(browser.View{}); o.Title != "in" || o.URL != s.URL+"/" || len(o.Tabs) != 1 {
			t.Fatalf("after %s the page is %q at %s with %d tabs", after, o.Title, o.URL, len(o.Tabs))
		}
	}
	for i, u := range urls {
		host := strings.HasPrefix(u, "http://2130706433") // the browser reads it as 127.0.0.1
		out := s.Do("goto(" + action.Quote(u) + ")")
		if out.Err == nil || out.Err.Kind != action.BlockedURL {
			t.Errorf("goto(%s): %v", u, out.Err)
		}
		if host || strings.HasPrefix(u, "javascript:") {
			continue
		}
		in("goto " + u)
		for _, sel := range []string{"#l", "#t"} {
			s.Do(fmt.Sprintf(`click(selector="%s%d")`, sel, i))
			in("clicking " + u)
		}
	}
	for _, sel := range []string{"#r", "#w", "#f"} {
		s.Fails(action.BlockedURL, "click(selector="+action.Quote(sel)+")")
		in(sel)
	}
}

func TestStateIsCleared(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>x</title>`)
	s.Go("/")
	const look = `(async()=>[document.cookie,localStorage.length,sessionStorage.length,(await caches.keys()).length,(await indexedDB.databases()).length,name,history.length].join('/'))().then(x=>window.seen=x)`
	run(t, s, "document.cookie='k=1;max-age=9999';localStorage.k=1;sessionStorage.k=1;name='k';history.pushState({},'')")
	run(t, s, "caches.open('k').then(()=>{indexedDB.open('k').onsuccess=()=>{filled=true}});filled=false")
	for range 200 { // they are done by other processes, of which virtual time knows nothing
		if s.OK("noop(10)"); value(t, s, "filled") == "true" {
			break
		}
	}
	ctx := browsertest.Context(t)
	if err := s.ClearState(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.SetEpisode(ctx, 1, time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.SetCookies(ctx, []browser.Cookie{{Name: "s", Value: "v", URL: s.URL}}); err != nil {
		t.Fatal(err)
	}
	s.Go("/")
	run(t, s, look+";window.seen=''")
	for range 200 {
		if s.OK("noop(10)"); value(t, s, "seen") != "" {
			break
		}
	}
	if got := value(t, s, "seen"); got != "s=v/0/0/0/0//2" {
		t.Fatalf("the new episode has %s", got)
	}
	if got := value(t, s, "new Date().toISOString().slice(0,10)"); got != "2023-11-14" {
		t.Fatalf("the page's day is %s", got)
	}
}

func TestServerThatIsGoneIsAFault(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	err := s.Navigate(browsertest.Context(t), "http://127.0.0.1:1/")
	if fault.KindOf(err) != fault.WorldLost {
		t.Fatalf("err %v", err)
	}
	s.Page("/", `<title>ok</title>`)
	s.Go("/")
	if o := s.See(browser.View{}); o.Title != "ok" {
		t.Fatalf("observation %+v", o)
	}
	// The clock must have survived the change of renderers.
	before := value(t, s, "Date.now()")
	if at := value(t, s, "new Date().toISOString()"); !strings.HasPrefix(at, "2025-03-10T09:00:0") {
		t.Fatalf("the page's clock shows %s", at)
	}
	s.OK("noop(1000)")
	if d := value(t, s, "Date.now()-"+before); d != "1000" {
		t.Fatalf("the page's clock went on by %s", d)
	}
}

// A document whose world has not got our script yet is waited for.
func TestADocumentThatHasNotBegun(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>t</title><p>text</p>`)
	s.Go("/")
	ctx := browsertest.Context(t)
	bare := `void (() => {const kept = P; let asked = 0; Object.defineProperty(globalThis, 'P', {get() { if (++asked < 3) throw new ReferenceError('P is not defined'); return kept; }})})()`
	if err := s.EvalAgent(ctx, bare, nil); err != nil {
		t.Fatal(err)
	}
	var title string
	if err := s.EvalAgent(ctx, "P.observe && document.title", &title); err != nil || title != "t" {
		t.Errorf("the document said %q, %v", title, err)
	}
}
