package episode

import (
	"context"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

// Held is an episode that a table holds.
type Held struct {
	EpisodeID string
	// Lease is how long its caller may be silent, Expires when it ends if nothing comes.
	Lease   time.Duration
	Expires time.Time
	// Busy says that a call is under way.
	Busy bool
}

// Held lists what the table holds. It waits for no call.
func (t *Table) Held() []Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Held, 0, len(t.byID))
	for id, e := range t.byID {
		out = append(out, Held{EpisodeID: id, Lease: e.lease, Expires: e.expires, Busy: len(e.turn) > 0})
	}
	return out
}

// Look is Observe for an onlooker: it is no sign of life of the caller's, and an episode
// that is in a call, or over, is left alone.
func (t *Table) Look(ctx context.Context, id string, view browser.View) (*browser.Observation, error) {
	if err := checkView(view); err != nil {
		return nil, err
	}
	e, err := t.lookup(id)
	if err != nil {
		return nil, err
	}
	select {
	case e.turn <- struct{}{}:
	default:
		return nil, fault.New(fault.ResourceExhausted, "episode %q is in a call", id).WithHint("look again later")
	}
	// The lease may have run out meanwhile, and whom it told then found the episode busy.
	defer t.rearm(e)
	defer func() { <-e.turn }()
	if _, err := t.lookup(id); err != nil {
		return nil, err
	}
	if e.failed != nil || e.over {
		return nil, fault.New(fault.EpisodeOver, "episode %q has ended", id)
	}
	ctx, cancel := context.WithTimeout(ctx, t.limits.Step)
	defer cancel()
	return e.live.Observe(ctx, view)
}

// rearm sets the timer of a lease again without renewing it.
func (t *Table) rearm(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[e.live.ID()] == e {
		e.timer.Reset(time.Until(e.expires))
	}
}
