package episode

import (
	"testing"
	"testing/synctest"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

// Steps, checkpoints and restores share one row of numbers: a call that is repeated after
// its answer was lost is not made again, whatever was put back in between.
func TestRepeatedCallsAroundARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorlds{}
		tb := NewTable(w.start, Limits{})
		defer tb.Close()
		id, ctx := reset(t, tb, ResetCall{}).EpisodeID, t.Context()
		step := func(n int, action string) *Result {
			t.Helper()
			r, err := tb.Step(ctx, id, n, action, browser.View{})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		step(1, "a")
		for range 2 {
			if c, err := tb.Checkpoint(ctx, id, 2); err != nil || c != "c1" {
				t.Fatalf("checkpoint %q, %v", c, err)
			}
		}
		step(3, "b")
		if r := step(4, "c"); !r.Done() {
			t.Fatal("the third step ends the episode")
		}
		_, err := tb.Step(ctx, id, 5, "d", browser.View{})
		wantKind(t, err, fault.EpisodeOver)
		for range 2 {
			if r, err := tb.Restore(ctx, id, 5, "c1"); err != nil || r.Step != 1 {
				t.Fatalf("restore: %+v, %v", r, err)
			}
		}
		// A reply that comes late, from before the restore.
		_, err = tb.Step(ctx, id, 4, "c", browser.View{})
		wantKind(t, err, fault.StaleEpisode)
		_, err = tb.Restore(ctx, id, 6, "c9")
		wantKind(t, err, fault.NotFound)
		if r := step(6, "e"); r.Step != 2 {
			t.Errorf("step %d after the restore, want 2", r.Step)
		}
		_, err = tb.Restore(ctx, id, 5, "c1")
		wantKind(t, err, fault.StaleEpisode)
		if l := w.live(0); len(l.saved) != 1 || l.restores != 1 || len(l.steps) != 2 {
			t.Errorf("%d checkpoints, %d restores, steps %q", len(l.saved), l.restores, l.steps)
		}
		st, err := tb.Status(ctx, id)
		if err != nil || st.Steps != 2 || st.Calls != 6 || st.Reward != 1 {
			t.Errorf("status %+v, %v", st, err)
		}
	})
}
