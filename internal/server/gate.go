package server

import (
	"context"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// gate is the gym as all surfaces see it: closed for new episodes once the server stops,
// and counted.
type gate struct {
	gym.Sessions
	s *Server
}

// Reset starts an episode unless the server is stopping.
func (g gate) Reset(ctx context.Context, r gym.SessionRequest) (*gym.Result, error) {
	if g.s.draining.Load() {
		return nil, wire.ErrShuttingDown
	}
	res, err := g.Sessions.Reset(ctx, r)
	if err == nil && g.s.ends.first("start "+res.EpisodeID) {
		g.s.metrics.Episode("started")
		g.s.metrics.Part(res.Info.Timing)
		g.s.log.Info("episode started", "episode", res.EpisodeID, "task", r.Task, "seed", r.Seed, "client", r.Client)
	}
	return res, err
}

// Step carries out a step.
func (g gate) Step(ctx context.Context, id string, n int, action string, view gym.View) (*gym.Result, error) {
	res, err := g.Sessions.Step(ctx, id, n, action, view)
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

func outcome(r *gym.Result) string {
	switch {
	case r.Info.Success:
		return "succeeded"
	case r.Truncated:
		return "truncated"
	}
	return "failed"
}
