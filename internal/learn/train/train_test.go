package train

import (
	"path/filepath"
	"testing"

	"github.com/pommelgym/pommel/internal/learn/batch"
)

func toyConfig(steps int) Config {
	return Config{World: "toy", Tasks: toyTasks(), Seed: 5, Steps: steps, Evaluate: 6, Tuning: Default()}
}

func toys(n int) []batch.Env {
	envs := make([]batch.Env, n)
	for i := range envs {
		envs[i] = &toy{}
	}
	return envs
}

func mustNew(t *testing.T, c Config, envs []batch.Env) *Trainer {
	t.Helper()
	tr, err := New(c, envs, Watch{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func mustRun(t *testing.T, tr *Trainer) *Outcome {
	t.Helper()
	if err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr.Outcome()
}

// TestLearnsFromNothing: from a policy that succeeds seldom to one that always does, on
// seeds that it has not seen.
func TestLearnsFromNothing(t *testing.T) {
	t.Parallel()
	c := toyConfig(1000)
	c.Seed = 2 // how soon the first success comes is a matter of luck, which is the seed's
	o := mustRun(t, mustNew(t, c, toys(2)))
	if o.SuccessStart > 0.5 || o.SuccessEnd < 1 {
		t.Errorf("success went from %.2f to %.2f; expected from below 0.5 to 1", o.SuccessStart, o.SuccessEnd)
	}
	if o.Steps < 1000 || o.Updates == 0 || len(o.Curve) != o.Updates {
		t.Errorf("%d steps, %d updates, %d points of the curve", o.Steps, o.Updates, len(o.Curve))
	}
}

// TestHintsHelpWhereStuck: without prior or luck, an oracle's episode now and then is enough.
func TestHintsHelpWhereStuck(t *testing.T) {
	t.Parallel()
	c := toyConfig(600)
	c.HintAfter, c.Seed = 4, 2
	o := mustRun(t, mustNew(t, c, toys(2)))
	if o.SuccessEnd < 1 {
		t.Errorf("success with hints is %.2f; expected 1", o.SuccessEnd)
	}
	for _, l := range o.ByTask {
		if l.Hints > 3 {
			t.Errorf("task %s had %d hints; at most 3 are given", l.Task, l.Hints)
		}
	}
}

// TestDemonstrationsTeach: a few steps of an oracle are enough.
func TestDemonstrationsTeach(t *testing.T) {
	t.Parallel()
	c := toyConfig(60)
	c.Demos = 3
	if o := mustRun(t, mustNew(t, c, toys(1))); o.SuccessEnd < 1 {
		t.Errorf("success after demonstrations is %.2f; expected 1", o.SuccessEnd)
	}
}

// TestSameSeedSamePolicy: neither the number of worlds nor faults of the infrastructure
// change what is learnt; another seed does.
func TestSameSeedSamePolicy(t *testing.T) {
	t.Parallel()
	one := mustRun(t, mustNew(t, toyConfig(400), toys(1)))
	many := toys(4)
	many[1].(*toy).fail = 97
	four := mustRun(t, mustNew(t, toyConfig(400), many))
	if one.Digest != four.Digest {
		t.Errorf("digest %s with one world, %s with four of which one is often lost", one.Digest, four.Digest)
	}
	c := toyConfig(400)
	c.Seed = 6
	if other := mustRun(t, mustNew(t, c, toys(1))); other.Digest == one.Digest {
		t.Errorf("seeds 5 and 6 gave one policy")
	}
}

// TestResumeIsExact: a training that was stopped, stored and resumed ends in the bits of one
// that was not.
func TestResumeIsExact(t *testing.T) {
	t.Parallel()
	whole := mustRun(t, mustNew(t, toyConfig(600), toys(2)))
	first := mustNew(t, toyConfig(300), toys(1))
	mustRun(t, first)
	file := filepath.Join(t.TempDir(), "policy.pommel")
	if err := first.Save(file); err != nil {
		t.Fatal(err)
	}
	second := mustNew(t, toyConfig(600), toys(3))
	if err := second.Resume(file); err != nil {
		t.Fatal(err)
	}
	o := mustRun(t, second)
	if o.Digest != whole.Digest || o.Steps != whole.Steps || o.Updates != whole.Updates {
		t.Errorf("resumed: digest %s, %d steps, %d updates; without a break: %s, %d, %d", o.Digest, o.Steps, o.Updates, whole.Digest, whole.Steps, whole.Updates)
	}
	other := toyConfig(600)
	other.Seed = 1
	if err := mustNew(t, other, toys(1)).Resume(file); err == nil {
		t.Error("a training with another seed was resumed")
	}
}
