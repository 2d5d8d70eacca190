package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
)

func result(id string, step int, reward float64) *gym.Result {
	return &gym.Result{EpisodeID: id, Step: step, Reward: reward, Observation: &gym.Observation{Text: fmt.Sprintf("text %d", step), LastAction: fmt.Sprintf("a%d()", step)}}
}

// TestRepeatedAnswersCountOnce: what a caller asks twice was done once.
func TestRepeatedAnswersCountOnce(t *testing.T) {
	t.Parallel()
	b := newBook()
	first, one := result("e", 0, 0), result("e", 1, 0.5)
	b.Began(gym.Request{Task: "buy"}, first)
	b.Began(gym.Request{Task: "buy"}, first)
	for range 2 {
		b.Doing("e", "a1()")
		b.Did("e", one, nil)
		b.Saved("e", "c1")
	}
	b.Did("e", result("e", 2, 0.25), nil)
	back := result("e", 1, 0)
	b.Restored("e", "c1", back)
	b.Restored("e", "c1", back)
	b.Did("e", result("e", 2, 0.125), nil)
	f, ok := b.film("e")
	if !ok || len(f.Rows) != 4 || len(f.Marks) != 2 || f.Head.Reward != 0.625 || f.Head.Steps != 2 || f.Rows[3].Total != 0.625 {
		t.Errorf("film = %+v", f)
	}
	if f.Marks[1] != (mark{Kind: "restore", Checkpoint: "c1", Step: 1, Before: 3}) {
		t.Errorf("marks = %+v", f.Marks)
	}
}

// TestEndsAreTold, whoever ended the episode.
func TestEndsAreTold(t *testing.T) {
	t.Parallel()
	b := newBook()
	for _, id := range []string{"won", "closed", "lost", "silent", "runs"} {
		b.Began(gym.Request{}, result(id, 0, 0))
	}
	won := result("won", 1, 1)
	won.Terminated, won.Info.Success = true, true
	b.Did("won", won, nil)
	b.Closed("won")
	b.Closed("closed")
	b.Did("lost", nil, fault.New(fault.WorldLost, "a process died"))
	b.Did("runs", nil, fault.New(fault.InvalidArgument, "step 9 is not next"))
	b.Sweep(func() map[string]bool {
		// One that begins while the table is asked is not among the answers, and runs.
		b.Began(gym.Request{}, result("late", 0, 0))
		return map[string]bool{"runs": true}
	})
	for id, want := range map[string]string{"won": "terminated", "closed": "closed", "lost": "world_lost", "silent": "lease_expired", "runs": "", "late": ""} {
		f, ok := b.film(id)
		if !ok || f.Head.End != want || f.Head.Live != (want == "") {
			t.Errorf("%s: %+v", id, f.Head)
		}
	}
}

// TestBookIsBounded: neither many episodes nor large texts make it grow without end.
func TestBookIsBounded(t *testing.T) {
	t.Parallel()
	b := newBook()
	text := strings.Repeat("x", 1<<20)
	b.Began(gym.Request{}, result("long", 0, 0))
	for i := range 100 {
		r := result("long", i+1, 0)
		r.Observation.Text = text
		b.Did("long", r, nil)
	}
	if b.bytes > maxDetails || len(b.live["long"].details) > maxDetails>>20 {
		t.Errorf("holds %d bytes in %d details", b.bytes, len(b.live["long"].details))
	}
	if _, kept, ok := b.detail("long", 1); kept || !ok {
		t.Errorf("the oldest detail: kept %v, known %v", kept, ok)
	}
	if d, kept, _ := b.detail("long", 100); !kept || d.Text != text {
		t.Error("the last detail is not there")
	}
	for i := range 3 * maxEnded {
		id := fmt.Sprint("e", i)
		b.Began(gym.Request{}, result(id, 0, 0))
		b.Closed(id)
	}
	if n := len(b.order); n != len(b.live) || n != maxEnded+1 {
		t.Errorf("%d in order, %d held", n, len(b.live))
	}
}
