// Package rollout plays many episodes on parallel worlds and adds up what came of them.
//
// Which episodes are played is a function of the tasks, the seed and the number of
// episodes alone, not of how many run in parallel.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/agent"
	"github.com/pommelgym/pommel/internal/crew"
)

// Config says what to play.
type Config struct {
	Agent    string
	Tasks    []gym.TaskInfo
	Episodes int
	Parallel int
	Seed     int64
	// Profile names the perturbations; "" is none.
	Profile string
	// Screenshot has each step recorded with a picture: png, jpeg, or "" for none.
	Screenshot string
	// OnEpisode, if set, is called after each episode, from one goroutine at a time.
	OnEpisode func(Episode)
}

// Episode is what became of one episode.
type Episode struct {
	Index   int     `json:"index"`
	ID      string  `json:"episode_id"`
	Task    string  `json:"task"`
	Seed    int64   `json:"seed"`
	Success bool    `json:"success"`
	Reward  float64 `json:"reward"`
	Steps   int     `json:"steps"`
	// Truncated says that a limit ended it.
	Truncated bool `json:"truncated"`
	// Lost is the fault of the infrastructure that made the episode void.
	Lost error `json:"-"`
	// AgentError is why the agent gave up; the episode counts as played.
	AgentError error       `json:"-"`
	Last       *gym.Result `json:"-"`
	// Struck is every perturbation that struck.
	Struck []gym.PerturbationEvent `json:"-"`
	Took   time.Duration           `json:"-"`
}

// job is one episode to play.
type job struct {
	index int
	task  string
	seed  int64

	profile    string
	screenshot string
}

func (c Config) job(i int) job {
	return job{index: i, task: c.Tasks[i%len(c.Tasks)].ID, seed: c.Seed + int64(i), profile: c.Profile, screenshot: c.Screenshot}
}

// Run plays the episodes. It returns an error only when it could not go on; faults of
// single episodes are in the summary.
func Run(ctx context.Context, g *gym.Gym, c Config) (*Summary, error) {
	if len(c.Tasks) == 0 {
		return nil, errors.New("no task matches")
	}
	start := time.Now()
	s := newSummary(c)
	var mu sync.Mutex
	done := func(e Episode) {
		mu.Lock()
		defer mu.Unlock()
		s.add(e)
		if c.OnEpisode != nil {
			c.OnEpisode(e)
		}
	}
	err := crew.Run(ctx, max(1, min(c.Parallel, c.Episodes)), c.Episodes, func(ctx context.Context, _ int, next iter.Seq[int]) error {
		return work(ctx, g, c, next, done)
	})
	s.finish(time.Since(start))
	return s, err
}

// work plays jobs with one agent in one environment.
func work(ctx context.Context, g *gym.Gym, c Config, next iter.Seq[int], done func(Episode)) error {
	a, err := agent.New(c.Agent, c.Seed)
	if err != nil {
		return err
	}
	defer a.Close()
	env := g.NewEnv()
	defer env.Close()
	for i := range next {
		e := play(ctx, env, a, c.job(i))
		if ctx.Err() != nil {
			return nil
		}
		done(e)
	}
	return nil
}

// play plays one episode to its end.
func play(ctx context.Context, env *gym.Env, a agent.Agent, j job) (e Episode) {
	e = Episode{Index: j.index, Task: j.task, Seed: j.seed}
	start := time.Now()
	defer func() { e.Took = time.Since(start) }()
	if r, ok := a.(agent.Rehearser); ok && j.profile != "" && j.profile != "none" {
		if err := r.Rehearse(ctx, env, j.task, j.seed); err != nil {
			e.Lost = fmt.Errorf("rehearse: %w", err)
			return e
		}
	}
	view := a.View()
	if j.screenshot != "" {
		view.Screenshot = j.screenshot
	}
	first, err := env.Reset(ctx, gym.Request{Task: j.task, Seed: j.seed, View: view, Profile: j.profile})
	if err != nil {
		e.Lost = fmt.Errorf("reset: %w", err)
		return e
	}
	e.ID = first.EpisodeID
	e.Struck = first.Info.Perturbations
	live := &counted{env: env, first: first, episode: &e}
	err = a.Play(ctx, live)
	switch {
	case live.lost != nil:
		e.Lost = live.lost
	case err != nil:
		e.AgentError = err
	}
	if err := env.End(); err != nil && e.Lost == nil {
		e.Lost = err
	}
	return e
}

// counted is an environment that adds up an episode while an agent plays it.
type counted struct {
	env     *gym.Env
	first   *gym.Result
	episode *Episode
	lost    error
}

func (c *counted) First() *gym.Result { return c.first }

func (c *counted) Step(ctx context.Context, action string) (*gym.Result, error) {
	r, err := c.env.Step(ctx, action)
	return r, c.count(r, err)
}

func (c *counted) Oracle(ctx context.Context, step agent.Step) error {
	if step == nil {
		step = c.Step
	}
	return c.env.Oracle(ctx, step)
}

func (c *counted) count(r *gym.Result, err error) error {
	if err != nil {
		if gym.ErrorKind(err) != gym.EpisodeOver {
			c.lost = err
		}
		return err
	}
	e := c.episode
	e.Steps, e.Last = r.Step, r
	e.Struck = append(e.Struck, r.Info.Perturbations...)
	e.Reward += r.Reward
	e.Success = r.Info.Success && r.Done()
	e.Truncated = r.Truncated
	return nil
}
