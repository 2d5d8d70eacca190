package casetest

import (
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/browser"
)

// A bid belongs to its element for as long as that lives, and to no other after.
func TestBidsLast(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/listing.html")
	before := w.look(browser.View{Elements: true})
	if err := w.session("").Call(w.ctx(), "HeapProfiler.collectGarbage", nil, nil); err != nil {
		t.Fatalf("collect garbage: %v", err)
	}
	if after := w.text(); after != before.Text {
		t.Errorf("bids changed when memory was cleaned:\n%s", after)
	}
	w.raw("", `{
		const rows=document.querySelectorAll('tbody tr');
		rows[0].remove();
		rows[1].parentNode.append(rows[1]);
		document.querySelector('tbody').insertAdjacentHTML('afterbegin','<tr><td>new</td><td><button>New</button></td></tr>');
		1}`, nil)
	after := w.look(browser.View{Elements: true})
	known := map[string]browser.Element{}
	for _, e := range before.Elements {
		known[e.Bid] = e
	}
	fresh := 0
	for _, e := range after.Elements {
		was, ok := known[e.Bid]
		if !ok {
			fresh++
			continue
		}
		if was.Role != e.Role || was.Name != e.Name {
			t.Errorf("[%s] was %s %q and is %s %q", e.Bid, was.Role, was.Name, e.Role, e.Name)
		}
	}
	if fresh != 2 {
		t.Errorf("%d elements are new, want the row and its button", fresh)
	}
	gone := ""
	for _, e := range before.Elements {
		if e.Name == "#1001" {
			gone = e.Bid
		}
	}
	w.fails("stale", "click(%q)", gone)
	w.fails("not_found", `click("12345")`)
	w.fails("not_found", `click("zZ9")`)
}

// Bids in an iframe go on when it shows another document.
func TestBidsOfAnIframeThatNavigates(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c06_not_there.html")
	w.raw("", `{const f=document.createElement('iframe');f.name='inner';f.srcdoc='<button>one</button><a href=/next>go</a>';document.body.append(f);1}`, nil)
	w.ok("noop(100)")
	old := w.handle("button", "one")
	w.ok("click(%q)", w.handle("link", "go"))
	o := w.look(browser.View{})
	if !strings.Contains(o.Text, "] heading 'the next page'") || strings.Contains(o.Text, "["+old+"]") {
		t.Errorf("a bid of the old document is used again:\n%s", o.Text)
	}
	w.fails("stale", "click(%q)", old)
}

// The same page and actions give the same text, in another browser too.
func TestTheSameAgain(t *testing.T) {
	t.Parallel()
	var texts [2]string
	for i := range texts {
		w := open(t)
		for _, page := range []string{"/text/roles.html", "/text/forms.html", "/c03_frames_shadow.html"} {
			w.load(page)
			texts[i] += strings.ReplaceAll(w.text(), w.site.URL, "")
		}
		w.proc.Kill()
	}
	if texts[0] != texts[1] {
		t.Errorf("two browsers show the same pages differently:\n%s\n%s", texts[0], texts[1])
	}
}

// Looking leaves no trace: no attribute, no element, no global, no violated policy.
func TestNoTraces(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c34_no_traces.html")
	var before, after []string
	w.raw("", "Object.getOwnPropertyNames(window)", &before)
	for range 5 {
		w.look(browser.View{Elements: true, HTML: true, Screenshot: "png"})
	}
	w.ok(`click(selector="#b")`)
	o := w.look(browser.View{HTML: true})
	if o.Title != "C34" {
		t.Errorf("the page has noticed: its title is %q", o.Title)
	}
	w.raw("", "Object.getOwnPropertyNames(window)", &after)
	if a, b := strings.Join(before, " "), strings.Join(after, " "); a != b {
		t.Errorf("globals changed:\n%s\n%s", a, b)
	}
	for _, s := range []string{"bid", "pommel", "agent"} {
		if strings.Contains(o.HTML, s) {
			t.Errorf("the document holds %q:\n%s", s, o.HTML)
		}
	}
	w.logged("b ")
}
