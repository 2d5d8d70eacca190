package gym

import (
	"context"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/episode"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/perturb/profile"
)

// SessionLimits bound what callers of a Table may take; zero fields are defaults.
type SessionLimits struct {
	// Lease is how long a caller may be silent; 60 s. MaxLease is the most it may ask for; 1 h.
	Lease, MaxLease time.Duration
	// Step bounds one step; 60 s. Wait bounds the wait for a free world; 60 s.
	Step, Wait time.Duration
}

// Table implements Sessions on a Gym.
type Table struct {
	g *Gym
	t *episode.Table
}

var _ Sessions = (*Table)(nil)

// Sessions makes a table of leased episodes over the gym's worlds.
func (g *Gym) Sessions(l SessionLimits) *Table {
	start := func(ctx context.Context, r Request, wait time.Duration) (episode.Live, *Result, error) {
		ep, res, err := g.begin(ctx, r, wait)
		if err != nil {
			return nil, nil, err
		}
		return ep, res, nil
	}
	return &Table{g: g, t: episode.NewTable(start, episode.Limits{Lease: l.Lease, MaxLease: l.MaxLease, Step: l.Step, Wait: l.Wait})}
}

// Reset starts an episode; see Sessions.
func (t *Table) Reset(ctx context.Context, r SessionRequest) (*Result, error) {
	if !profile.IsBuiltIn(r.Profile) {
		return nil, fault.New(fault.InvalidArgument, "profile %q is none that callers may name", r.Profile).
			WithHint("want one of %s, with @0.5 or @40%% behind it if need be; files are for who runs the server", strings.Join(profile.Shipped(), ", "))
	}
	return t.t.Reset(ctx, episode.ResetCall{Request: r.Request, RequestID: r.RequestID, Previous: r.Previous, Wait: r.Wait, Lease: r.Lease})
}

// Step performs step n; see Sessions.
func (t *Table) Step(ctx context.Context, id string, n int, action string, view View) (*Result, error) {
	return t.t.Step(ctx, id, n, action, view)
}

// Checkpoint saves the state of the episode; see Sessions.
func (t *Table) Checkpoint(ctx context.Context, id string, n int) (string, error) {
	return t.t.Checkpoint(ctx, id, n)
}

// Restore puts the episode back to a checkpoint; see Sessions.
func (t *Table) Restore(ctx context.Context, id string, n int, checkpoint string) (*Result, error) {
	return t.t.Restore(ctx, id, n, checkpoint)
}

// Forget frees a checkpoint.
func (t *Table) Forget(ctx context.Context, id, checkpoint string) error {
	return t.t.Forget(ctx, id, checkpoint)
}

// Observe looks again without a step.
func (t *Table) Observe(ctx context.Context, id string, view View) (*Observation, error) {
	return t.t.Observe(ctx, id, view)
}

// Status tells how far an episode is.
func (t *Table) Status(ctx context.Context, id string) (*Status, error) { return t.t.Status(ctx, id) }

// Held lists the episodes that are held.
func (t *Table) Held() []Held { return t.t.Held() }

// Look observes for an onlooker; see Sessions.
func (t *Table) Look(ctx context.Context, id string, view View) (*Observation, error) {
	return t.t.Look(ctx, id, view)
}

// Heartbeat renews the lease.
func (t *Table) Heartbeat(ctx context.Context, id string) (time.Duration, error) {
	return t.t.Heartbeat(ctx, id)
}

// CloseEpisode frees the episode's world.
func (t *Table) CloseEpisode(ctx context.Context, id string) error { return t.t.CloseEpisode(ctx, id) }

// Tasks lists the tasks.
func (t *Table) Tasks(split, difficulty string) ([]TaskInfo, error) {
	return t.g.Select(split, difficulty, nil)
}

// Describe tells what the server runs.
func (t *Table) Describe() Description {
	d := t.g.Describe()
	d.Lease = t.t.Lease()
	return d
}

// Drain refuses new episodes and waits for those that run.
func (t *Table) Drain(ctx context.Context) error { return t.t.Drain(ctx) }

// Close ends all episodes.
func (t *Table) Close() { t.t.Close() }
