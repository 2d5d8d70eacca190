// Package batch plays the episodes that one update learns from.
//
// Which episodes they are, and the random numbers of each, are fixed before the first
// starts; the results are put in that order again. So the outcome does not depend on how many
// worlds play, nor on which of them is ready first.
package batch

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/crew"
	"github.com/pommelgym/pommel/internal/learn/net"
	"github.com/pommelgym/pommel/internal/learn/policy"
	"github.com/pommelgym/pommel/internal/learn/ppo"
)

// Env is what the learner needs of an environment; *gym.Env is one.
type Env interface {
	Reset(ctx context.Context, r gym.Request) (*gym.Result, error)
	Step(ctx context.Context, action string, view ...gym.View) (*gym.Result, error)
	Oracle(ctx context.Context, step func(ctx context.Context, action string) (*gym.Result, error)) error
	Close() error
}

// Open makes n environments, and what closes them.
func Open(g *gym.Gym, n int) ([]Env, func()) {
	envs := make([]Env, n)
	for i := range envs {
		envs[i] = g.NewEnv()
	}
	return envs, func() {
		for _, e := range envs {
			_ = e.Close() // what is wrong with a world shows in its next episode
		}
	}
}

// Job is one episode to play.
type Job struct {
	Task string `json:"task"`
	Seed int64  `json:"seed"`
	// Limit is how many steps it may take. An episode under perturbations is given more for what
	// strikes it.
	Limit int `json:"limit"`
	// Noise seeds the draws from the policy.
	Noise uint64 `json:"noise"`
	// Greedy takes the best candidate always.
	Greedy bool `json:"greedy"`
	// Profile refers to the perturbations; "" is none.
	Profile string `json:"profile,omitempty"`
}

// Episode is what became of a job.
type Episode struct {
	Job     Job
	Steps   []ppo.Step
	Reward  float64
	Success bool
	// Cut says that a limit ended it; Last is then what the network expected to come.
	Cut  bool
	Last float64
	// Spots are the kinds of the pages that each step led to, "" where the page looked as before.
	Spots []string
	// Looks are hashes of what the page showed before each step and after the last.
	Looks []uint64
	// Lost is the fault of the infrastructure that made it void.
	Lost error
}

// Request turns a job into what an environment is asked for.
func (j Job) Request() gym.Request {
	return gym.Request{Task: j.Task, Seed: j.Seed, View: policy.View(), MaxSteps: j.Limit, Profile: j.Profile}
}

// tries is how often an episode that the infrastructure lost is played: with the same
// random numbers, so that a lost world does not change what is learnt.
const tries = 3

// Play plays one episode.
func Play(ctx context.Context, env Env, n *net.Net, j Job) Episode {
	var e Episode
	for range tries {
		if e = play(ctx, env, n, j); e.Lost == nil || ctx.Err() != nil {
			break
		}
	}
	return e
}

func play(ctx context.Context, env Env, n *net.Net, j Job) Episode {
	e := Episode{Job: j}
	r, err := env.Reset(ctx, j.Request())
	if err != nil {
		e.Lost = fmt.Errorf("reset: %w", err)
		return e
	}
	var rng *rand.Rand
	if !j.Greedy {
		rng = rand.New(rand.NewPCG(j.Noise, uint64(j.Seed)))
	}
	p := policy.NewPlayer(n, r.Instruction, rng)
	p.See(r.Observation)
	e.Looks = append(e.Looks, p.Look())
	for !r.Done() && (j.Greedy || len(e.Steps) < enough(j.Limit)) {
		c := p.Choose()
		if r, err = env.Step(ctx, c.Action); err != nil {
			e.Lost = fmt.Errorf("step: %w", err)
			return e
		}
		e.add(c, r, p)
	}
	if e.Cut = e.Cut || !r.Done(); e.Cut {
		e.Last = p.Value()
	}
	return e
}

// enough steps of an episode are played in training: what strikes it may have it last several times
// its limit, and the steps of one that goes nowhere are taken from others.
func enough(limit int) int { return limit + limit/2 }

// add notes one step.
func (e *Episode) add(c policy.Choice, r *gym.Result, p *policy.Player) {
	p.See(r.Observation)
	spot, novel := p.Spot()
	if !novel {
		spot = ""
	}
	e.Steps = append(e.Steps, ppo.Step{In: c.In, Choice: c.Index, LogP: c.LogP, Value: c.Value, Reward: r.Reward})
	e.Spots = append(e.Spots, spot)
	e.Looks = append(e.Looks, p.Look())
	e.Reward += r.Reward
	e.Success = r.Done() && r.Info.Success
	e.Cut = r.Truncated && !r.Terminated
}

// Back is the last step, not behind last, before which the page looked as it does before
// step i and up to which nothing was earned; i itself when it never did so again.
func (e *Episode) Back(i, last int) int {
	to := i
	for j := i + 1; j <= last && e.Steps[j-1].Reward == 0; j++ {
		if j < len(e.Looks) && e.Looks[j] == e.Looks[i] {
			to = j
		}
	}
	return to
}

// Collect plays the jobs on parallel environments and returns the episodes in the order
// of the jobs. onEpisode, if set, is called as they end, from one goroutine at a time.
func Collect(ctx context.Context, envs []Env, n *net.Net, jobs []Job, onEpisode func(Episode)) ([]Episode, error) {
	return Each(ctx, envs, len(jobs), func(ctx context.Context, env Env, i int) Episode { return Play(ctx, env, n, jobs[i]) }, onEpisode)
}

// Each does n pieces of work on environments that take the next as soon as they are free.
func Each(ctx context.Context, envs []Env, n int, do func(ctx context.Context, env Env, i int) Episode, onEpisode func(Episode)) ([]Episode, error) {
	out := make([]Episode, n)
	var mu sync.Mutex
	err := crew.Run(ctx, len(envs), n, func(ctx context.Context, worker int, next iter.Seq[int]) error {
		for i := range next {
			e := do(ctx, envs[worker], i)
			mu.Lock()
			out[i] = e
			if onEpisode != nil && ctx.Err() == nil {
				onEpisode(e)
			}
			mu.Unlock()
		}
		return nil
	})
	return out, err
}
