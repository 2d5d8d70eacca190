package profile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]*$`)

// checker collects mistakes.
type checker struct {
	p    *Profile
	errs yamlfile.Errors
}

func (c *checker) fail(n *yamlfile.Node, field, hint, format string, args ...any) {
	at := n
	if v := n.Get(field); v != nil {
		at = v
	}
	e := at.Errorf(format, args...)
	e.Hint = hint
	c.errs = append(c.errs, e)
}

// validate finds the rules' kinds and refuses what cannot be meant, and what no agent
// could get over.
func validate(p *Profile, own []kind.Kind) error {
	c := &checker{p: p}
	root := p.file.Root
	if !nameForm.MatchString(p.Name) {
		c.fail(root, "name", "", "expected small letters, digits, - and _, got %q", p.Name)
	}
	if p.Strength != nil {
		c.unit(root, "strength", *p.Strength)
	}
	seen := map[string]bool{}
	for i := range p.Rules {
		r := &p.Rules[i]
		if seen[r.ID] {
			c.fail(r.node, "kind", "give it an id of its own: the id names its random stream", "there is a rule %q already", r.ID)
		}
		seen[r.ID] = true
		c.rule(r, own)
	}
	for i := range p.Schedule {
		n := p.file.Node(fmt.Sprintf("schedule[%d]", i))
		c.unit(n, "at", p.Schedule[i].At)
		c.unit(n, "strength", p.Schedule[i].Strength)
		if i > 0 && p.Schedule[i].At <= p.Schedule[i-1].At {
			c.fail(n, "at", "", "expected more than the %g of the stage before", p.Schedule[i-1].At)
		}
	}
	c.solvable(root)
	if len(c.errs) > 0 {
		return c.errs
	}
	return nil
}

func (c *checker) unit(n *yamlfile.Node, field string, v float64) {
	if !(v >= 0 && v <= 1) {
		c.fail(n, field, "", "expected a number from 0 to 1, got %g", v)
	}
}

func (c *checker) rule(r *Rule, own []kind.Kind) {
	k, ok := kind.Find(r.Kind)
	for i := range own {
		if own[i].Name == r.Kind {
			k, ok = &own[i], true
		}
	}
	if !ok {
		names := kind.Names()
		for _, o := range own {
			names = append(names, o.Name)
		}
		c.fail(r.node, "kind", "known are "+strings.Join(names, ", "), "there is no kind %q", r.Kind)
		return
	}
	r.kind = k
	if r.Strength != nil {
		c.unit(r.node, "strength", *r.Strength)
	}
	if r.Probability != nil {
		c.unit(r.node, "probability", *r.Probability)
	}
	if r.MostOf() < 1 || r.MostOf() > 100 {
		c.fail(r.node, "limit", "", "expected 1 to 100 firings, got %d", r.MostOf())
	}
	if r.Gap < 0 {
		c.fail(r.node, "gap", "", "expected 0 or more, got %d", r.Gap)
	}
	if r.Window.Until != 0 && r.Window.Until <= r.Window.After {
		c.fail(r.node, "window", "", "expected until to be later than after")
	}
	c.targets(r)
	for name, choice := range r.With {
		c.setting(r, name, choice)
	}
}

func (c *checker) targets(r *Rule) {
	n := r.node.Get("targets")
	if n == nil {
		return
	}
	t, isRequest := r.Targets, r.kind.Point == kind.Request
	if !isRequest && len(t.Methods)+len(t.Types) > 0 {
		c.fail(r.node, "targets", "name methods and types for http kinds only", "%s is not about requests", r.Kind)
	}
	if isRequest && len(t.Roles)+len(t.Selectors) > 0 {
		c.fail(r.node, "targets", "name urls, methods and types", "%s is about requests, not controls", r.Kind)
	}
	for _, v := range t.Types {
		if !slices.Contains(kind.RequestTypes, v) {
			c.fail(n, "types", "known are "+strings.Join(kind.RequestTypes, ", "), "there is no type %q", v)
		}
	}
	for _, u := range t.URLs {
		if !strings.HasPrefix(u, "/") && !strings.HasPrefix(u, "*") {
			c.fail(n, "urls", "", "expected a path such as /cart* or a pattern that starts with *, got %q", u)
		}
	}
}

func (c *checker) setting(r *Rule, name string, choice Choice) {
	n := r.node.Get("with")
	s, ok := r.kind.Setting(name)
	if !ok {
		var known []string
		for _, s := range r.kind.Settings {
			known = append(known, s.Name)
		}
		c.fail(n, name, "known are: "+strings.Join(known, ", "), "%s has no setting %q", r.Kind, name)
		return
	}
	values := choice.Values
	if choice.Range {
		values = []string{choice.From, choice.To}
		if s.Type == kind.Text {
			c.fail(n, name, "", "a text has no range: expected a list")
			return
		}
	}
	var numbers []int
	for _, v := range values {
		if s.Type == kind.Text {
			if len(s.Choices) > 0 && !slices.Contains(s.Choices, v) {
				c.fail(n, name, "", "expected one of %s, got %q", strings.Join(s.Choices, ", "), v)
			}
			continue
		}
		x, err := Amount(s.Type, v)
		if err != nil || x < s.Min || s.Max > 0 && x > s.Max {
			c.fail(n, name, "", "expected %s, got %q", expected(s), v)
			continue
		}
		numbers = append(numbers, x)
	}
	if choice.Range && len(numbers) == 2 && numbers[1] < numbers[0] {
		c.fail(n, name, "", "expected from to be no more than to")
	}
}

func expected(s kind.Setting) string {
	what := "a whole number"
	if s.Type == kind.Duration {
		what = "a duration such as 300ms or 5s"
		return fmt.Sprintf("%s, %v to %v", what, time.Duration(s.Min)*time.Millisecond, time.Duration(s.Max)*time.Millisecond)
	}
	return fmt.Sprintf("%s, %d to %d", what, s.Min, s.Max)
}

// Amount reads a duration as milliseconds, or a number.
func Amount(t kind.Type, text string) (int, error) {
	if t == kind.Duration {
		d, err := time.ParseDuration(text)
		return int(d.Milliseconds()), err
	}
	return strconv.Atoi(text)
}

// solvable refuses what could not be got over: more friction than the recovery that the
// profile allows for, or the same request failing more often in a row than one tries.
func (c *checker) solvable(root *yamlfile.Node) {
	total := 0
	for i := range c.p.Rules {
		r := &c.p.Rules[i]
		if r.kind == nil {
			continue
		}
		total += r.kind.Cost * r.MostOf()
		most := repeatsOf(r)
		if r.kind.Point == kind.Request && r.kind.Cost > 0 && r.Gap == 0 && r.Probability != nil && *r.Probability > 0.5 {
			most = max(most, r.MostOf())
		}
		if most > c.p.Recovery.Tries {
			c.fail(r.node, "kind", "raise recovery.tries, or give the rule a gap, a lower limit or repeat",
				"%s could fail %d times in a row, more often than the %d tries of recovery", r.ID, most, c.p.Recovery.Tries)
		}
	}
	if total > c.p.Recovery.Steps {
		c.fail(root, "recovery", "lower limits, or raise recovery.steps",
			"the rules could take %d steps to get over, more than the %d of recovery.steps", total, c.p.Recovery.Steps)
	}
}

func repeatsOf(r *Rule) int {
	s, ok := r.kind.Setting("repeat")
	if !ok {
		return 1
	}
	values := s.Default
	if c, set := r.With["repeat"]; set {
		values = c.Values
		if c.Range {
			values = []string{c.To}
		}
	}
	most := 1
	for _, v := range values {
		if n, err := strconv.Atoi(v); err == nil {
			most = max(most, n)
		}
	}
	return most
}
