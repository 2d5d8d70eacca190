// Package check proves tasks: that they can be solved, that nothing is paid for what is
// no work, that the judge is pure, that an episode is the same whenever and wherever it is
// played, that seeds mean what they should, and that no answer lies about.
package check

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/crew"
)

// Config says what to check.
type Config struct {
	Tasks []gym.TaskInfo
	// Seeds are tried one after the other for every task.
	Seeds []int64
	// Parallel is how many tasks are checked at the same time.
	Parallel int
	// Together is how many worlds play one episode at the same time; 0 leaves that out.
	Together int
	// Against, if set, is the same world put back by another driver: it must play the same.
	Against *gym.Gym
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
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Detail says what is wrong, and Remedy what to do.
	Detail string `json:"detail,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Skipped says why the property could not be looked at.
	Skipped string `json:"skipped,omitempty"`
}

// Run checks the tasks. The error is a fault of the infrastructure or an
// interruption; what is wrong with a task stands in the result. With an error come the tasks
// that had been checked.
func Run(ctx context.Context, g *gym.Gym, c Config) ([]Task, error) {
	problems, err := g.Problems(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Task, len(c.Tasks))
	var mu sync.Mutex
	err = crew.Run(ctx, max(1, c.Parallel), len(c.Tasks), func(ctx context.Context, _ int, next iter.Seq[int]) error {
		env := g.NewEnv()
		defer env.Close()
		for i := range next {
			p := &prover{g: g, env: env, task: c.Tasks[i].ID, c: c}
			t, err := p.prove(ctx, problems[c.Tasks[i].ID])
			if err != nil {
				return err
			}
			mu.Lock()
			out[i] = t
			if c.OnTask != nil {
				c.OnTask(t)
			}
			mu.Unlock()
		}
		return nil
	})
	return slices.DeleteFunc(out, func(t Task) bool { return t.Task == "" }), err
}

// prover runs the checks of one task.
type prover struct {
	g    *gym.Gym
	env  *gym.Env
	task string
	c    Config
	// oracles are the oracle's episodes, one a seed; others are all other episodes.
	oracles, others []*run
	facts           gym.TaskFacts
	// impure is what was found when the judge was asked during the oracle's episodes.
	impure string
}

// prove runs all checks in order: later ones look at the episodes of earlier ones.
func (p *prover) prove(ctx context.Context, problems []string) (Task, error) {
	t := Task{Task: p.task, OK: true}
	add := func(name, detail, skipped string) {
		c := Check{Name: name, OK: detail == "", Detail: detail, Skipped: skipped}
		if !c.OK {
			c.Remedy = remedyOf(name)
			t.OK = false
		}
		t.Checks = append(t.Checks, c)
	}
	add("valid", strings.Join(problems, "; "), "")
	if len(problems) > 0 {
		return t, nil
	}
	defer p.env.End()
	if err := p.playOracles(ctx); err != nil {
		return t, fmt.Errorf("check oracle of task %s: %w", p.task, err)
	}
	for _, c := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{"oracle", p.oracle}, {"do_nothing", p.doNothing}, {"random", p.random}, {"shortcuts", p.shortcuts},
		{"limits", p.limits}, {"same_seed", p.sameSeed}, {"seeds", p.seeds}, {"pure", p.pure}, {"order", p.order},
		{"instruction", p.instruction}, {"secrets", p.secrets}, {"confined", p.confined}, {"contract", p.contract}, {"schema", p.schema},
	} {
		if why := p.needsOracle(c.name); why != "" {
			add(c.name, "", why)
			continue
		}
		detail, err := c.run(ctx)
		if err != nil {
			return t, fmt.Errorf("check %s of task %s: %w", c.name, p.task, err)
		}
		add(c.name, detail, "")
	}
	return t, nil
}

// needsOracle says why a check is left out: what the oracle could not play cannot be looked at.
func (p *prover) needsOracle(name string) string {
	switch name {
	case "limits", "same_seed", "order", "instruction":
		if p.solved() != "" {
			return "the oracle does not solve the task"
		}
	}
	return ""
}
