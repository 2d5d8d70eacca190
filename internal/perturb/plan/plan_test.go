package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/perturb/profile"
)

func load(t *testing.T, ref string) *profile.Profile {
	t.Helper()
	p, err := profile.Load(ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parse(t *testing.T, text string) *profile.Profile {
	t.Helper()
	p, err := profile.Parse("p.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStrengthZeroIsNothing: such a plan is the same as none.
func TestStrengthZeroIsNothing(t *testing.T) {
	t.Parallel()
	for _, ref := range append([]string{"none", "calm", "mild@0%"}, zeroed()...) {
		for seed := range int64(50) {
			if p := Make(load(t, ref), "t", seed); p != nil {
				t.Fatalf("%s, seed %d: a plan with %d rules", ref, seed, len(p.Rules))
			}
		}
	}
}

func zeroed() (out []string) {
	for _, name := range profile.Shipped() {
		out = append(out, name+"@0")
	}
	return out
}

// TestPlansArePure: the same inputs give the same bytes, another seed gives others.
func TestPlansArePure(t *testing.T) {
	t.Parallel()
	text := func(seed int64) string {
		b, err := json.Marshal(Make(load(t, "hostile"), "t", seed))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if first, again := text(3), text(3); first != again {
		t.Error("one seed made two plans")
	}
	if text(3) == text(4) {
		t.Error("two seeds made one plan")
	}
}

// TestStreamsAreIndependent: a rule's part does not change when others come, go, or change.
func TestStreamsAreIndependent(t *testing.T) {
	t.Parallel()
	alone := parse(t, "name: a\nrules: [{kind: ui.toast, probability: 0.3}]\n")
	among := parse(t, "name: a\nrules: [{kind: http.error}, {kind: ui.survey, probability: 0}, {kind: ui.toast, probability: 0.3}, {kind: ui.newsletter, probability: 0.9}]\n")
	for seed := range int64(100) {
		a, b := find(Make(alone, "t", seed), "ui.toast"), find(Make(among, "t", seed), "ui.toast")
		if d := cmp.Diff(a, b, cmpopts.IgnoreTypes(&kind.Kind{})); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

func find(p *Plan, id string) *Rule {
	if p != nil {
		for i := range p.Rules {
			if p.Rules[i].ID == id {
				return &p.Rules[i]
			}
		}
	}
	return nil
}

// TestSettingsAreIndependent: what a profile says of one setting leaves the others alone.
func TestSettingsAreIndependent(t *testing.T) {
	t.Parallel()
	a := parse(t, "name: a\nrules: [{kind: ui.toast}]\n")
	b := parse(t, "name: a\nrules: [{kind: ui.toast, with: {words: heldout, delay: 7s}}]\n")
	for seed := range int64(50) {
		x, y := find(Make(a, "t", seed), "ui.toast"), find(Make(b, "t", seed), "ui.toast")
		for i := range x.Firings {
			if x.Firings[i].At != y.Firings[i].At || x.Firings[i].Pick != y.Firings[i].Pick || x.Firings[i].Numbers["stay"] != y.Firings[i].Numbers["stay"] {
				t.Fatalf("seed %d: %+v and %+v", seed, x.Firings[i], y.Firings[i])
			}
		}
	}
}

// TestStrengthOnlyAdds: what strikes at a low strength strikes at a high one too.
func TestStrengthOnlyAdds(t *testing.T) {
	t.Parallel()
	low := parse(t, "name: a\nstrength: 0.3\nrecovery: {steps: 200}\nrules: [{kind: ui.toast, limit: 100, probability: 0.5}]\n")
	high := parse(t, "name: a\nrecovery: {steps: 200}\nrules: [{kind: ui.toast, limit: 100, probability: 0.5}]\n")
	for seed := range int64(50) {
		strong := find(Make(high, "t", seed), "ui.toast")
		last := strong.Firings[len(strong.Firings)-1].At
		for _, f := range find(Make(low, "t", seed), "ui.toast").Firings {
			if f.At <= last && strong.Firing(f.At) == nil {
				t.Fatalf("seed %d: the weak one strikes at %d, the strong one does not", seed, f.At)
			}
		}
	}
}

// TestLimitsHold: limits, gaps, first points and tasks.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	p := parse(t, "name: a\nrecovery: {steps: 99}\nrules: [{kind: ui.toast, limit: 5, gap: 3, first: 4, probability: 1, targets: {tasks: [buy-*], not_tasks: [buy-nothing]}}]\n")
	for seed := range int64(20) {
		r := find(Make(p, "buy-item", seed), "ui.toast")
		var at []int
		for _, f := range r.Firings {
			at = append(at, f.At)
		}
		if d := cmp.Diff([]int{4, 8, 12, 16, 20}, at); d != "" {
			t.Fatal(d)
		}
		if Make(p, "sell-item", seed) != nil || Make(p, "buy-nothing", seed) != nil {
			t.Fatal("a rule strikes in a task that it is not for")
		}
	}
}

// TestCostsAreBounded: no plan asks for more than the profile allows.
func TestCostsAreBounded(t *testing.T) {
	t.Parallel()
	for _, name := range profile.Shipped() {
		p := load(t, name)
		for seed := range int64(300) {
			if m := Make(p, "t", seed); m != nil && m.Cost() > p.Recovery.Steps {
				t.Fatalf("%s, seed %d: costs %d", name, seed, m.Cost())
			}
		}
	}
}

// TestKnownPlan: a plan that was made once stays as it is.
func TestKnownPlan(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Make(parse(t, "name: a\nrules: [{kind: http.error, probability: 0.3, limit: 2}]\n"), "t", 1))
	if err != nil {
		t.Fatal(err)
	}
	const want = `"firings":[{"at":4,"numbers":{"repeat":1,"status":502},"pick":3518515888},{"at":8,"numbers":{"repeat":1,"status":502},"pick":1681715872}]`
	if !strings.Contains(string(b), want) {
		t.Errorf("got %s, want %s in it", b, want)
	}
}
