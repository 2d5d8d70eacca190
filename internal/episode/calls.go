package episode

import (
	"context"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

// Step, Checkpoint and Restore change an episode. They share one row of numbers, from 1,
// in which no number is ever used twice, also not after a Restore: so a repeated call is
// known from a new one whatever happened in between, and does nothing.

// numbered is one of these calls and its answer.
type numbered struct {
	n          int
	what       string // which call, and with what
	result     *Result
	checkpoint string
	err        error
}

// Step carries out an action as call n of an episode (0: the next one), once. It goes on
// to its end when the caller goes away, so that the caller's retry gets its result.
func (t *Table) Step(ctx context.Context, id string, n int, action string, view browser.View) (*Result, error) {
	if err := checkView(view); err != nil {
		return nil, err
	}
	c, err := t.numbered(ctx, id, n, "step "+action, func(ctx context.Context, e *entry, c *numbered) {
		if e.over {
			c.err = e.overError()
			return
		}
		if c.result, c.err = e.live.Step(ctx, action, view); c.err != nil {
			e.failed = c.err // whatever it is, the step may have been made in part
			return
		}
		e.last, e.over = c.result, c.result.Done()
		e.total += c.result.Reward
	})
	return c.result, err
}

// Checkpoint saves the state of an episode as call n, and names it.
func (t *Table) Checkpoint(ctx context.Context, id string, n int) (string, error) {
	c, err := t.numbered(ctx, id, n, "checkpoint", func(ctx context.Context, e *entry, c *numbered) {
		if c.checkpoint, c.err = e.live.Checkpoint(ctx); c.err == nil {
			e.saved[c.checkpoint] = e.total
		}
	})
	return c.checkpoint, err
}

// Restore puts an episode back to a checkpoint as call n. It returns what the agent saw then.
func (t *Table) Restore(ctx context.Context, id string, n int, checkpoint string) (*Result, error) {
	c, err := t.numbered(ctx, id, n, "restore "+checkpoint, func(ctx context.Context, e *entry, c *numbered) {
		if c.result, c.err = e.live.Restore(ctx, checkpoint); c.err == nil {
			e.last, e.over, e.total = c.result, false, e.saved[checkpoint]
		}
	})
	return c.result, err
}

// Forget frees a checkpoint. One that is not held is no error.
func (t *Table) Forget(ctx context.Context, id, checkpoint string) error {
	return t.with(ctx, id, func(e *entry) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.limits.Step)
		defer cancel()
		delete(e.saved, checkpoint)
		return e.live.Forget(ctx, checkpoint)
	})
}

func (t *Table) numbered(ctx context.Context, id string, n int, what string, f func(context.Context, *entry, *numbered)) (numbered, error) {
	var c numbered
	err := t.with(ctx, id, func(e *entry) error {
		var err error
		c, err = t.once(ctx, e, n, what, f)
		return err
	})
	return c, err
}

// once makes the call unless it was made before. A call that fails and leaves the episode
// as it was takes no number: repeating it does no harm.
func (t *Table) once(ctx context.Context, e *entry, n int, what string, f func(context.Context, *entry, *numbered)) (numbered, error) {
	last := e.call.n
	if n == 0 {
		n = last + 1
	}
	switch {
	case n == last && n > 0 && what != e.call.what:
		return numbered{}, fault.New(fault.InvalidArgument, "step %d was already made with another action", n).
			WithHint("a repeated step must repeat its action; %d is the next number", last+1)
	case n == last && n > 0:
		return e.call, e.call.err
	case n <= last:
		return numbered{}, fault.New(fault.StaleEpisode, "step %d is over; %d is the next number", n, last+1)
	case n > last+1:
		return numbered{}, fault.New(fault.InvalidArgument, "step %d is not next; step %d is", n, last+1)
	case e.failed != nil:
		return numbered{}, e.failed
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), t.limits.Step,
		fault.New(fault.WorldLost, "the call did not end within %v", t.limits.Step))
	defer cancel()
	c := numbered{n: n, what: what}
	f(ctx, e, &c)
	if k := fault.KindOf(c.err); k == fault.WorldLost || k == fault.Internal {
		e.failed = c.err
	}
	if c.err == nil || e.failed != nil {
		e.call = c
	}
	return c, c.err
}

func (e *entry) overError() error {
	if len(e.saved) > 0 {
		return fault.New(fault.EpisodeOver, "the episode has ended").WithHint("call Reset, or restore a checkpoint")
	}
	return fault.New(fault.EpisodeOver, "the episode has ended").WithHint("call Reset")
}
