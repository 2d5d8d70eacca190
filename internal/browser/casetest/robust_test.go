package casetest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

// crash kills the renderer of the tab in front.
func (w *world) crash() {
	for _, pid := range w.proc.Renderers() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			w.t.Logf("kill renderer: %v", err)
		}
	}
}

// A tab that dies ends the pending call, is told apart, and the next page works.
func TestDeathOfATab(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c06_not_there.html")
	calls, err := action.Parse(`noop(60000)`)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan browser.Outcome, 1)
	go func() {
		out, err := w.b.Do(w.ctx(), calls)
		if err != nil {
			out = browser.Outcome{Err: &action.Error{Kind: action.PageCrashed, Message: err.Error()}}
		}
		done <- out
	}()
	w.crash()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the call did not end with the tab")
	}
	calls, err = action.Parse(`click(selector="#ok")`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.b.Do(w.ctx(), calls)
	var f *fault.Error
	if lost := errors.As(err, &f) && f.Kind == fault.WorldLost; !lost && (out.Err == nil || out.Err.Kind != action.PageCrashed) {
		t.Errorf("want page_crashed or world_lost, got %v, %v", out.Err, err)
	}
	w.load("/c06_not_there.html")
	w.ok(`click(selector="#ok")`)
	w.logged("ok ")
}

// A browser that dies is a fault of the infrastructure, at once.
func TestDeathOfTheBrowser(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c06_not_there.html")
	w.proc.Kill()
	began := time.Now()
	_, err := w.b.Observe(w.ctx(), browser.View{})
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.WorldLost {
		t.Errorf("want world_lost, got %v", err)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("it took %v to notice", d)
	}
	if err := w.b.Close(); err != nil {
		t.Logf("close: %v", err)
	}
}

// No page and no agent gets to files, other ports, other spellings of them or the browser's own pages.
func TestOutOfBounds(t *testing.T) {
	t.Parallel()
	w := open(t)
	port := w.site.secret.URL[strings.LastIndex(w.site.secret.URL, ":")+1:]
	secret := "http://127.0.0.1:" + port
	w.load("/c44_out_of_bounds.html")
	start := w.value("location.href")
	w.raw("", fmt.Sprintf("fetch('%s/',{mode:'no-cors'}).then(()=>log.value+='fetch ').catch(()=>0);"+
		"try{new WebSocket('ws://127.0.0.1:%s/').onopen=()=>log.value+='ws '}catch(e){};"+
		"const i=new Image;i.onload=()=>log.value+='img ';i.src='%s/x.png';"+
		"navigator.sendBeacon('%s/beacon');1", secret, port, secret, secret), nil)
	urls := []string{
		"file:///etc/passwd", "view-source:file:///etc/passwd", "chrome://version", "data:text/html,<h1>out</h1>",
		secret + "/", "http://localhost:" + port + "/", "http://[::1]:" + port + "/", "http://2130706433:" + port + "/",
		"http://0.0.0.0:" + port + "/", "http://169.254.169.254/latest/", "http://outside.example/", w.site.URL + "/redirect?to=" + secret + "/",
	}
	for i, u := range urls {
		w.raw("", fmt.Sprintf("{const a=document.createElement('a');a.id='x%d';a.href=%q;a.textContent='x%d';document.querySelector('main').prepend(a,document.createElement('br'));1}", i, u, i), nil)
		out := w.do("click(selector=%q)", fmt.Sprintf("#x%d", i))
		w.stayed(start, "click on "+u, out)
		w.fails("blocked_url|navigation_error", "goto(%q)", u)
		w.stayed(start, "goto "+u, browser.Outcome{})
	}
	w.fails("blocked_url", `goto("javascript:document.title='js'")`)
	w.stayed(start, "goto javascript:", browser.Outcome{})
	w.logged("")
	if n := w.site.hits.Load(); n != 0 {
		t.Errorf("the forbidden server was reached %d times", n)
	}
}

// stayed checks that the page is still the same and shows nothing of elsewhere.
func (w *world) stayed(href, after string, out browser.Outcome) {
	w.t.Helper()
	if out.Err != nil && out.Err.Kind != action.BlockedURL && out.Err.Kind != action.NavigationError {
		w.t.Errorf("%s: want blocked_url or no effect, got %v", after, out.Err)
	}
	o := w.look(browser.View{})
	if o.URL != href || len(o.Tabs) != 1 {
		w.t.Errorf("%s: the page went to %s, tabs %+v", after, o.URL, o.Tabs)
		w.load("/c44_out_of_bounds.html")
		return
	}
	for _, s := range []string{"root:", "the answer is 42", "'out'"} {
		if strings.Contains(o.Text, s) {
			w.t.Errorf("%s: the page shows %q", after, s)
		}
	}
}

// Browsers that start at once do not meet, and leave nothing when they end.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w := open(t)
			w.load(fmt.Sprintf("/next?%d", i))
			if o := w.look(browser.View{}); o.URL != fmt.Sprintf("%s/next?%d", w.site.URL, i) {
				t.Errorf("browser %d shows %s", i, o.URL)
			}
			w.proc.Kill()
			if pids := w.proc.Renderers(); len(pids) > 0 {
				t.Errorf("renderers are left: %v", pids)
			}
			if err := os.RemoveAll(w.proc.Dir); err != nil {
				t.Errorf("the profile is still written to: %v", err)
			}
		})
	}
}
