// Package check proves tasks: that they can be solved, that nothing is paid for
// doing nothing, that the judge is pure, and that seeds mean what they should.
package check

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/pommelgym/pommel/gym"
)

// Config says what to check.
type Config struct {
	Tasks []gym.TaskInfo
	// Seeds are tried one after the other for every task.
	Seeds    []int64
	Parallel int
	// OnTask, if set, is called after each task, from one goroutine at a time.
	OnTask func(Task)
}

// Task is what was found about one task.
type Task struct {
	Task   string  `json:"task"`
	OK     bool    `json:"ok"`
	Checks []Check `json:"checks"`
}

// Check is one property and whether it holds.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// Run checks the tasks. The error is a fault of the infrastructure or an
// interruption; what is wrong with a task stands in the result.
func Run(ctx context.Context, g *gym.Gym, c Config) ([]Task, error) {
	problems, err := g.Problems(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Task, len(c.Tasks))
	var mu sync.Mutex
	var workers sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	for range max(1, c.Parallel) {
		workers.Go(func() {
			env := g.NewEnv()
			defer env.Close()
			for i := range next {
				t, err := one(ctx, env, c.Tasks[i].ID, c.Seeds, problems[c.Tasks[i].ID])
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				out[i] = t
				if c.OnTask != nil {
					c.OnTask(t)
				}
				mu.Unlock()
			}
		})
	}
	for i := range c.Tasks {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return out, context.Cause(ctx)
}

func one(ctx context.Context, env *gym.Env, id string, seeds []int64, problems []string) (Task, error) {
	t := Task{Task: id, OK: true}
	add := func(name string, detail string) {
		t.Checks = append(t.Checks, Check{Name: name, OK: detail == "", Detail: detail})
		t.OK = t.OK && detail == ""
	}
	add("valid", join(problems))
	if len(problems) > 0 {
		return t, nil
	}
	p := prover{env: env, task: id}
	for _, c := range []struct {
		name string
		run  func(context.Context, []int64) (string, error)
	}{{"oracle", p.oracle}, {"do_nothing", p.doNothing}, {"pure", p.pure}, {"seeds", p.seeds}} {
		detail, err := c.run(ctx, seeds)
		if err != nil {
			return t, fmt.Errorf("check %s of task %s: %w", c.name, id, err)
		}
		add(c.name, detail)
	}
	return t, nil
}

func join(lines []string) string {
	out := ""
	for i, l := range lines {
		if i > 0 {
			out += "; "
		}
		out += l
	}
	return out
}

// prover runs the checks of one task; each returns what is wrong, or "".
type prover struct {
	env  *gym.Env
	task string
	// impure is what the checks of the judge found during the oracle's episodes.
	impure string
	// instructions by seed, as the oracle's episodes were given them.
	instructions map[int64]string
}

// oracle: the scripted solution reaches success and a reward of 1 within the limit.
func (p *prover) oracle(ctx context.Context, seeds []int64) (string, error) {
	p.instructions = map[int64]string{}
	for _, seed := range seeds {
		first, err := p.env.Reset(ctx, gym.Request{Task: p.task, Seed: seed})
		if err != nil {
			return "", err
		}
		p.instructions[seed] = first.Instruction
		total := 0.0
		var last *gym.Result
		var lost error
		playErr := p.env.Oracle(ctx, func(ctx context.Context, action string) (*gym.Result, error) {
			r, err := p.env.Step(ctx, action)
			if err != nil {
				if gym.ErrorKind(err) != gym.EpisodeOver {
					lost = err
				}
				return nil, err
			}
			total += r.Reward
			last = r
			if !r.Done() {
				lost = p.judgeTwice(ctx, r)
			}
			return r, lost
		})
		switch {
		case lost != nil:
			return "", lost
		case playErr != nil:
			return fmt.Sprintf("seed %d: the oracle failed: %v", seed, playErr), nil
		case last == nil || !last.Done():
			return fmt.Sprintf("seed %d: the oracle ended without finish()", seed), nil
		case !last.Info.Success || total < 1-1e-9 || total > 1+1e-9:
			return fmt.Sprintf("seed %d: the oracle got reward %.4g, success %v; collateral %v; verdict %s",
				seed, total, last.Info.Success, last.Info.Collateral, last.Info.Verdict), nil
		}
	}
	return "", nil
}

// judgeTwice asks the judge twice about one state; it must answer the same.
func (p *prover) judgeTwice(ctx context.Context, r *gym.Result) error {
	if p.impure != "" {
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

// doNothing: finishing at once is worth nothing.
func (p *prover) doNothing(ctx context.Context, seeds []int64) (string, error) {
	for _, seed := range seeds {
		first, err := p.env.Reset(ctx, gym.Request{Task: p.task, Seed: seed})
		if err != nil {
			return "", err
		}
		if first.Info.Potential != 0 {
			return fmt.Sprintf("seed %d: stages hold before anything was done: %s", seed, first.Info.Verdict), nil
		}
		again, err := p.env.Step(ctx, "noop()\nfinish()")
		if err != nil {
			return "", err
		}
		if again.Reward != 0 || again.Info.Success {
			return fmt.Sprintf("seed %d: doing nothing got reward %.4g, success %v: %s", seed, again.Reward, again.Info.Success, again.Info.Verdict), nil
		}
	}
	return "", nil
}

func (p *prover) pure(context.Context, []int64) (string, error) { return p.impure, nil }

// seeds: the same seed asks for the same, and seeds differ if the task has parameters.
func (p *prover) seeds(ctx context.Context, seeds []int64) (string, error) {
	again, err := p.env.Reset(ctx, gym.Request{Task: p.task, Seed: seeds[0]})
	if err != nil {
		return "", err
	}
	if again.Instruction != p.instructions[seeds[0]] {
		return fmt.Sprintf("seed %d asked once for %q and once for %q", seeds[0], p.instructions[seeds[0]], again.Instruction), nil
	}
	different := map[string]bool{}
	for _, text := range p.instructions {
		different[text] = true
	}
	if len(different) == 1 && len(seeds) > 2 && p.env.HasParams() {
		return fmt.Sprintf("seeds %v all ask for %q", seeds, again.Instruction), nil
	}
	return "", nil
}
