// Package plan makes the schedule of an episode's perturbations before it begins. It is
// a pure function of profile, task and seed.
package plan

import (
	"path"
	"slices"
	"time"

	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/perturb/profile"
	"github.com/pommelgym/pommel/internal/perturb/stream"
)

// horizon is up to which decision point of each sort plans reach.
const horizon = 400

// Plan is the schedule of one episode.
type Plan struct {
	Profile  string  `json:"profile"`
	Strength float64 `json:"strength"`
	Task     string  `json:"task,omitempty"`
	Seed     int64   `json:"seed"`
	// Tell is what the instruction says in addition.
	Tell  string `json:"tell,omitempty"`
	Rules []Rule `json:"rules"`
}

// Rule is one rule's part of it.
type Rule struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind"`
	Point   kind.Point      `json:"point"`
	Cost    int             `json:"cost"`
	Targets profile.Targets `json:"targets"`
	// After and Until bound it in virtual time, in milliseconds; 0 as Until is no bound.
	After   int64    `json:"after_ms,omitempty"`
	Until   int64    `json:"until_ms,omitempty"`
	Firings []Firing `json:"firings"`

	Of *kind.Kind `json:"-"`
}

// Firing is one strike.
type Firing struct {
	// At is the decision point, from 1: the nth request, page or step.
	At int `json:"at"`
	// Numbers hold durations in milliseconds and numbers, Texts texts.
	Numbers map[string]int    `json:"numbers,omitempty"`
	Texts   map[string]string `json:"texts,omitempty"`
	// Pick chooses among what is found when it strikes: a wording, a control.
	Pick uint32 `json:"pick"`
}

// Make makes the plan of an episode; nil when nothing can happen in it, which is exactly
// as if there were no profile.
func Make(p *profile.Profile, task string, seed int64) *Plan {
	if p == nil {
		return nil
	}
	out := &Plan{Profile: p.Name, Strength: 1, Task: task, Seed: seed, Tell: p.Tell}
	if p.Strength != nil {
		out.Strength = *p.Strength
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		if p.Chance(r) <= 0 || !applies(r.Targets, task) {
			continue
		}
		if made := makeRule(p, r, seed); len(made.Firings) > 0 {
			out.Rules = append(out.Rules, made)
		}
	}
	if len(out.Rules) == 0 {
		return nil
	}
	return out
}

// applies says whether a rule is about a task; "" is any.
func applies(t profile.Targets, task string) bool {
	if task == "" {
		return true
	}
	match := func(pattern string) bool { ok, err := path.Match(pattern, task); return ok && err == nil }
	if slices.ContainsFunc(t.NotTasks, match) {
		return false
	}
	return len(t.Tasks) == 0 || slices.ContainsFunc(t.Tasks, match)
}

func makeRule(p *profile.Profile, r *profile.Rule, seed int64) Rule {
	k := r.Of()
	out := Rule{
		ID: r.ID, Kind: r.Kind, Point: k.Point, Cost: k.Cost, Targets: r.Targets, Of: k,
		After: r.Window.After.Milliseconds(), Until: r.Window.Until.Milliseconds(),
	}
	if k.Point == kind.Request {
		if len(out.Targets.Types) == 0 {
			out.Targets.Types = k.Types
		}
		if len(out.Targets.Methods) == 0 {
			out.Targets.Methods = k.Methods
		}
	}
	chance, strength := p.Chance(r), p.StrengthOf(r)
	for n := r.First; n <= horizon && len(out.Firings) < r.MostOf(); n++ {
		s := stream.New(seed, r.ID, n)
		if s.Float() >= chance {
			continue
		}
		out.Firings = append(out.Firings, draw(s, r, n, strength))
		n += r.Gap
	}
	return out
}

// draw draws the settings in the order of the catalogue, so that what a profile says of
// one leaves the others alone.
func draw(s *stream.Stream, r *profile.Rule, at int, strength float64) Firing {
	f := Firing{At: at, Pick: uint32(s.Next() >> 32)}
	for _, set := range r.Of().Settings {
		u := s.Float()
		c, ok := r.With[set.Name]
		if !ok {
			c = profile.Choice{Values: set.Default}
		}
		if set.Type == kind.Text {
			if f.Texts == nil {
				f.Texts = map[string]string{}
			}
			f.Texts[set.Name] = pick(c.Values, u)
			continue
		}
		v := amount(set, c, u)
		if set.Type == kind.Duration {
			v = max(set.Min, int(float64(v)*strength+0.5))
		}
		if f.Numbers == nil {
			f.Numbers = map[string]int{}
		}
		f.Numbers[set.Name] = v
	}
	return f
}

func pick(values []string, u float64) string {
	return values[min(int(u*float64(len(values))), len(values)-1)]
}

func amount(set kind.Setting, c profile.Choice, u float64) int {
	if !c.Range {
		v, _ := profile.Amount(set.Type, pick(c.Values, u)) // it was checked when it was read
		return v
	}
	from, _ := profile.Amount(set.Type, c.From)
	to, _ := profile.Amount(set.Type, c.To)
	return from + min(int(u*float64(to-from+1)), to-from)
}

// Cost is how many steps all of it may take to get over.
func (p *Plan) Cost() int {
	n := 0
	for i := range p.Rules {
		n += p.Rules[i].Cost * len(p.Rules[i].Firings)
	}
	return n
}

// Window says whether virtual time now, since the episode began, lies in the rule's.
func (r *Rule) Window(now time.Duration) bool {
	ms := now.Milliseconds()
	return ms >= r.After && (r.Until == 0 || ms < r.Until)
}

// Firing is the rule's firing at a decision point, or nil.
func (r *Rule) Firing(at int) *Firing {
	for i := range r.Firings {
		if r.Firings[i].At == at {
			return &r.Firings[i]
		}
	}
	return nil
}
