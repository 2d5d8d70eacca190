package casetest

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
)

// A target inside the window may still lie under a bar that is fixed there.
func TestFixedBars(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c01_fixed_bars.html")
	for _, start := range []string{"scrollTo(0,0)", "scrollTo(0,1990)", "scrollTo(0,1410)"} {
		w.raw("", start, nil)
		w.ok(`click(selector="#go")`)
	}
	w.logged("go go go ")
}

// What lies over a target must neither get the click nor be called success.
func TestVeil(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c02_veil.html?ms=1000000000")
	if e := w.fails("obscured", `click(selector="#pay")`); !strings.Contains(e.Message, "div#veil") {
		t.Errorf("the error does not name the veil: %v", e)
	}
	w.logged("")
	w.load("/c02_veil.html?ms=600")
	w.ok(`click(selector="#pay")`)
	w.logged("pay ")
	w.ok(`click(selector="#cb")`)
	w.logged("pay cb ")
	if w.value("cb.checked") != "true" {
		t.Error("the transparent checkbox is not ticked")
	}
}

// Points are translated through borders, paddings, inner scrolling and nesting, and
// elements under shadow roots can be named.
func TestFramesAndShadowRoots(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c03_frames_shadow.html")
	for _, name := range []string{"in", "deep", "sh"} {
		w.ok("click(%q)", w.handle("button", name))
	}
	w.logged("in deep sh ")
}

// Waiting is bounded, and what never rests can still be clicked.
func TestLateAndMovingControls(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c04_late_controls.html")
	for _, id := range []string{"fly", "late", "ghost", "pulse"} {
		w.ok("click(selector=%q)", "#"+id)
	}
	w.fails("disabled", `click(selector="#never")`)
	w.logged("fly late ghost pulse ")
}

// Handles work whatever the page calls its elements; selectors fail at once and say why.
func TestOddIDs(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c05_odd_ids.html")
	ids := []string{"841", "a.b.c", "ns:field", `quo"te`, "sp ace", "请求", "-x", "x[0]", "#hash", `a\b`}
	want := ""
	for _, id := range ids {
		w.ok("click(%q)", w.handle("button", "B "+id))
		want += "[" + id + "]"
	}
	w.logged(want)
	for _, sel := range []string{`[id="841"]`, `#\38 41`, `#a\.b\.c`, `#ns\:field`} {
		w.ok("click(selector=%q)", sel)
	}
	w.logged(want + "[841][841][a.b.c][ns:field]")
	for _, sel := range []string{"#841", "#a.b.c", "button["} {
		// The fastest of a few, so that the machine's other work does not count: what is
		// waited for would be waited for each time.
		fastest := callTimeout
		for range 8 {
			began := time.Now()
			w.fails("invalid_selector|not_found", "click(selector=%q)", sel)
			fastest = min(fastest, time.Since(began))
		}
		if fastest > 200*time.Millisecond {
			t.Errorf("%s took %v to be refused", sel, fastest)
		}
	}
	for range 2 {
		w.fails("ambiguous", `click(selector=".twin")`)
	}
}

// What is not there is reported, and asking leaves nothing behind. Goroutines can only be
// counted while no other test has a browser, so this one does not run beside others.
//
//nolint:paralleltest // see above
func TestNotThere(t *testing.T) {
	w := open(t)
	w.load("/c06_not_there.html")
	const rounds = 100
	var first leftBehind
	for i := range rounds {
		w.fails("not_found", `click(selector="#nope")`)
		w.fails("not_found", `fill(selector="#nope", value="x")`)
		w.fails("not_found", `select_option(selector="#nope", options="x")`)
		w.fails("not_found", `scroll(0, 10, selector="#nope")`)
		w.ok(`click(selector="#ok")`)
		if i == 0 {
			first = w.leftBehind()
		}
	}
	// What has ended may take a moment to be gone.
	over := time.After(callTimeout)
	for w.leftBehind().exceeds(first) {
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-over:
		}
		t.Errorf("what was not there left something behind: %+v, at first %+v", w.leftBehind(), first)
		break
	}
	w.logged(strings.Repeat("ok ", rounds))
	w.fails("not_found", `click("999")`)
	bid := w.handle("button", "ok")
	w.raw("", "document.getElementById('ok').remove()", nil)
	w.fails("stale", "click(%q)", bid)
}

// leftBehind is what a call could leave: goroutines of ours, commands and receivers of
// the protocol, tabs and contexts of the browser.
type leftBehind struct{ goroutines, pending, handlers, targets, contexts int }

func (l leftBehind) exceeds(m leftBehind) bool {
	return l.goroutines > m.goroutines || l.pending > m.pending || l.handlers > m.handlers || l.targets > m.targets || l.contexts > m.contexts
}

func (w *world) leftBehind() (l leftBehind) {
	w.t.Helper()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for s := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(s, "internal/browser.") || strings.Contains(s, "internal/cdp.") {
			l.goroutines++
		}
	}
	st := w.proc.Conn.Stats()
	l.pending, l.handlers = st.Pending, st.Handlers
	var targets struct {
		TargetInfos []json.RawMessage `json:"targetInfos"`
	}
	var contexts struct {
		BrowserContextIDs []string `json:"browserContextIds"`
	}
	if err := w.spy.Call(w.ctx(), "Target.getTargets", nil, &targets); err != nil {
		w.t.Fatalf("list targets: %v", err)
	}
	if err := w.spy.Call(w.ctx(), "Target.getBrowserContexts", nil, &contexts); err != nil {
		w.t.Fatalf("list contexts: %v", err)
	}
	l.targets, l.contexts = len(targets.TargetInfos), len(contexts.BrowserContextIDs)
	return l
}

// An option is chosen as a user does it, so that the page hears of it.
func TestOptions(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c07_options.html")
	w.ok(`select_option(selector="#s", options="Second")`)
	w.logged("i c commit=2 ")
	w.fails("no_such_option", `select_option(selector="#s", options="Nope")`)
	w.fails("disabled", `select_option(selector="#s", options="Third")`)
	w.logged("i c commit=2 ")
	if v := w.value("s.value"); v != "2" {
		t.Errorf("the choice is %q, want 2", v)
	}
	w.ok(`select_option(selector="#m", options=["A", "C"])`)
	if v := w.value("[...m.selectedOptions].map(o=>o.value)"); v != "a,c" {
		t.Errorf("chosen are %q, want a,c", v)
	}
}

// Dates and times are filled in whole, whatever order the locale types them in.
func TestDates(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"en-US", "de-DE", "ja-JP"} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			w := open(t, func(c *browser.Config) { c.Locale = locale })
			w.load("/c08_dates.html")
			w.ok(`click(selector="#d")`)
			w.ok(`fill(selector="#d", value="2024-02-09")`)
			w.ok(`fill(selector="#t", value="18:55")`)
			w.ok(`fill(selector="#l", value="2024-02-09T00:12")`)
			w.logged("d=2024-02-09 t=18:55 l=2024-02-09T00:12 ")
			w.fails("invalid_value", `fill(selector="#d", value="2024-02-30")`)
			if v := w.value("d.value"); v != "2024-02-09" {
				t.Errorf("after the impossible date the field holds %q", v)
			}
		})
	}
}

// Text arrives code point by code point, once.
func TestExactText(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c09_exact_text.html")
	text := "新しい 𩸽 👩🏽‍🚀 مرحبا e\u0301"
	for range 2 {
		w.ok("fill(selector=\"#a\", value=%q)", text)
		if v := w.value("a.value"); v != text {
			t.Errorf("the field holds %+q, want %+q", v, text)
		}
	}
	w.ok(`fill(selector="#t", value="L1\nL2\n\nL4")`)
	if v := w.value("t.value"); v != "L1\nL2\n\nL4" {
		t.Errorf("the text area holds %q", v)
	}
	w.ok(`fill(selector="#ce", value="L1\nL2")`)
	if v := w.value("ce.innerText.trimEnd()"); v != "L1\nL2" {
		t.Errorf("the editor holds %q", v)
	}
	if v := w.value("log.value"); !strings.Contains(v, "b ") {
		t.Errorf("the editor heard no beforeinput: %q", v)
	}
	w.do(`fill(selector="#a", value="x\ny")`)
	if v := w.value("log.value"); strings.Count(v, "submit") > 1 {
		t.Errorf("a line break submitted more than once: %q", v)
	}
	out := w.ok(`fill(selector="#n", value="123456789")`)
	if v := w.value("n.value"); v != "12345" {
		t.Errorf("the short field holds %q, want 12345", v)
	}
	if len(out.Notes) == 0 {
		t.Error("that the text was cut is not reported")
	}
}

// A dialog holds nothing up, is part of the observation, and is answered by action only.
func TestDialogs(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c10_dialogs.html")
	w.ok("goto(%q)", w.site.URL+"/c10_dialogs.html?hello")
	if o := w.look(browser.View{}); o.Dialog == nil || o.Dialog.Message != "hello" || o.Dialog.Type != "alert" {
		t.Errorf("want the alert of the load, got %+v", o.Dialog)
	}
	w.ok("dialog_accept()")

	w.ok(`click(selector="#del")`)
	o, err := w.b.Observe(w.ctx(), browser.View{Screenshot: "png"})
	if err != nil || o.Dialog == nil || o.Dialog.Type != "confirm" || o.Dialog.Message != "Delete order 17?" {
		t.Fatalf("observe with an open dialog: %+v, %v", o, err)
	}
	w.fails("dialog_open", `click(selector="#nm")`)
	w.ok("dialog_dismiss()")
	w.logged("kept ")
	w.ok(`click(selector="#del")`)
	w.ok("dialog_accept()")
	w.logged("kept deleted ")
	w.ok(`click(selector="#nm")`)
	w.ok(`dialog_accept("Zoë")`)
	w.logged("kept deleted name=Zoë ")
	w.ok(`click(selector="#storm")`)
	for range 40 {
		if w.look(browser.View{}).Dialog == nil {
			break
		}
		w.ok("dialog_accept()")
	}
	w.logged("kept deleted name=Zoë calm ")
	w.fails("no_dialog", "dialog_accept()")
}

// A tab that opens comes to the front with its page in it; one that closes gives way.
func TestNewTabs(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c11_new_tabs.html")
	check := func(tabs int, title string) {
		t.Helper()
		o := w.look(browser.View{})
		if len(o.Tabs) != tabs || o.Title != title {
			t.Errorf("want %d tabs and %s in front, got %s and %+v", tabs, title, o.Title, o.Tabs)
		}
		for _, tab := range o.Tabs {
			if tab.Active != (tab.Title == title) {
				t.Errorf("the active tab is marked wrongly: %+v", o.Tabs)
			}
		}
	}
	w.ok(`click(selector="#w")`)
	check(2, "C11b")
	w.sees("heading 'second'")
	w.ok(`click(selector="#back")`)
	check(1, "C11")
	var log string
	w.raw("c11_new_tabs", "document.getElementById('log').value", &log)
	if log != "back " {
		t.Errorf("the opener logged %q", log)
	}
	w.ok(`click(selector="#a")`)
	check(2, "C11b")
	w.ok("tab_focus(0)")
	check(2, "C11")
	w.ok("tab_focus(1)")
	w.ok("tab_close()")
	check(1, "C11")
	w.ok(`click(selector="#w")`)
	check(2, "C11b")
	w.fails("blocked_url", "goto(%q)", w.site.secret.URL)
	check(2, "C11b")
}

// A click that leaves the page has worked: it is neither an error nor made twice. A soak
// makes it 50 times with a server that takes its time.
func TestSoakLeavingDuringAClick(t *testing.T) {
	t.Parallel()
	rounds, ms := 10, 100
	if os.Getenv("POMMEL_SOAK") != "" {
		rounds, ms = 50, 1500
	}
	w := open(t)
	for i := range rounds {
		for _, id := range []string{"slow", "down"} {
			w.load("/c12_leaving.html")
			w.raw("", fmt.Sprintf("document.getElementById('slow').href='/slow?ms=%d'", ms), nil)
			w.ok("click(selector=%q)", "#"+id)
			o := w.look(browser.View{})
			if o.URL != w.site.URL+"/next" || !strings.Contains(o.Text, "the next page") {
				t.Errorf("after %s the page is %s:\n%s", id, o.URL, o.Text)
			}
		}
		w.load("/c12_leaving.html")
		w.raw("", fmt.Sprintf("document.forms[0].action='/count?ms=%d'", ms), nil)
		w.ok(`click(selector="#post")`)
		if n := w.site.posts.Load(); n != int64(i+1) {
			t.Fatalf("%d clicks made %d posts", i+1, n)
		}
		w.sees(fmt.Sprintf("posts: %d", i+1))
	}
}

// Scrolling moves what a user's wheel would move, and says how far.
func TestInnerScrolling(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c13_inner_scroll.html")
	w.ok("scroll(0, 600)")
	before := ""
	for range 60 {
		out := w.ok(`scroll(0, 600, selector="#r5")`)
		if len(out.Notes) == 0 {
			t.Fatal("scroll does not say how far it moved")
		}
		now := w.value("p.scrollTop+'/'+p.childElementCount")
		if now == before {
			break
		}
		before = now
	}
	if n := w.value("p.childElementCount"); n != "90" {
		t.Errorf("%s rows were loaded, want 90", n)
	}
	out := w.ok(`scroll(0, 600, selector="#r5")`)
	if notes := strings.Join(out.Notes, " "); !strings.Contains(notes, "(0, 0)") {
		t.Errorf("at the end scroll should say that nothing moved, got %q", notes)
	}
}

// A frame of another origin is read and used like any other.
func TestFrameOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/other_origin.html?other=" + w.site.other)
	w.sees("StaticText 'before'\n\t[a] Iframe 'Pay'\n\t\tStaticText 'pay here'\n\t\t[a0] textbox 'Card number'\n\t\t[a1] button 'Pay'\n\t\t[aa] Iframe ''\n\t\t\t[aa0] button 'Deep'\n\tStaticText 'after'")
	w.ok("click(%q)", w.handle("button", "Pay"))
	w.ok("fill(%q, \"42\")", w.handle("textbox", "Card number"))
	w.ok("click(%q)", w.handle("button", "Deep"))
	if log := w.value("document.getElementById('log').value"); log != "paid typed=42 deep " {
		t.Errorf("the page logged %q", log)
	}
}

// An apology is a page like any other; only the status of its answer tells.
func TestAnswered(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, c := range []struct {
		path string
		want int
	}{{"/listing.html", 200}, {"/apology", 503}, {"/listing.html", 200}} {
		w.load(c.path)
		if got, err := w.b.Answered(w.ctx()); err != nil || got != c.want {
			t.Errorf("%s: %d %v, want %d", c.path, got, err, c.want)
		}
	}
}
