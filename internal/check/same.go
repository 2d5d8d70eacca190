package check

import (
	"context"
	"fmt"
	"sync"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/replay"
)

// sameSeed: the oracle's actions with the same seed are the same episode, wherever.
func (p *prover) sameSeed(ctx context.Context) (string, error) {
	was := p.oracles[0]
	again, err := p.again(ctx, p.env, was)
	if err != nil {
		return "", err
	}
	if d := apart(was, again); d != "" {
		return "played again: " + d, nil
	}
	if err := p.env.End(); err != nil {
		return "", err
	}
	if d, err := p.together(ctx, was); d != "" || err != nil {
		return d, err
	}
	if p.c.Against == nil {
		return "", nil
	}
	env := p.c.Against.NewEnv()
	defer env.Close()
	other, err := p.again(ctx, env, was)
	if err != nil {
		return "", err
	}
	if d := apart(was, other); d != "" {
		return fmt.Sprintf("in a world of driver %s: %s", p.c.Against.Describe().Driver, d), nil
	}
	return "", nil
}

func (p *prover) again(ctx context.Context, env *gym.Env, was *run) (*run, error) {
	return play(ctx, env, "the oracle again", gym.Request{Task: p.task, Seed: was.seed, View: oracleView}, perform(was.actions...))
}

// together plays the episode in several worlds at once. The prover holds none meanwhile.
func (p *prover) together(ctx context.Context, was *run) (string, error) {
	runs, errs := make([]*run, p.c.Together), make([]error, p.c.Together)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			env := p.g.NewEnv()
			defer env.Close()
			runs[i], errs[i] = p.again(ctx, env, was)
		})
	}
	all.Wait()
	for i, r := range runs {
		if errs[i] != nil {
			return "", errs[i]
		}
		if d := apart(was, r); d != "" {
			return fmt.Sprintf("%d worlds at once: %s", len(runs), d), nil
		}
	}
	return "", nil
}

// apart says where two episodes part, or "".
func apart(was, is *run) string {
	for i := range min(len(was.results), len(is.results)) {
		if was.results[i].Info.ObservationHash != is.results[i].Info.ObservationHash {
			what := replay.Text(replay.Diff(was.scenes[i], is.scenes[i]))
			return fmt.Sprintf("seed %d parts at step %d %s\n%s", was.seed, i, was.scenes[i].Action, what)
		}
	}
	if len(was.results) != len(is.results) {
		return fmt.Sprintf("seed %d took %d steps and then %d", was.seed, len(was.results)-1, len(is.results)-1)
	}
	return ""
}

// moreSeeds is how many further seeds are looked at when those that were played agree:
// a parameter with few values draws the same for two seeds now and then.
const moreSeeds = 8

// seeds: seeds differ if the task has parameters.
func (p *prover) seeds(ctx context.Context) (string, error) {
	if len(p.facts.Params) == 0 {
		return "", nil
	}
	look := func(r *gym.Result) string { return r.Instruction + "\n" + r.Observation.Text }
	first := look(p.oracles[0].first())
	for _, r := range p.oracles {
		if look(r.first()) != first {
			return "", nil
		}
	}
	last := p.c.Seeds[len(p.c.Seeds)-1]
	for i := range int64(moreSeeds) {
		r, err := p.other(ctx, "who only looks", last+1+i, 0, perform())
		if err != nil {
			return "", err
		}
		if look(r.first()) != first {
			return "", nil
		}
	}
	return fmt.Sprintf("seeds %v and the %d after them all show the same page and ask for %q", p.c.Seeds, moreSeeds, p.oracles[0].first().Instruction), nil
}
