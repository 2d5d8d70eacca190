// Package perturb carries out a plan in a running episode: it decides about the requests
// and documents of a browser, keeps count of decision points, and writes down what struck.
package perturb

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/perturb/page"
	"github.com/pommelgym/pommel/internal/perturb/plan"
)

// Event is one strike, for the trainer.
type Event struct {
	// VirtualMS is when it struck, Step the agent's step during which.
	VirtualMS int64  `json:"virtual_ms"`
	Step      int    `json:"step"`
	Rule      string `json:"rule"`
	Kind      string `json:"kind"`
	// At is the decision point: the nth request, page or step that the rule was about.
	At     int    `json:"at"`
	Target string `json:"target,omitempty"`
	// Seen is what the agent could see of it.
	Seen    string            `json:"seen,omitempty"`
	Numbers map[string]int    `json:"numbers,omitempty"`
	Texts   map[string]string `json:"texts,omitempty"`
	// Cost is how many steps it may take to get over it; the episode's limit grows by it.
	Cost int `json:"cost"`
}

// Director carries out one plan. It is safe for concurrent use.
type Director struct {
	plan *plan.Plan

	mu    sync.Mutex
	state state
}

// state is all that changes.
type state struct {
	step   int
	points map[string]int    // rule -> decision points so far
	again  map[string]repeat // by rule and address
	old    map[string]browser.Answer
	due    []int          // indexes of rules whose strike at a step waits for its moment
	ends   map[string]int // rule -> the step before which what it did is undone
	// broken is the address of a document whose place an error page takes: nothing of the
	// application shows there, so nothing that belongs to its pages may.
	broken string
	events []Event
	// told is how many events Take has handed out.
	told int
}

// repeat is a firing that strikes at an address again.
type repeat struct {
	firing plan.Firing
	left   int
}

// Turn is something to do before a step: a rule strikes, or what it did is undone.
type Turn struct {
	Rule *plan.Rule
	Undo bool
}

var _ browser.Friction = (*Director)(nil)

// New makes the director of an episode.
func New(p *plan.Plan) *Director {
	return &Director{plan: p, state: state{
		points: map[string]int{}, again: map[string]repeat{}, old: map[string]browser.Answer{}, ends: map[string]int{},
	}}
}

// Plan is what it carries out.
func (d *Director) Plan() *plan.Plan { return d.plan }

// Save and Resume hold the state at a checkpoint.
func (d *Director) Save() any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state.clone()
}

// Resume takes up a state that Save gave.
func (d *Director) Resume(saved any) {
	s, ok := saved.(state)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = s.clone()
}

func (s state) clone() state {
	s.points, s.again, s.old, s.ends = maps.Clone(s.points), maps.Clone(s.again), maps.Clone(s.old), maps.Clone(s.ends)
	s.due, s.events = slices.Clone(s.due), slices.Clone(s.events)
	return s
}

// Take gives the events since it was last called.
func (d *Director) Take() []Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(d.state.events[d.state.told:])
	d.state.told = len(d.state.events)
	return out
}

// Patterns are the requests that rules are about.
func (d *Director) Patterns() []browser.Pattern {
	var out []browser.Pattern
	for i := range d.plan.Rules {
		r := &d.plan.Rules[i]
		if r.Point != kind.Request {
			continue
		}
		urls := r.Targets.URLs
		if len(urls) == 0 {
			urls = []string{""}
		}
		for _, u := range urls {
			for _, t := range r.Targets.Types {
				p := browser.Pattern{URL: "*" + strings.TrimPrefix(u, "*"), Type: t}
				if !slices.Contains(out, p) {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// Request decides about a request.
func (d *Director) Request(r browser.Request) browser.Fate {
	d.mu.Lock()
	defer d.mu.Unlock()
	var fate browser.Fate
	struck, cached := false, false
	for i := range d.plan.Rules {
		rule := &d.plan.Rules[i]
		if rule.Point != kind.Request || !about(rule, r) {
			continue
		}
		cached = cached || rule.Kind == "http.stale"
		f := d.requestFiring(rule, r)
		if f == nil || struck {
			continue
		}
		var note string
		if fate, note, struck = d.fate(rule, *f, r); struck {
			d.log(rule, *f, r.At, r.Method+" "+pathOf(r.URL), note)
		}
	}
	if cached && !struck {
		fate.Rewrite = d.remember(r.URL)
	}
	if r.Type == "document" {
		d.state.broken = ""
		if struck && fate.Answer != nil && fate.Answer.Status >= 400 || fate.Fail != "" {
			d.state.broken = r.URL
		}
	}
	return fate
}

// requestFiring counts a request and gives the firing that it meets, if any.
func (d *Director) requestFiring(rule *plan.Rule, r browser.Request) *plan.Firing {
	key := rule.ID + " " + r.Method + " " + pathOf(r.URL)
	if a := d.state.again[key]; a.left > 0 {
		a.left--
		d.state.again[key] = a
		return &a.firing
	}
	d.state.points[rule.ID]++
	f := rule.Firing(d.state.points[rule.ID])
	if f == nil || !rule.Window(r.At) {
		return nil
	}
	if n := f.Numbers["repeat"]; n > 1 {
		d.state.again[key] = repeat{*f, n - 1}
	}
	return f
}

func about(rule *plan.Rule, r browser.Request) bool {
	t := rule.Targets
	if !slices.Contains(t.Types, r.Type) || len(t.Methods) > 0 && !slices.Contains(t.Methods, r.Method) {
		return false
	}
	path := pathOf(r.URL)
	return len(t.URLs) == 0 || slices.ContainsFunc(t.URLs, func(p string) bool { return glob(p, path) })
}

// pathOf is path and query of an address.
func pathOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.RequestURI()
}

// glob matches a pattern in which * stands for any text.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// Shown decides about a document of the application.
func (d *Director) Shown(s browser.Shown) []browser.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.URL == d.state.broken {
		return nil
	}
	var out []browser.Change
	for i := range d.plan.Rules {
		rule := &d.plan.Rules[i]
		if rule.Point != kind.Page || len(rule.Targets.URLs) > 0 && !slices.ContainsFunc(rule.Targets.URLs, func(p string) bool { return glob(p, pathOf(s.URL)) }) {
			continue
		}
		d.state.points[rule.ID]++
		if f := rule.Firing(d.state.points[rule.ID]); f != nil && rule.Window(s.At) {
			out = append(out, d.change(rule, *f, s))
		}
	}
	return out
}

// change is what a firing does to a document or its window.
func (d *Director) change(rule *plan.Rule, f plan.Firing, s browser.Shown) browser.Change {
	switch rule.Kind {
	case "browser.viewport":
		d.log(rule, f, s.At, pathOf(s.URL), "")
		return browser.Change{Width: f.Numbers["width"], Height: f.Numbers["height"]}
	case "browser.theme":
		d.log(rule, f, s.At, pathOf(s.URL), "")
		return browser.Change{Scheme: f.Texts["scheme"]}
	}
	return browser.Change{Script: page.Script(rule.Of, rule.Targets, f), Done: func(value string) {
		var v *struct{ Seen, Target, Failed string }
		if json.Unmarshal([]byte(value), &v) != nil || v == nil || v.Failed != "" {
			return // there was nothing in the document to act upon
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.log(rule, f, s.At, strings.TrimSpace(pathOf(s.URL)+" "+v.Target), v.Seen)
	}}
}

// BeforeStep counts a step and lists what there is to do before it.
func (d *Director) BeforeStep(n int) []Turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.step = n
	var out []Turn
	for i := range d.plan.Rules {
		rule := &d.plan.Rules[i]
		if rule.Point != kind.Step {
			continue
		}
		if rule.Firing(n) != nil && !slices.Contains(d.state.due, i) {
			d.state.due = append(d.state.due, i)
		}
		end, lasts := d.state.ends[rule.ID]
		switch {
		case lasts && n >= end:
			out = append(out, Turn{rule, true})
		case !lasts && slices.Contains(d.state.due, i):
			out = append(out, Turn{rule, false})
		}
	}
	return out
}

// Struck says that a rule that BeforeStep named has done its work.
func (d *Director) Struck(rule *plan.Rule, virtualMS float64, target, seen string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.due = slices.DeleteFunc(d.state.due, func(i int) bool { return &d.plan.Rules[i] == rule })
	f := plan.Firing{At: d.state.step}
	if sql := rule.Of.SQL; sql != nil && sql.Lasts > 0 {
		d.state.ends[rule.ID] = d.state.step + sql.Lasts
		f.Numbers = map[string]int{"lasts": sql.Lasts}
	}
	d.log(rule, f, time.Duration(virtualMS)*time.Millisecond, target, seen)
}

// Undone says that what a rule did has been taken back.
func (d *Director) Undone(rule *plan.Rule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.state.ends, rule.ID)
}

// log writes a strike down. Preconditions: d.mu is held.
func (d *Director) log(rule *plan.Rule, f plan.Firing, at time.Duration, target, seen string) {
	d.state.events = append(d.state.events, Event{
		VirtualMS: at.Milliseconds(), Step: d.state.step, Rule: rule.ID, Kind: rule.Kind, At: f.At,
		Target: target, Seen: seen, Numbers: f.Numbers, Texts: f.Texts, Cost: rule.Cost,
	})
}
