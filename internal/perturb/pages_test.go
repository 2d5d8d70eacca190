package perturb_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
	"github.com/pommelgym/pommel/internal/perturb"
	"github.com/pommelgym/pommel/internal/perturb/plan"
	"github.com/pommelgym/pommel/internal/perturb/profile"
)

// app is a page of a single-page application with a strict content policy: a press on
// another view draws all of the body anew.
const app = `<!doctype html><html lang=en><title>Shop</title><body><script>
const views = {home: 'Welcome', list: 'All lamps'};
let sent = 0;
function show(view) {
  document.body.replaceChildren();
  const nav = document.createElement('nav');
  for (const v in views) { const b = document.createElement('button'); b.textContent = 'Go ' + v; b.onclick = () => show(v); nav.append(b); }
  const main = document.createElement('main'), h = document.createElement('h1'), f = document.createElement('form'), s = document.createElement('button'), o = document.createElement('output');
  h.textContent = views[view]; f.method = 'post'; s.textContent = 'Save'; s.id = 'save'; o.textContent = 'saved ' + sent;
  f.onsubmit = (e) => { e.preventDefault(); o.textContent = 'saved ' + ++sent; };
  f.append(s); main.append(h, f, o); document.body.append(nav, main);
}
show('home');
addEventListener('securitypolicyviolation', (e) => { document.title = 'policy: ' + e.violatedDirective; });
</script></body></html>`

// stage is one browser on which kinds strike one after the other.
type stage struct {
	*browsertest.Site
	t *testing.T
}

func newStage(t *testing.T) *stage {
	s := &stage{browsertest.NewSite(t), t}
	s.Mux.HandleFunc("/app", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; script-src 'unsafe-inline'; require-trusted-types-for 'script'")
		fmt.Fprint(w, app)
	})
	s.Go("/app")
	if err := s.SetEpisode(browsertest.Context(t), 1, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// strike loads the page with one rule that strikes at it, and gives what it says of itself.
func (s *stage) strike(rule string) perturb.Event {
	s.t.Helper()
	p, err := profile.Parse("p.yaml", []byte("name: p\nrecovery: {steps: 100, tries: 9}\nrules:\n  - "+rule+"\n"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	d := perturb.New(plan.Make(p, "task", 3))
	s.Go("/app")
	if err := s.SetFriction(browsertest.Context(s.t), d); err != nil {
		s.t.Fatal(err)
	}
	s.OK("wait(ms=1000)")
	events := d.Take()
	if len(events) != 1 {
		s.t.Fatalf("%s: events %+v", rule, events)
	}
	return events[0]
}

func (s *stage) look() *browser.Observation { return s.See(browser.View{Elements: true, HTML: true}) }

// find is the bid of the element of a role whose name is one of these.
func find(o *browser.Observation, role string, names ...string) string {
	for _, e := range o.Elements {
		if e.Role == role && (len(names) == 0 || slices.Contains(names, e.Name)) {
			return e.Bid
		}
	}
	return ""
}

func (s *stage) press(bid string) { s.OK("click(" + action.Quote(bid) + ")") }

// route has the application draw another view.
func (s *stage) route(view string) {
	s.t.Helper()
	for _, e := range s.look().Elements {
		if e.Name == "Go "+view {
			// A window in front takes presses of the mouse; the application goes on by itself.
			s.OK("focus(" + action.Quote(e.Bid) + ")")
			s.OK("keyboard_press('Enter')")
			return
		}
	}
	s.t.Fatalf("the page has no view %s", view)
}

// TestWindowsAndBars: each one appears, says its role and name, stays when the application
// draws itself anew, goes away by an ordinary press, and does not come back. None of them
// breaks a content policy or says where it comes from (C34).
func TestWindowsAndBars(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for kind, c := range map[string]struct {
		role  string
		close []string
	}{
		"ui.newsletter":      {"dialog", []string{"No thanks", "Maybe later", "Not now", "No, thank you", "I would rather browse", "Another time"}},
		"ui.survey":          {"dialog", []string{"Skip", "Not now", "Ask me later", "I will pass", "No opinion"}},
		"ui.session_warning": {"dialog", []string{"Stay signed in", "Continue session", "Keep me signed in", "Keep it open"}},
		"ui.cookie_banner":   {"region", []string{"Only necessary", "Decline", "Reject optional cookies", "Just the essentials"}},
		"ui.chat_widget":     {"region", []string{"Close chat"}},
		"ui.toast":           {"status", []string{"Dismiss"}},
		"ui.sticky_header":   {"region", []string{"Close announcement"}},
	} {
		for _, words := range []string{"common", "heldout"} {
			t.Run(kind+" "+words, func(t *testing.T) {
				s := &stage{s.Site, t}
				s.windowOrBar(fmt.Sprintf("{kind: %s, probability: 1, limit: 1, with: {words: %s}}", kind, words), c.role, c.close)
			})
		}
	}
}

func (s *stage) windowOrBar(rule, role string, closing []string) {
	s.t.Helper()
	e := s.strike(rule)
	o := s.look()
	if e.Seen == "" || !strings.Contains(o.Text, e.Seen) {
		s.t.Fatalf("what is seen, %q, is not on the page:\n%s", e.Seen, o.Text)
	}
	if find(o, role) == "" || role != "status" && !named(o, role) {
		s.t.Errorf("there is no %s with a name:\n%s", role, o.Text)
	}
	for _, el := range o.Elements {
		if el.Role == "button" && el.Name == "" {
			s.t.Errorf("a button has no name: %+v", el)
		}
	}
	for _, word := range []string{"pommel", "perturb", "gym", "friction"} {
		if strings.Contains(strings.ToLower(o.HTML), word) {
			s.t.Errorf("the document says %q", word)
		}
	}
	s.route("list")
	if o = s.look(); !strings.Contains(o.Text, "All lamps") || !strings.Contains(o.Text, e.Seen) {
		s.t.Errorf("after the application drew another view:\n%s", o.Text)
	}
	bid := find(o, "button", closing...)
	if bid == "" {
		s.t.Fatalf("nothing closes it:\n%s", o.Text)
	}
	s.press(bid)
	s.OK("wait(ms=2000)")
	s.route("home")
	if o = s.look(); strings.Contains(o.Text, e.Seen) || !strings.Contains(o.Text, "Welcome") || o.Title != "Shop" {
		s.t.Errorf("after it was closed the page %q shows:\n%s", o.Title, o.Text)
	}
	s.press(find(o, "button", "Save"))
	if o = s.look(); !strings.Contains(o.Text, "saved 1") {
		s.t.Errorf("the application does not answer any more:\n%s", o.Text)
	}
}

func named(o *browser.Observation, role string) bool {
	return slices.ContainsFunc(o.Elements, func(e browser.Element) bool { return e.Role == role && e.Name != "" })
}

// TestWindowsKeepFocus: Tab goes round within a modal window, forwards and backwards.
func TestWindowsKeepFocus(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.strike("{kind: ui.newsletter, probability: 1, limit: 1}")
	focused := func() (string, bool) {
		o := s.look()
		for _, e := range o.Elements {
			if e.Bid == o.FocusedBid {
				return e.Name, true
			}
		}
		return "", false
	}
	var names []string
	for _, key := range []string{"Tab", "Tab", "Tab", "Tab", "Tab", "Shift+Tab", "Shift+Tab"} {
		s.OK("keyboard_press(" + action.Quote(key) + ")")
		name, ok := focused()
		if !ok || strings.HasPrefix(name, "Go ") || name == "Save" {
			t.Fatalf("%s: the focus is on %q, outside of the window (before: %q)", key, name, names)
		}
		names = append(names, name)
	}
	if names[4] != names[0] || names[5] != names[3] || names[6] != names[2] {
		t.Errorf("Tab went through %q; expected to go round", names)
	}
}

// TestConfirmation: it asks before the first press of a form's button and not again once it
// was answered; who says no has done nothing.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.strike("{kind: ui.confirm, probability: 1, limit: 1}")
	for _, c := range []struct {
		answer []string
		want   string
	}{
		{[]string{"Cancel", "Go back"}, "saved 0"},
		{[]string{"Continue", "Yes, continue", "Proceed"}, "saved 1"},
		{nil, "saved 2"},
	} {
		s.press(find(s.look(), "button", "Save"))
		if c.answer != nil {
			o := s.look()
			if !named(o, "dialog") {
				t.Fatalf("nobody asks:\n%s", o.Text)
			}
			s.press(find(o, "button", c.answer...))
		}
		if o := s.look(); !strings.Contains(o.Text, c.want) || find(o, "dialog") != "" {
			t.Errorf("want %s:\n%s", c.want, o.Text)
		}
	}
}

// TestChangedControls: controls that moved to other ids, words or elements do what they did,
// and can be found by what they are.
func TestChangedControls(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for rule, names := range map[string][]string{
		"{kind: dom.rename_ids, probability: 1, limit: 1}":                         {"Save"},
		"{kind: dom.retag, probability: 1, limit: 1}":                              {"Save"},
		"{kind: dom.restyle, probability: 1, limit: 1}":                            {"Save"},
		"{kind: dom.relabel, probability: 1, limit: 1}":                            {"Save changes", "Store", "Update"},
		"{kind: dom.relabel, probability: 1, limit: 1, with: {style: icon}}":       {"Store"},
		"{kind: dom.relabel, probability: 1, limit: 1, with: {style: german}}":     {"Speichern"},
		"{kind: browser.zoom, probability: 1, limit: 1}":                           {"Save"},
		"{kind: browser.viewport, probability: 1, limit: 1}":                       {"Save"},
		"{kind: browser.theme, probability: 1, limit: 1, with: {scheme: dark}}":    {"Save"},
		"{kind: dom.delay_enable, probability: 1, limit: 1, with: {delay: 900ms}}": {"Save"},
	} {
		t.Run(rule, func(t *testing.T) {
			s := &stage{s.Site, t}
			s.strike(rule)
			o := s.look()
			bid := find(o, "button", names...)
			if bid == "" {
				t.Fatalf("no button is called %v:\n%s", names, o.Text)
			}
			s.press(bid)
			if o = s.look(); !strings.Contains(o.Text, "saved 1") || o.Title != "Shop" {
				t.Errorf("the press did nothing; the page %q shows:\n%s", o.Title, o.Text)
			}
		})
	}
}
