package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/agent"
)

// doNothing: finishing at once is worth nothing.
func (p *prover) doNothing(ctx context.Context) (string, error) {
	for _, seed := range p.c.Seeds {
		r, err := p.other(ctx, "who does nothing", seed, 0, perform("noop()\nfinish()"))
		if err != nil {
			return "", err
		}
		if r.first().Info.Potential != 0 {
			return fmt.Sprintf("seed %d: stages hold before anything was done: %s", seed, r.first().Info.Verdict), nil
		}
		if r.total != 0 || r.won() {
			return fmt.Sprintf("seed %d: doing nothing got reward %.4g, success %v: %s", seed, r.total, r.won(), r.last().Info.Verdict), nil
		}
	}
	return "", nil
}

const (
	// randomSteps bounds a random episode; luck beyond it is rare and costs time.
	randomSteps = 15
	// randomReward is the most that random agents may earn on average.
	randomReward = 0.5
)

// random: chance does not solve the task.
func (p *prover) random(ctx context.Context) (string, error) {
	sum, won := 0.0, 0
	for i, seed := range p.c.Seeds {
		a, err := agent.New("random", int64(i))
		if err != nil {
			return "", err
		}
		r, err := p.other(ctx, "the random agent", seed, min(randomSteps, p.facts.MaxSteps), func(ctx context.Context, e *player) error { return a.Play(ctx, e) })
		if err != nil {
			return "", err
		}
		sum += r.total
		if r.won() {
			won++
		}
	}
	n := len(p.c.Seeds)
	if mean := sum / float64(n); won*3 > n || mean > randomReward {
		return fmt.Sprintf("the random agent succeeded in %d of %d episodes of at most %d steps and earned %.2f on average", won, n, randomSteps, mean), nil
	}
	return "", nil
}

// shortcut is an agent that does no work. One whose answer is a guess may hit by chance.
type shortcut struct {
	name  string
	guess bool
	run   func(context.Context, *player) error
}

// shortcuts: what is no work does not succeed.
func (p *prover) shortcuts(ctx context.Context) (string, error) {
	list := []shortcut{{name: "who reports the task infeasible", run: perform(`report_infeasible("it cannot be done")`)}}
	if p.facts.Answers {
		for _, a := range []string{"", "0", "1", "yes"} {
			list = append(list, shortcut{name: "who always answers " + action.Quote(a), guess: true, run: perform("finish(" + action.Quote(a) + ")")})
		}
		list = append(list, shortcut{name: "who answers with the instruction", run: func(ctx context.Context, e *player) error {
			return perform("finish("+action.Quote(e.First().Instruction)+")")(ctx, e)
		}}, shortcut{name: "who answers with the whole page", run: dump})
	}
	for _, s := range list {
		d, err := p.shortcut(ctx, s)
		if d != "" || err != nil {
			return d, err
		}
	}
	return "", nil
}

// guessSeeds is how many seeds decide about an answer that was right by chance.
const guessSeeds = 8

// shortcut tries one with every seed. No success is allowed, but for guesses, which may
// hit half of the time.
func (p *prover) shortcut(ctx context.Context, s shortcut) (string, error) {
	won := []int64{}
	seeds := slices.Clone(p.c.Seeds)
	for i := 0; i < len(seeds); i++ {
		r, err := p.other(ctx, s.name, seeds[i], 0, s.run)
		if err != nil {
			return "", err
		}
		if r.won() {
			won = append(won, seeds[i])
		}
		if !s.guess && len(won) > 0 {
			break
		}
		if i == len(p.c.Seeds)-1 && len(won) > 0 {
			for len(seeds) < guessSeeds {
				seeds = append(seeds, seeds[len(seeds)-1]+1)
			}
		}
	}
	if len(won) > 0 && (!s.guess || len(won)*2 > len(seeds)) {
		return fmt.Sprintf("%s succeeds with seeds %v of %v", s.name, won, seeds), nil
	}
	return "", nil
}

// dump answers with all that is on the page that the oracle would look at last.
func dump(ctx context.Context, e *player) error {
	var words []string
	for _, w := range strings.Fields(e.First().Observation.Text) {
		if !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return perform("finish("+action.Quote(strings.Join(words, " "))+")")(ctx, e)
}

// limits: an episode ends at its limit, which leaves room for more than the oracle's steps.
func (p *prover) limits(ctx context.Context) (string, error) {
	limit := p.facts.MaxSteps
	for _, r := range p.oracles {
		if need := room(len(r.actions)); limit < need {
			return fmt.Sprintf("seed %d: the oracle takes %d of %d steps; at least %d leave room for mistakes", r.seed, len(r.actions), limit, need), nil
		}
	}
	waits := make([]string, limit+1)
	for i := range waits {
		waits[i] = "noop()"
	}
	r, err := p.other(ctx, "who waits", p.c.Seeds[0], 0, perform(waits...))
	if err != nil {
		return "", err
	}
	if last := r.last(); len(r.actions) != limit || !last.Truncated || last.Terminated || r.total != 0 {
		return fmt.Sprintf("who waits was stopped after %d steps of %d: terminated %v, truncated %v, reward %.4g",
			len(r.actions), limit, last.Terminated, last.Truncated, r.total), nil
	}
	return "", nil
}

// room is the least limit for an oracle of n steps.
func room(n int) int { return n + max(2, n/4) }
