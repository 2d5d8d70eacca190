package soak

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pommelgym/pommel/gym"
)

// plan is an episode as it is when nobody disturbs it.
type plan struct {
	name    string
	task    string
	seed    int64
	actions []string
	first   string // hash of the start
	moments []moment
	reward  float64 // sum
}

// moment is what a step led to.
type moment struct {
	reward        float64
	done, success bool
	hash          string
}

// idle is what an agent does that does nothing.
const idle = `finish("")`

var errTooLong = errors.New("the solution is longer than the soak's episodes")

// record plays episodes of at most c.Steps steps: for each task that the oracle solves in so many,
// its solution, the first half of it, and nothing at all. It stops when there are c.Plans tasks.
func record(ctx context.Context, g *gym.Gym, c Config) ([]*plan, error) {
	env := g.NewEnv()
	defer env.Close()
	tasks, err := c.tasks(g)
	if err != nil {
		return nil, err
	}
	var plans []*plan
	found := 0
	for _, t := range tasks {
		seed := c.Seed + int64(found)
		actions, err := solution(ctx, env, t.ID, seed, c.Steps)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case actions == nil:
			continue
		}
		three, err := threeWays(ctx, env, t.ID, seed, actions)
		if err != nil {
			return nil, err
		}
		plans = append(plans, three...)
		if c.OnPlan != nil {
			c.OnPlan(t.ID)
		}
		if found++; found == c.Plans {
			break
		}
	}
	if found == 0 {
		return nil, fmt.Errorf("no task of world %s is solved in %d steps", g.Describe().World, c.Steps)
	}
	return plans, nil
}

// tasks are those that may be played, in a seeded order, easy ones first: they are short.
func (c Config) tasks(g *gym.Gym) ([]gym.TaskInfo, error) {
	tasks, err := g.Select("", "", c.Tasks)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(uint64(c.Seed), 0))
	rng.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	slices.SortStableFunc(tasks, func(a, b gym.TaskInfo) int {
		return slices.Index(difficulties, a.Difficulty) - slices.Index(difficulties, b.Difficulty)
	})
	return tasks, nil
}

var difficulties = []string{"easy", "medium", "hard"}

// solution is what the oracle does, or nil when that takes more than most steps or does not
// solve the task: whether it must is another proof's concern.
func solution(ctx context.Context, env *gym.Env, task string, seed int64, most int) ([]string, error) {
	if _, err := env.Reset(ctx, gym.Request{Task: task, Seed: seed, View: gym.View{Elements: true}, Client: "soak"}); err != nil {
		return nil, err
	}
	var actions []string
	var last *gym.Result
	var lost error
	err := env.Oracle(ctx, func(ctx context.Context, action string) (*gym.Result, error) {
		if len(actions) == most {
			return nil, errTooLong
		}
		r, err := env.Step(ctx, action)
		if err != nil {
			lost = err
			return nil, err
		}
		actions, last = append(actions, action), r
		return r, nil
	})
	if k := gym.ErrorKind(lost); lost != nil && k != gym.EpisodeOver {
		return nil, lost
	}
	if err != nil || last == nil || !last.Done() || !last.Info.Success {
		return nil, nil
	}
	return actions, nil
}

// threeWays plays a solution, its first half, and nothing.
func threeWays(ctx context.Context, env *gym.Env, task string, seed int64, actions []string) ([]*plan, error) {
	half := append(append([]string{}, actions[:len(actions)/2]...), idle)
	var out []*plan
	for _, p := range []*plan{{name: "solution", actions: actions}, {name: "half", actions: half}, {name: "nothing", actions: []string{idle}}} {
		p.task, p.seed = task, seed
		ok, err := p.play(ctx, env)
		if err != nil {
			return nil, fmt.Errorf("play task %s, seed %d undisturbed: %w", task, seed, err)
		}
		if ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// play fills in what comes of the plan. It returns false for an episode that may be another
// one the next time, by its own account.
func (p *plan) play(ctx context.Context, env *gym.Env) (bool, error) {
	r, err := env.Reset(ctx, gym.Request{Task: p.task, Seed: p.seed, Client: "soak"})
	if err != nil {
		return false, err
	}
	p.first = r.Info.ObservationHash
	for i, a := range p.actions {
		if r, err = env.Step(ctx, a); err != nil {
			return false, err
		}
		p.moments = append(p.moments, moment{reward: r.Reward, done: r.Done(), success: r.Info.Success, hash: r.Info.ObservationHash})
		p.reward += r.Reward
		if r.Done() && i < len(p.actions)-1 {
			p.actions = p.actions[:i+1]
			break
		}
	}
	if !r.Info.Reproducible {
		return false, nil
	}
	return true, p.sane(r)
}

// sane holds the undisturbed episode against what a task promises.
func (p *plan) sane(end *gym.Result) error {
	switch {
	case !end.Done():
		return fmt.Errorf("%s: the episode is not over after its last action", p.name)
	case p.name == "solution" && (!end.Info.Success || math.Abs(p.reward-1) > 1e-6):
		return fmt.Errorf("the solution earns %g, success %v; want 1, true", p.reward, end.Info.Success)
	case p.name == "nothing" && (end.Info.Success || p.reward > 1e-6):
		return fmt.Errorf("doing nothing earns %g, success %v; want at most 0, false", p.reward, end.Info.Success)
	}
	return nil
}

func (p *plan) String() string { return fmt.Sprintf("%s seed %d, %s", p.task, p.seed, p.name) }
