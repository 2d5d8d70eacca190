package episode

import (
	"context"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/reward"
	"github.com/pommelgym/pommel/internal/task"
)

// opening is what belongs to a kept start of an episode beside the world: parameters, the
// first observation and verdict. None of it changes.
type opening struct {
	inst  *task.Instance
	judge *reward.State
	at    progress
}

// reopen begins the episode in a world that stands where the same episode began before.
// The answer is that of the first time, and so is the state of the world, byte for byte.
func (e *Episode) reopen(ctx context.Context, d Deps, r Request, o *opening) (*Result, error) {
	// It may have stood there for long.
	if err := e.world.Check(ctx); err != nil {
		return nil, err
	}
	e.setTask(o.inst, r)
	e.judge.Resume(o.judge)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress = o.at
	first := *o.at.last
	first.EpisodeID = e.id
	e.last = &first
	e.begun(d, r)
	return &first, nil
}

// keepStart has the world saved as it stands now, so that the same episode begins there
// the next time.
func (e *Episode) keepStart(ctx context.Context, d Deps) error {
	if d.StartKey == "" {
		return nil
	}
	o := &opening{inst: e.inst, judge: e.judge.State(), at: e.progress}
	err := e.world.KeepStart(ctx, d.StartKey, o)
	if fault.KindOf(err) == fault.WorldLost {
		return err
	}
	return nil // it begins the long way again
}
