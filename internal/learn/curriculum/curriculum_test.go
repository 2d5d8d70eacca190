package curriculum

import (
	"testing"

	"github.com/pommelgym/pommel/gym"
)

func three() []gym.TaskInfo {
	return []gym.TaskInfo{{ID: "a", MaxSteps: 10}, {ID: "b", MaxSteps: 10}, {ID: "c", MaxSteps: 40}}
}

// TestSeedsAreOfTheTrainingSplit: what is validated or tested is not practised.
func TestSeedsAreOfTheTrainingSplit(t *testing.T) {
	t.Parallel()
	c := New(three(), 30, 20, 7)
	for _, l := range c.Next(300, 2, 0, Calm{}) {
		if Split(l.Seed) != "train" {
			t.Fatalf("task %s is practised with seed %d of split %s", l.Task, l.Seed, Split(l.Seed))
		}
		if l.Limit > 20 {
			t.Fatalf("task %s may take %d steps; expected 20 at most", l.Task, l.Limit)
		}
	}
}

// TestMoreWhereThereIsMoreToLearn: a task between failure and success is played most, none is dropped.
func TestMoreWhereThereIsMoreToLearn(t *testing.T) {
	t.Parallel()
	c := New(three(), 8, 20, 1)
	for i := range 200 {
		c.Tell("a", true)
		c.Tell("b", i%2 == 0)
		c.Tell("c", i%40 == 0)
	}
	n := map[string]int{}
	for _, l := range c.Next(300, 1, 0, Calm{}) {
		n[l.Task]++
	}
	if n["b"] <= n["a"] || n["b"] <= n["c"] || n["a"] < 20 || n["c"] < 20 {
		t.Errorf("played %v; expected b most and none below 20", n)
	}
}

// TestGroupsShareTaskAndSeed: an episode's start can be kept and reached again.
func TestGroupsShareTaskAndSeed(t *testing.T) {
	t.Parallel()
	list := New(three(), 8, 20, 1).Next(24, 4, 0, Calm{})
	for i := 0; i < len(list); i += 4 {
		for _, l := range list[i : i+4] {
			if l.Task != list[i].Task || l.Seed != list[i].Seed {
				t.Fatalf("lesson %d: %+v in the group of %+v", i, l, list[i])
			}
		}
	}
}

func TestHelpWhereStuck(t *testing.T) {
	t.Parallel()
	c := New(three(), 8, 20, 1)
	for range 4 {
		c.Tell("a", false)
		c.Tell("b", true)
	}
	help := c.NeedHelp(4)
	if len(help) != 1 || help[0].Task != "a" {
		t.Fatalf("help for %+v; expected a alone", help)
	}
	if again := c.NeedHelp(4); len(again) != 0 {
		t.Errorf("help for %+v right after help", again)
	}
	if off := c.NeedHelp(0); len(off) != 0 {
		t.Errorf("help for %+v though it was switched off", off)
	}
}

func TestRamp(t *testing.T) {
	t.Parallel()
	r := Ramp{Profile: "rough", From: 0.2, To: 0.6}
	for progress, want := range map[float64]string{0: "", 0.2: "", 0.4: "rough@0.50", 0.6: "rough", 1: "rough"} {
		if got := r.At(progress); got != want {
			t.Errorf("at %.1f friction %q; expected %q", progress, got, want)
		}
	}
}
