package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
)

// scripted is an episode of n steps on one page.
type scripted struct {
	n       int
	seed    int64
	obs     *gym.Observation
	actions []string
}

func (s *scripted) First() *gym.Result {
	return &gym.Result{Instruction: "Put 2 lamps into the cart", Observation: s.obs, Info: gym.Info{Task: "t", Seed: s.seed}}
}

func (s *scripted) Step(_ context.Context, a string) (*gym.Result, error) {
	s.actions = append(s.actions, a)
	r := s.First()
	r.Step, r.Truncated, r.Reward = len(s.actions), len(s.actions) == s.n, 0.5
	return r, nil
}

func (s *scripted) Oracle(ctx context.Context, _ Step) error {
	_, err := s.Step(ctx, "finish()")
	return err
}

func page() *gym.Observation {
	return &gym.Observation{Elements: []gym.Element{
		{Bid: "1", Role: "button", Tag: "button", Interactive: true},
		{Bid: "2", Role: "textbox", Tag: "input", Interactive: true},
		{Bid: "3", Role: "combobox", Tag: "select", Interactive: true},
		{Bid: "4", Role: "heading", Tag: "h1"},
		{Bid: "5", Role: "button", Tag: "button", Interactive: true, State: []string{"disabled"}},
	}}
}

func play(t *testing.T, seed int64) []string {
	t.Helper()
	a, err := New("random", seed)
	if err != nil {
		t.Fatal(err)
	}
	e := &scripted{n: 200, seed: 3, obs: page()}
	if err := a.Play(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e.actions
}

func TestRandomIsSeededAndActsOnWhatItSees(t *testing.T) {
	t.Parallel()
	one := play(t, 1)
	if diff := cmp.Diff(one, play(t, 1)); diff != "" {
		t.Errorf("one seed, two ways to play:\n%s", diff)
	}
	if cmp.Equal(one, play(t, 2)) {
		t.Error("seeds 1 and 2 play alike")
	}
	used := map[string]bool{}
	for _, a := range one {
		calls, err := action.Parse(a)
		if err != nil {
			t.Fatalf("%q: %v", a, err)
		}
		for _, c := range calls {
			used[c.Name] = true
			if tg, ok := c.Target("bid"); ok && (tg.Bid == "4" || tg.Bid == "5") {
				t.Errorf("%q acts on what cannot be used", a)
			}
		}
	}
	for _, want := range []string{"click", "fill", "press"} {
		if !used[want] {
			t.Errorf("in %d actions there is no %s", len(one), want)
		}
	}
}

func TestRandomAnswersDialogs(t *testing.T) {
	t.Parallel()
	e := &scripted{n: 5, obs: &gym.Observation{Dialog: &gym.Dialog{Type: "confirm"}}}
	a, _ := New("random", 0)
	if err := a.Play(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	for _, x := range e.actions {
		if !strings.HasPrefix(x, "dialog_") {
			t.Errorf("with a dialog open: %q", x)
		}
	}
}

func TestCommandSpeaksLines(t *testing.T) {
	t.Parallel()
	a, err := New(`cmd:sh -c 'n=0; while read line; do n=$((n+1)); case $line in *end*) ;; *) echo "{\"action\": \"noop($n)\"}" ;; esac; done'`, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for round := range 2 { // the program plays one episode after the other; each ends with a line of its own
		e := &scripted{n: 3, obs: &gym.Observation{}}
		if err := a.Play(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		first := 1 + round*4
		want := []string{fmt.Sprintf("noop(%d)", first), fmt.Sprintf("noop(%d)", first+1), fmt.Sprintf("noop(%d)", first+2)}
		if diff := cmp.Diff(want, e.actions); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCommandFailures(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"cmd:sh -c 'read x; echo hello; read x'": "expected one line",
		"cmd:sh -c 'read x'":                     "ended",
		"cmd:sh -c 'read x; echo {}; read x'":    "expected one line",
	} {
		a, err := New(program, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Play(t.Context(), &scripted{n: 3, obs: page()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", program, err, want)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "nobody", "cmd:"} {
		if _, err := New(name, 0); err == nil {
			t.Errorf("agent %q is taken", name)
		}
	}
}
