package check

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/gym"
)

// oracleView has all that the other checks want to look at.
var oracleView = gym.View{Elements: true, HTML: true}

// playOracles plays the scripted solution for every seed, and asks the judge on the way.
func (p *prover) playOracles(ctx context.Context) error {
	for _, seed := range p.c.Seeds {
		r, err := play(ctx, p.env, "the oracle", gym.Request{Task: p.task, Seed: seed, View: oracleView}, func(ctx context.Context, e *player) error {
			var err error
			if p.facts.Params == nil {
				if p.facts, err = p.env.Facts(); err != nil {
					return err
				}
			}
			e.each = p.judgeTwice
			return e.Oracle(ctx, nil)
		})
		if err != nil {
			return err
		}
		p.oracles = append(p.oracles, r)
	}
	return nil
}

// oracle: the scripted solution reaches success and a reward of 1.
func (p *prover) oracle(context.Context) (string, error) { return p.solved(), nil }

func (p *prover) solved() string {
	for _, r := range p.oracles {
		last := r.last()
		switch {
		case r.gaveUp != nil:
			return fmt.Sprintf("seed %d: the oracle failed: %v", r.seed, r.gaveUp)
		case !last.Done():
			return fmt.Sprintf("seed %d: the oracle ended without finish()", r.seed)
		case !last.Info.Success || math.Abs(r.total-1) > 1e-9:
			return fmt.Sprintf("seed %d: the oracle got reward %.4g, success %v; collateral %v; verdict %s",
				r.seed, r.total, last.Info.Success, last.Info.Collateral, last.Info.Verdict)
		}
	}
	return ""
}

// judgeTwice asks the judge twice about one state; it must answer the same.
func (p *prover) judgeTwice(ctx context.Context, r *gym.Result) error {
	if p.impure != "" || r.Done() {
		return nil
	}
	a, err := p.env.Judge(ctx)
	if err != nil {
		return err
	}
	b, err := p.env.Judge(ctx)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		p.impure = fmt.Sprintf("step %d: asked twice about one state, the judge answered %s and %s", r.Step, a, b)
	}
	return nil
}

func (p *prover) pure(context.Context) (string, error) { return p.impure, nil }

// order: the stages come in the order of the file, and after those that they wait for.
func (p *prover) order(context.Context) (string, error) {
	for _, r := range p.oracles {
		if d := outOfOrder(r); d != "" {
			return d, nil
		}
	}
	for _, r := range slices.Concat(p.oracles, p.others) {
		if d := tooEarly(r, p.facts.Stages); d != "" {
			return d, nil
		}
	}
	return "", nil
}

// outOfOrder: a stage that first held before one that stands above it.
func outOfOrder(r *run) string {
	held, before := -1, ""
	for i, s := range r.first().Info.Stages {
		at := slices.IndexFunc(r.results, func(x *gym.Result) bool { return x.Info.Stages[i].Holds })
		if at < 0 {
			continue
		}
		if at < held {
			return fmt.Sprintf("seed %d: stage %s held at step %d and %s, which stands above it, at step %d", r.seed, s.Name, at, before, held)
		}
		held, before = at, s.Name
	}
	return ""
}

// tooEarly: a stage that counted although one that it names in after never had.
func tooEarly(r *run, stages []gym.StageFacts) string {
	held := map[string]bool{}
	for _, x := range r.results {
		for _, s := range x.Info.Stages {
			held[s.Name] = held[s.Name] || s.Holds
		}
		for _, s := range stages {
			for _, a := range s.After {
				if held[s.Name] && !held[a] {
					return fmt.Sprintf("seed %d, %s, step %d: stage %s counted before %s", r.seed, r.who, x.Step, s.Name, a)
				}
			}
		}
	}
	return ""
}

// instruction: what is asked for, what is judged and what was done fit together.
func (p *prover) instruction(context.Context) (string, error) {
	switch f := p.facts; {
	case len(f.Unjudged) > 0:
		return fmt.Sprintf("the instruction names %s, but neither the judge nor the setup nor the start depends on it", strings.Join(f.Unjudged, ", ")), nil
	case len(f.Unsaid) > 0:
		return fmt.Sprintf("the judge expects %s, which the instruction does not tell and the setup does not show", strings.Join(f.Unsaid, ", ")), nil
	}
	done := didOf(p.oracles[0])
	for name, value := range p.facts.Asked {
		if !strings.Contains(done, strings.ToLower(value)) {
			return fmt.Sprintf("seed %d: the instruction asks for %s = %q, but neither the oracle's actions nor the rows that it changed hold it", p.oracles[0].seed, name, value), nil
		}
	}
	return "", nil
}

// didOf is all that an episode did, as text: its actions and the rows it changed.
func didOf(r *run) string {
	var b strings.Builder
	for _, a := range r.actions {
		b.WriteString(a + "\n")
	}
	for _, x := range r.results {
		for _, c := range x.Info.Changes {
			for _, row := range []map[string]*string{c.Old, c.New} {
				for _, cell := range row {
					if cell != nil {
						b.WriteString(*cell + "\n")
					}
				}
			}
		}
	}
	return strings.ToLower(b.String())
}

// contract: rewards and steps are what an agent's trainer relies on.
func (p *prover) contract(ctx context.Context) (string, error) {
	for _, r := range slices.Concat(p.oracles, p.others) {
		if d := broken(r); d != "" {
			return fmt.Sprintf("seed %d, %s: %s", r.seed, r.who, d), nil
		}
	}
	if _, err := p.other(ctx, "who goes on", p.c.Seeds[0], 1, perform("noop()")); err != nil {
		return "", err
	}
	switch _, err := p.env.Step(ctx, "noop()"); gym.ErrorKind(err) {
	case gym.EpisodeOver:
		return "", nil
	case "":
		return "a step after the end was carried out", nil
	default:
		return "", err
	}
}

func broken(r *run) string {
	total := 0.0
	for i, x := range r.results {
		total += x.Reward
		switch {
		case math.IsNaN(x.Reward) || math.Abs(x.Reward) > 2:
			return fmt.Sprintf("step %d has reward %v", x.Step, x.Reward)
		case total > 1+1e-9:
			return fmt.Sprintf("the rewards up to step %d sum to %v", x.Step, total)
		case x.Step != i:
			return fmt.Sprintf("step %d calls itself %d", i, x.Step)
		case x.EpisodeID != r.first().EpisodeID:
			return fmt.Sprintf("the episode's id changed at step %d", i)
		case x.Done() && i < len(r.results)-1:
			return fmt.Sprintf("step %d was the end, and another followed", i)
		case x.Terminated && x.Truncated:
			return fmt.Sprintf("step %d is terminated and truncated", i)
		}
	}
	return ""
}
