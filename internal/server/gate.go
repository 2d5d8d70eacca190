package server

import (
	"context"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// gate is the gym as all surfaces see it: closed for new episodes once the server stops,
// counted, and written down for the dashboard.
type gate struct {
	gym.Sessions
	s *Server
}

// Reset starts an episode unless the server is stopping.
func (g gate) Reset(ctx context.Context, r gym.SessionRequest) (*gym.Result, error) {
	if g.s.draining.Load() {
		return nil, wire.ErrShuttingDown
	}
	ctx, end := g.s.spans.Reset(ctx, r)
	res, err := g.Sessions.Reset(ctx, r)
	end(res, err)
	if err == nil && g.s.ends.first("start "+res.EpisodeID) {
		g.s.metrics.Episode("started")
		g.s.metrics.Part(res.Info.Timing)
		g.s.dashboard.Book().Began(r.Request, res)
		g.s.log.Info("episode started", "episode", res.EpisodeID, "task", r.Task, "seed", r.Seed, "client", r.Client)
	}
	return res, err
}

// Step carries out a step.
func (g gate) Step(ctx context.Context, id string, n int, action string, view gym.View) (*gym.Result, error) {
	g.s.dashboard.Book().Doing(id, action)
	ctx, end := g.s.spans.Step(ctx, id, action)
	res, err := g.Sessions.Step(ctx, id, n, action, view)
	end(res, err)
	g.s.dashboard.Book().Did(id, res, err)
	switch {
	case fault.KindOf(err) == fault.WorldLost && g.s.ends.first(id):
		g.s.metrics.Episode("void")
	case err == nil && res.Done() && g.s.ends.first(id):
		g.s.metrics.Episode(outcome(res))
		g.s.log.Info("episode ended", "episode", id, "steps", res.Step, "success", res.Info.Success, "truncated", res.Truncated)
	}
	if err == nil {
		g.s.metrics.Part(res.Info.Timing)
	}
	return res, err
}

// Checkpoint saves the state of an episode.
func (g gate) Checkpoint(ctx context.Context, id string, n int) (string, error) {
	name, err := g.Sessions.Checkpoint(ctx, id, n)
	if err == nil {
		g.s.dashboard.Book().Saved(id, name)
	}
	return name, err
}

// Restore puts an episode back to a checkpoint.
func (g gate) Restore(ctx context.Context, id string, n int, checkpoint string) (*gym.Result, error) {
	res, err := g.Sessions.Restore(ctx, id, n, checkpoint)
	if err == nil {
		g.s.dashboard.Book().Restored(id, checkpoint, res)
	}
	return res, err
}

// CloseEpisode gives an episode's world back.
func (g gate) CloseEpisode(ctx context.Context, id string) error {
	err := g.Sessions.CloseEpisode(ctx, id)
	if err == nil {
		g.s.dashboard.Book().Closed(id)
	}
	return err
}

func outcome(r *gym.Result) string {
	switch {
	case r.Info.Success:
		return "succeeded"
	case r.Truncated:
		return "truncated"
	}
	return "failed"
}
