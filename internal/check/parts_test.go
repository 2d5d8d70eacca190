package check

import (
	"math"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/gym"
)

// What no task can break by its files is broken here by hand.

func played(change func(step int, r *gym.Result)) *run {
	r := &run{who: "a test"}
	for i := range 4 {
		x := &gym.Result{EpisodeID: "e", Step: i, Observation: &gym.Observation{URL: "http://127.0.0.1:8080/"}}
		x.Terminated = i == 3
		change(i, x)
		r.results = append(r.results, x)
	}
	return r
}

func TestContractIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(int, *gym.Result)
		want   string
	}{
		"good":          {func(int, *gym.Result) {}, ""},
		"NaN":           {func(i int, r *gym.Result) { r.Reward = math.NaN() }, "reward NaN"},
		"infinite":      {func(i int, r *gym.Result) { r.Reward = math.Inf(-1) }, "reward -Inf"},
		"above 1":       {func(i int, r *gym.Result) { r.Reward = 0.5 }, "sum to 1.5"},
		"steps":         {func(i int, r *gym.Result) { r.Step = 2 * i }, "step 1 calls itself 2"},
		"another id":    {func(i int, r *gym.Result) { r.EpisodeID = strings.Repeat("e", 1+i/2) }, "id changed at step 2"},
		"after the end": {func(i int, r *gym.Result) { r.Terminated = i > 1 }, "another followed"},
		"both ends":     {func(i int, r *gym.Result) { r.Truncated = i == 3 }, "terminated and truncated"},
	} {
		if got := broken(played(c.change)); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSchemaIsChecked(t *testing.T) {
	t.Parallel()
	good := func() map[string]any {
		return map[string]any{
			"url": "http://x/", "title": "", "tabs": []any{map[string]any{"index": 0, "url": "http://x/", "title": "", "active": true}},
			"focused_bid": "a12", "text": "", "last_action": "", "virtual_time_ms": 50.0,
			"elements": []any{map[string]any{"bid": "1", "role": "button", "box": []int{0, 0, 1, 1}, "tag": "button"}},
		}
	}
	if d, err := misfit(good()); d != "" || err != nil {
		t.Fatalf("a good observation: %s, %v", d, err)
	}
	for name, change := range map[string]func(map[string]any){
		"no text":        func(o map[string]any) { delete(o, "text") },
		"unknown field":  func(o map[string]any) { o["reward"] = 1 },
		"no tab":         func(o map[string]any) { o["tabs"] = []any{} },
		"negative time":  func(o map[string]any) { o["virtual_time_ms"] = -1 },
		"a bid of words": func(o map[string]any) { o["focused_bid"] = "the button" },
		"a short box":    func(o map[string]any) { o["elements"].([]any)[0].(map[string]any)["box"] = []int{1, 2} },
	} {
		o := good()
		change(o)
		if d, err := misfit(o); d == "" || err != nil {
			t.Errorf("%s passes: %v", name, err)
		}
	}
}

func TestEscapesAreSeen(t *testing.T) {
	t.Parallel()
	blocked := &gym.Result{Observation: &gym.Observation{URL: "http://127.0.0.1:8080/", LastActionError: &gym.ActionError{Kind: "blocked_url", Message: "m"}}}
	if d := escaped("file:///", blocked); d != "" {
		t.Errorf("blocked: %s", d)
	}
	for name, r := range map[string]*gym.Result{
		"a file with an error": {Observation: &gym.Observation{URL: "file:///etc/passwd", LastActionError: blocked.Observation.LastActionError}},
		"no error":             {Observation: &gym.Observation{URL: "http://127.0.0.1:5432/"}},
	} {
		if escaped("x", r) == "" {
			t.Errorf("%s is no escape", name)
		}
	}
}

func TestStagesInOrder(t *testing.T) {
	t.Parallel()
	stages := func(a, b int) *run {
		return played(func(i int, r *gym.Result) {
			r.Info.Stages = []gym.Stage{{Name: "a", Holds: i >= a}, {Name: "b", Holds: i >= b}}
		})
	}
	after := []gym.StageFacts{{Name: "a"}, {Name: "b", After: []string{"a"}}}
	for _, c := range []struct {
		a, b         int
		order, early bool
	}{{1, 2, false, false}, {2, 2, false, false}, {0, 0, false, false}, {2, 1, true, true}, {9, 1, false, true}} {
		r := stages(c.a, c.b)
		if got := outOfOrder(r) != ""; got != c.order {
			t.Errorf("a at %d, b at %d: out of order %v, want %v", c.a, c.b, got, c.order)
		}
		if got := tooEarly(r, after) != ""; got != c.early {
			t.Errorf("a at %d, b at %d: too early %v, want %v", c.a, c.b, got, c.early)
		}
	}
}

func TestSecretsAreSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secret string
		o      gym.Observation
		want   string
	}{
		"comment":         {"PX1234", gym.Observation{HTML: "<!-- px1234 -->"}, "the source"},
		"address":         {"PX1234", gym.Observation{URL: "http://x/?a=PX1234"}, "the address"},
		"can be read":     {"1234.50", gym.Observation{Text: "Total $1,234.50", HTML: "<b data-x=1234.50>"}, ""},
		"too short":       {"12", gym.Observation{HTML: "<p width=12>"}, ""},
		"is not there":    {"PX1234", gym.Observation{HTML: "<p>"}, ""},
		"spaces as &nbsp": {"two words", gym.Observation{HTML: "two&nbsp;words"}, "the source"},
	} {
		if got := lies(c.secret, &c.o); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
