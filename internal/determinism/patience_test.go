package determinism

import (
	"strings"
	"testing"

	"github.com/pommelgym/pommel/gym"
)

// patience plays a page that takes half a minute: a timer of 30 s, a request after 5 s, an
// animation of 20 s, which a step ends at once like every animation that has an end.
func patience(tb testing.TB, env *gym.Env) string {
	tb.Helper()
	for _, action := range []string{`goto("/patience")`, "noop(31000)"} {
		r, err := env.Step(tb.Context(), action)
		if err != nil {
			tb.Fatal(err)
		}
		if e := r.Observation.LastActionError; e != nil {
			tb.Fatal(e)
		}
		if strings.HasPrefix(action, "noop") {
			return r.Observation.Text
		}
	}
	return ""
}

// TestPatience: all that a page does in half a minute has been done, in its order.
func TestPatience(t *testing.T) {
	t.Parallel()
	env := openWorld(t).NewEnv()
	defer env.Close()
	if _, err := env.Reset(testContext(t), gym.Request{Task: "note", Seed: 1, MaxSteps: 100}); err != nil {
		t.Fatal(err)
	}
	text := patience(t, env)
	for _, want := range []string{"half a minute", "answered 200", "moved at"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

// BenchmarkPatience is the wall time of that half minute, and of a minute of nothing.
func BenchmarkPatience(b *testing.B) {
	g, err := gym.Open(b.Context(), gym.Options{World: world, Worlds: 1, Traces: "off"})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	env := g.NewEnv()
	defer env.Close()
	if _, err := env.Reset(b.Context(), gym.Request{Task: "note", Seed: 1, MaxSteps: 1 << 30}); err != nil {
		b.Fatal(err)
	}
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			patience(b, env)
		}
	})
	b.Run("minute", func(b *testing.B) {
		for b.Loop() {
			if _, err := env.Step(b.Context(), "noop(60000)"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
