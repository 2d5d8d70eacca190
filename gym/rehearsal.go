package gym

import (
	"context"
	"time"

	"github.com/pommelgym/pommel/internal/episode"
	"github.com/pommelgym/pommel/internal/oracle"
	"github.com/pommelgym/pommel/internal/task"
	"github.com/pommelgym/pommel/internal/world"
)

// rehearsal is for how long tasks are played before a world is saved whose driver asks for it.
const rehearsal = 10 * time.Second

// rehearse plays tasks by their scripted solutions, one after the other without a reset in
// between: it matters what the world's programs are made to do, not what comes of it.
func (g *Gym) rehearse(ctx context.Context, w *world.World) error {
	deadline := time.Now().Add(rehearsal)
	for i, s := range g.rehearsed() {
		if i > 0 && time.Now().After(deadline) {
			break
		}
		g.play(ctx, w, s)
		// A task may not go well after another one; a world must.
		if err := w.Check(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// rehearsed are the tasks in the order in which they are played: what benchmarks play first.
func (g *Gym) rehearsed() []*task.Spec {
	var out []*task.Spec
	if s := g.suite.Find(g.spec.Bench.Task); s != nil {
		out = append(out, s)
	}
	for _, s := range g.suite.Tasks {
		if s.ID != g.spec.Bench.Task {
			out = append(out, s)
		}
	}
	return out
}

// play plays one task as far as it goes.
func (g *Gym) play(ctx context.Context, w *world.World, s *task.Spec) {
	ep, first, err := episode.Begin(ctx, episode.Deps{World: episodeWorld{w, g}, Spec: s, Release: func() {}}, Request{Task: s.ID})
	if err != nil {
		return
	}
	defer ep.End("rehearsed")
	_, _ = oracle.Run(ctx, ep.Instance(), oracleView(first.Observation, false), func(ctx context.Context, action string) (oracle.Obs, error) {
		r, err := ep.Step(ctx, action, ep.View())
		if err != nil {
			return oracle.Obs{}, err
		}
		return oracleView(r.Observation, r.Done()), nil
	})
}
