package casetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
	"github.com/pommelgym/pommel/internal/cdp"
)

// callTimeout is what any single call may take before the test gives it up.
const callTimeout = 30 * time.Second

// slots bounds the browsers that run at once: more than the cores only slow each other.
var slots = make(chan struct{}, 2)

// world is a site, a browser and a second way into it.
type world struct {
	t    *testing.T
	site *site
	proc *browsertest.Process
	b    *browser.Browser

	spy   *cdp.Session            // a browser session of the test's own
	pages map[string]*cdp.Session // target id -> the test's session
}

// open starts a browser on a fresh site. The options change its settings.
func open(t *testing.T, options ...func(*browser.Config)) *world {
	t.Helper()
	s := newSite(t)
	select {
	case slots <- struct{}{}:
	case <-t.Context().Done():
		t.Fatal("no browser slot became free")
	}
	t.Cleanup(func() { <-slots })
	cfg := browser.Config{Proof: true, Seed: 1, Width: 1280, Height: 720, Locale: "en-US", Allow: []string{s.URL, s.other}}
	for _, o := range options {
		o(&cfg)
	}
	flags := browser.FlagConfig{Width: cfg.Width, Height: cfg.Height, Scale: cfg.Scale, Locale: cfg.Locale, Allow: cfg.Allow}
	w := &world{t: t, site: s, proc: browsertest.LaunchWith(t, flags), pages: map[string]*cdp.Session{}}
	b, err := browser.Open(w.ctx(), w.proc.Conn, cfg)
	if err != nil {
		t.Fatalf("open browser: %v", err)
	}
	w.b = b
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Logf("close browser: %v", err)
		}
	})
	var v struct {
		SessionID string `json:"sessionId"`
	}
	if err := w.proc.Conn.Session("").Call(w.ctx(), "Target.attachToBrowserTarget", nil, &v); err != nil {
		t.Fatalf("attach to browser: %v", err)
	}
	w.spy = w.proc.Conn.Session(v.SessionID)
	return w
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), callTimeout)
	w.t.Cleanup(cancel)
	return ctx
}

// load opens a page of the site, as the start of an episode does.
func (w *world) load(path string) {
	w.t.Helper()
	if err := w.b.Navigate(w.ctx(), w.site.URL+path); err != nil {
		w.t.Fatalf("navigate to %s: %v", path, err)
	}
}

// do makes calls as an agent would write them.
func (w *world) do(format string, args ...any) browser.Outcome {
	w.t.Helper()
	src := fmt.Sprintf(format, args...)
	calls, err := action.Parse(src)
	if err != nil {
		w.t.Fatalf("parse %s: %v", src, err)
	}
	out, err := w.b.Do(w.ctx(), calls)
	if err != nil {
		w.t.Fatalf("do %s: %v", src, err)
	}
	return out
}

// ok makes calls that must succeed.
func (w *world) ok(format string, args ...any) browser.Outcome {
	w.t.Helper()
	out := w.do(format, args...)
	if out.Err != nil {
		w.t.Errorf("%s: want success, got %v", fmt.Sprintf(format, args...), out.Err)
	}
	return out
}

// fails makes calls that must fail in one of the given ways, separated by "|".
func (w *world) fails(kinds, format string, args ...any) *action.Error {
	w.t.Helper()
	out := w.do(format, args...)
	if out.Err == nil {
		w.t.Errorf("%s: want %s, got success", fmt.Sprintf(format, args...), kinds)
		return &action.Error{}
	}
	for k := range strings.SplitSeq(kinds, "|") {
		if string(out.Err.Kind) == k {
			return out.Err
		}
	}
	w.t.Errorf("%s: want %s, got %v", fmt.Sprintf(format, args...), kinds, out.Err)
	return out.Err
}

// look observes the page.
func (w *world) look(v browser.View) browser.Observation {
	w.t.Helper()
	o, err := w.b.Observe(w.ctx(), v)
	if err != nil {
		w.t.Fatalf("observe: %v", err)
	}
	return *o
}

func (w *world) text() string {
	w.t.Helper()
	return w.look(browser.View{}).Text
}

// sees checks that the text of the page holds every part.
func (w *world) sees(parts ...string) {
	w.t.Helper()
	text := w.text()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			w.t.Errorf("the observation lacks %q:\n%s", p, text)
		}
	}
}

// handle is the bid of the one line of the observation with this role and name.
func (w *world) handle(role, name string) string {
	w.t.Helper()
	o := w.look(browser.View{Elements: true})
	var found []string
	for _, e := range o.Elements {
		if e.Role == role && e.Name == name {
			found = append(found, e.Bid)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("want one %s %q, got %d:\n%s", role, name, len(found), o.Text)
	}
	return found[0]
}

// raw evaluates in the page's own world of the first tab whose URL holds part, by the
// test's own session.
func (w *world) raw(part, expr string, out any) {
	w.t.Helper()
	s := w.session(part)
	var v struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	params := map[string]any{"expression": expr, "returnByValue": true}
	if err := s.Call(w.ctx(), "Runtime.evaluate", params, &v); err != nil {
		w.t.Fatalf("evaluate %s: %v", expr, err)
	}
	if v.Exception != nil {
		w.t.Fatalf("evaluate %s: %s", expr, v.Exception)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(v.Result.Value, out); err != nil {
		w.t.Fatalf("evaluate %s: %v in %s", expr, err, v.Result.Value)
	}
}

func (w *world) session(part string) *cdp.Session {
	w.t.Helper()
	id := w.target(part)
	if s := w.pages[id]; s != nil {
		return s
	}
	var v struct {
		SessionID string `json:"sessionId"`
	}
	err := w.spy.Call(w.ctx(), "Target.attachToTarget", map[string]any{"targetId": id, "flatten": true}, &v)
	if err != nil {
		w.t.Fatalf("attach to tab: %v", err)
	}
	w.pages[id] = w.proc.Conn.Session(v.SessionID)
	return w.pages[id]
}

func (w *world) target(part string) string {
	w.t.Helper()
	var v struct {
		TargetInfos []struct {
			TargetID string `json:"targetId"`
			Type     string `json:"type"`
			URL      string `json:"url"`
		} `json:"targetInfos"`
	}
	if err := w.spy.Call(w.ctx(), "Target.getTargets", nil, &v); err != nil {
		w.t.Fatalf("list tabs: %v", err)
	}
	for _, i := range v.TargetInfos {
		if i.Type == "page" && strings.Contains(i.URL, part) {
			return i.TargetID
		}
	}
	w.t.Fatalf("no tab shows %s: %+v", part, v.TargetInfos)
	return ""
}

// value evaluates to a string.
func (w *world) value(expr string) string {
	w.t.Helper()
	var s string
	w.raw("", "String("+expr+")", &s)
	return s
}

// logged checks what the page has written down.
func (w *world) logged(want string) {
	w.t.Helper()
	if got := w.value("document.getElementById('log').value"); got != want {
		w.t.Errorf("the page logged %q, want %q", got, want)
	}
}
