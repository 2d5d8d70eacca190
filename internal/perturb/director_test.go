package perturb

import (
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/perturb/plan"
	"github.com/pommelgym/pommel/internal/perturb/profile"
)

// direct makes the director of a profile's rules, one a line.
func direct(t *testing.T, own []kind.Kind, rules ...string) *Director {
	t.Helper()
	text := "name: t\nrecovery: {steps: 500, tries: 9}\nrules:\n  - " + strings.Join(rules, "\n  - ") + "\n"
	p, err := profile.Parse("t.yaml", []byte(text), own)
	if err != nil {
		t.Fatal(err)
	}
	made := plan.Make(p, "task", 1)
	if made == nil {
		t.Fatal("the plan is empty")
	}
	return New(made)
}

func get(path string) browser.Request {
	return browser.Request{Method: "GET", URL: "http://shop.test" + path, Type: "document", Accept: "text/html", At: 3 * time.Second}
}

// fates sends requests and gives the status of each answer, 0 where the server is asked.
func fates(d *Director, requests ...browser.Request) (out []int) {
	for _, r := range requests {
		f := d.Request(r)
		if f.Answer == nil {
			out = append(out, 0)
			continue
		}
		out = append(out, f.Answer.Status)
	}
	return out
}

func wantInts(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

// TestRequestsOfARule: it counts those that it is about, and no others.
func TestRequestsOfARule(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: http.error, probability: 1, limit: 2, gap: 1, first: 2, targets: {urls: ["/cart*"]}, with: {status: 502}}`)
	script := browser.Request{Method: "GET", URL: "http://shop.test/cart.js", Type: "script"}
	wantInts(t, "answers", fates(d, get("/cart"), get("/help"), script, get("/cart?page=2"), get("/cart"), get("/cart"), get("/cart"), get("/cart")),
		0, 0, 0, 502, 0, 502, 0, 0)
	events := d.Take()
	if len(events) != 2 || events[0].Target != "GET /cart?page=2" || events[0].Seen != "502 Bad Gateway" || events[0].VirtualMS != 3000 || events[1].At != 4 {
		t.Errorf("events %+v", events)
	}
	if more := d.Take(); len(more) != 0 {
		t.Errorf("told twice: %+v", more)
	}
}

// TestRepeatedError: an address that fails three times in a row fails in the same way, and
// no other address does.
func TestRepeatedError(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: http.error, probability: 1, limit: 1, with: {status: 500, repeat: 3}}`)
	wantInts(t, "answers", fates(d, get("/a"), get("/b"), get("/a"), get("/a"), get("/a")), 500, 0, 500, 500, 0)
}

// TestErrorsForScripts: who asks for JSON gets JSON.
func TestErrorsForScripts(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: http.rate_limit, probability: 1, limit: 1, with: {after: 2s}}`)
	f := d.Request(browser.Request{Method: "POST", URL: "http://shop.test/x", Type: "fetch", Accept: "application/json"})
	if f.Answer == nil || f.Answer.Status != 429 || !strings.HasPrefix(string(f.Answer.Body), `{"error"`) {
		t.Fatalf("fate %+v", f)
	}
	var after string
	for _, h := range f.Answer.Headers {
		if h[0] == "Retry-After" {
			after = h[1]
		}
	}
	if after != "2" {
		t.Errorf("Retry-After %q", after)
	}
}

// TestStaleAnswers: a cache gives what it was given before, and nothing when it was not.
func TestStaleAnswers(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: http.stale, probability: 1, limit: 9}`)
	first := d.Request(get("/orders"))
	if first.Rewrite == nil || first.Answer != nil {
		t.Fatalf("the first answer is not the server's: %+v", first)
	}
	if a, fail := first.Rewrite(browser.Answer{Status: 200, Body: []byte("old"), Headers: [][2]string{{"Set-Cookie", "a=b"}}}); a != nil || fail != "" {
		t.Error("remembering changed the answer")
	}
	second := d.Request(get("/orders"))
	if second.Answer == nil || string(second.Answer.Body) != "old" || len(second.Answer.Headers) != 0 {
		t.Errorf("the second answer is %+v", second.Answer)
	}
	if n := len(d.Take()); n != 1 {
		t.Errorf("%d events", n)
	}
}

// TestOnlyOneStrikeARequest: the first rule strikes; the others count on.
func TestOnlyOneStrikeARequest(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: http.error, probability: 1, limit: 1, with: {status: 503}}`, `{kind: http.rate_limit, probability: 1, limit: 2}`)
	wantInts(t, "answers", fates(d, get("/a"), get("/a"), get("/a")), 503, 429, 0)
}

// TestWindowInVirtualTime: outside of it nothing strikes.
func TestWindowInVirtualTime(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: http.reset, probability: 1, limit: 9, gap: 0, window: {after: 5s, until: 8s}}`)
	at := func(s int) browser.Request { r := get("/a"); r.At = time.Duration(s) * time.Second; return r }
	for _, c := range []struct {
		second int
		fails  bool
	}{{1, false}, {5, true}, {7, true}, {8, false}} {
		if f := d.Request(at(c.second)); (f.Fail != "") != c.fails {
			t.Errorf("second %d: %+v", c.second, f)
		}
	}
}

// TestSavedState: a director that was put back does again what it did.
func TestSavedState(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: http.error, probability: 0.5, limit: 9, gap: 0, with: {status: [500, 502, 503], repeat: 2}}`)
	paths := func() (out []browser.Request) {
		for range 20 {
			out = append(out, get("/a"), get("/b"))
		}
		return out
	}
	fates(d, paths()[:7]...)
	d.Take()
	saved := d.Save()
	one := fates(d, paths()...)
	events := d.Take()
	for range 2 {
		d.Resume(saved)
		wantInts(t, "after going back", fates(d, paths()...), one...)
		if again := d.Take(); len(again) != len(events) || len(events) == 0 {
			t.Errorf("%d events, then %d", len(events), len(again))
		}
	}
}

// TestRowsThatAreHeldForAWhile: a strike waits for its moment, lasts, and is undone once.
func TestRowsThatAreHeldForAWhile(t *testing.T) {
	t.Parallel()
	own := kind.Kind{Name: "shop.held", Point: kind.Step, Cost: 3, Own: true, SQL: &kind.SQL{Run: []string{"SELECT 1"}, Undo: []string{"SELECT 2"}, Lasts: 2}}
	d := direct(t, []kind.Kind{own}, `{kind: shop.held, probability: 1, limit: 2, gap: 3, first: 2}`)
	var seen []string
	for step := 1; step <= 9; step++ {
		for _, turn := range d.BeforeStep(step) {
			switch {
			case turn.Undo:
				seen = append(seen, "undo "+string(rune('0'+step)))
				d.Undone(turn.Rule)
			case step == 2:
				seen = append(seen, "not yet 2")
			default:
				seen = append(seen, "strike "+string(rune('0'+step)))
				d.Struck(turn.Rule, 1500, "rows", "it is held")
			}
		}
	}
	if got := strings.Join(seen, ", "); got != "not yet 2, strike 3, undo 5, strike 6, undo 8" {
		t.Errorf("turns: %s", got)
	}
	events := d.Take()
	if len(events) != 2 || events[0].Step != 3 || events[0].Numbers["lasts"] != 2 || events[0].Cost != 3 || events[0].Seen != "it is held" {
		t.Errorf("events %+v", events)
	}
}

// TestShownDocuments: a page's kinds strike at documents of their targets; one that found
// nothing to act upon is no strike.
func TestShownDocuments(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: ui.survey, probability: 1, limit: 9, gap: 0, targets: {urls: ["/p/*"]}}`, `{kind: browser.theme, probability: 1, limit: 1}`)
	show := func(path string) []browser.Change { return d.Shown(browser.Shown{URL: "http://shop.test" + path}) }
	if c := show("/cart"); len(c) != 1 || c[0].Scheme != "dark" {
		t.Fatalf("changes of /cart: %+v", c)
	}
	changes := append(show("/p/lamp"), show("/p/chair")...)
	if len(changes) != 2 || changes[0].Script == "" {
		t.Fatalf("changes of products: %+v", changes)
	}
	changes[0].Done("null")
	changes[1].Done(`{"seen":"Quick question","target":"the page"}`)
	events := d.Take()
	if len(events) != 2 || events[1].Kind != "ui.survey" || events[1].Seen != "Quick question" || events[1].Target != "/p/chair the page" {
		t.Errorf("events %+v", events)
	}
}

// TestNothingOnErrorPages: what belongs to the application's pages does not show where an
// error page has taken the place of one.
func TestNothingOnErrorPages(t *testing.T) {
	t.Parallel()
	d := direct(t, nil, `{kind: http.error, probability: 1, limit: 1}`, `{kind: ui.survey, probability: 1, limit: 9, gap: 0}`)
	for i, want := range []int{0, 1, 1} {
		d.Request(get("/orders"))
		if got := d.Shown(browser.Shown{URL: "http://shop.test/orders"}); len(got) != want {
			t.Errorf("document %d: %d changes, want %d", i+1, len(got), want)
		}
	}
}
