package check

import (
	"context"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/agent"
	"github.com/pommelgym/pommel/internal/replay"
)

// run is one episode as it was played.
type run struct {
	seed    int64
	who     string
	results []*gym.Result // the reset's first
	scenes  []replay.Scene
	actions []string
	total   float64
	// gaveUp is why the agent ended early, if it did.
	gaveUp error
}

func (r *run) first() *gym.Result { return r.results[0] }
func (r *run) last() *gym.Result  { return r.results[len(r.results)-1] }

// won says that the episode was a success.
func (r *run) won() bool { return r.last().Done() && r.last().Info.Success }

// player is a running episode for an agent; it notes down what happens.
type player struct {
	env  *gym.Env
	run  *run
	each func(context.Context, *gym.Result) error
	lost error
}

// First is the answer to Reset.
func (p *player) First() *gym.Result { return p.run.first() }

// Step performs an action.
func (p *player) Step(ctx context.Context, action string) (*gym.Result, error) {
	r, err := p.env.Step(ctx, action)
	if err == nil {
		p.run.actions = append(p.run.actions, action)
		err = p.note(action, r)
	}
	if err == nil && p.each != nil {
		err = p.each(ctx, r)
	}
	if err != nil && gym.ErrorKind(err) != gym.EpisodeOver {
		p.lost = err
	}
	return r, err
}

// Oracle plays the task's scripted solution.
func (p *player) Oracle(ctx context.Context, step agent.Step) error {
	if step == nil {
		step = p.Step
	}
	return p.env.Oracle(ctx, step)
}

func (p *player) note(action string, r *gym.Result) error {
	s, err := replay.SceneOf(action, r)
	if err != nil {
		return err
	}
	p.run.scenes, p.run.results = append(p.run.scenes, s), append(p.run.results, r)
	p.run.total += r.Reward
	return nil
}

// play lets an agent play one episode. The error is a fault of the infrastructure.
func play(ctx context.Context, env *gym.Env, who string, req gym.Request, agent func(context.Context, *player) error) (*run, error) {
	first, err := env.Reset(ctx, req)
	if err != nil {
		return nil, err
	}
	p := &player{env: env, run: &run{seed: req.Seed, who: who}}
	if err := p.note("", first); err != nil {
		return nil, err
	}
	p.run.gaveUp = agent(ctx, p)
	if p.lost != nil {
		return nil, p.lost
	}
	return p.run, nil
}

// perform is an agent that makes the given actions.
func perform(actions ...string) func(context.Context, *player) error {
	return func(ctx context.Context, p *player) error {
		for _, a := range actions {
			r, err := p.Step(ctx, a)
			if err != nil || r.Done() {
				return err
			}
		}
		return nil
	}
}

// other plays an episode that is no oracle's and keeps it.
func (p *prover) other(ctx context.Context, who string, seed int64, steps int, agent func(context.Context, *player) error) (*run, error) {
	r, err := play(ctx, p.env, who, gym.Request{Task: p.task, Seed: seed, MaxSteps: steps, View: gym.View{Elements: true}}, agent)
	if err == nil {
		p.others = append(p.others, r)
	}
	return r, err
}
