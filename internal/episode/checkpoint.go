package episode

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/reward"
	"github.com/pommelgym/pommel/internal/trace"
	"github.com/pommelgym/pommel/internal/world"
)

// maxCheckpoints bounds how many an episode may hold; their memory is bounded by the world.
const maxCheckpoints = 256

// progress is how far an episode has come: all of it that is not in the world.
type progress struct {
	step  int
	total float64
	chain chain    // hash over the episode so far
	seen  int      // how many row changes are in it
	said  []string // messages to the user
	extra int      // steps that perturbations have given
	won   bool
	drift string // why the episode cannot be had again
	last  *Result
}

// checkpoint is a state of the episode that it can be put back to.
type checkpoint struct {
	world *world.Checkpoint
	at    progress
	judge *reward.State
	noise frictionState
}

// Checkpoint saves the state of now, of the world and of the episode, and names it. The
// episode may go back to it any number of times, also after it has ended; while it holds
// checkpoints its world stays taken until End.
func (e *Episode) Checkpoint(ctx context.Context) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return "", e.over()
	}
	if len(e.saved) >= maxCheckpoints {
		return "", fault.New(fault.ResourceExhausted, "the episode holds %d checkpoints, more it may not", len(e.saved)).WithHint("forget some first")
	}
	c, err := e.world.Checkpoint(ctx)
	if err != nil {
		return "", e.survive(ctx, err)
	}
	e.named++
	id := fmt.Sprintf("c%d", e.named)
	at := e.progress
	at.said = slices.Clone(at.said)
	e.saved[id] = checkpoint{world: c, at: at, judge: e.judge.State(), noise: e.friction.save()}
	e.rec.Mark(trace.Mark{Kind: trace.KindCheckpoint, Checkpoint: id, Step: e.step, At: trace.Now()})
	return id, nil
}

// Restore puts the world and the episode back to a checkpoint and returns what the agent
// saw then; the reward of that is 0. What happened since is undone.
func (e *Episode) Restore(ctx context.Context, id string) (*Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.saved[id]
	switch {
	case e.ended:
		return nil, e.over()
	case !ok:
		return nil, fault.New(fault.NotFound, "the episode has no checkpoint %q", id).WithHint("it has %v", slices.Sorted(maps.Keys(e.saved)))
	}
	report, err := e.world.Restore(ctx, c.world)
	if err != nil {
		return nil, e.survive(ctx, err)
	}
	e.progress, e.done = c.at, false
	e.said = slices.Clone(c.at.said)
	e.judge.Resume(c.judge)
	e.friction.resume(c.noise)
	res := *c.at.last
	res.Reward = 0
	ms := float64(report.Took.Microseconds()) / 1000
	res.Info.Timing = Timing{TotalMS: ms, ResetMS: ms}
	e.rec.Mark(trace.Mark{Kind: trace.KindRestore, Checkpoint: id, Step: e.step, At: trace.Now()})
	return &res, nil
}

// Forget frees a checkpoint. One that is not held is no error.
func (e *Episode) Forget(ctx context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.saved[id]
	if !ok || e.ended {
		return nil
	}
	delete(e.saved, id)
	e.world.Forget(ctx, c.world)
	if e.done && len(e.saved) == 0 {
		e.finish(endReason(e.last), "")
	}
	return nil
}

func (e *Episode) over() error {
	if len(e.saved) > 0 && !e.ended {
		return fault.New(fault.EpisodeOver, "the episode has ended").WithHint("call Reset, or restore a checkpoint")
	}
	return fault.New(fault.EpisodeOver, "the episode has ended").WithHint("call Reset")
}

// survive lets the episode go on after an error that left its world as it was.
func (e *Episode) survive(ctx context.Context, err error) error {
	switch fault.KindOf(err) {
	case fault.Unsupported, fault.ResourceExhausted, fault.Canceled:
		return err
	}
	err = e.cause(ctx, err)
	e.done = true
	e.finish("world_lost", err.Error())
	return err
}
