package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pommelgym/pommel/gym"
)

type benchThroughputCmd struct {
	worldFlags
	frictionFlags
	jsonFlag
	Worlds  int `default:"2" help:"How many worlds run at the same time."`
	Seconds int `default:"30" help:"How long to measure."`
	Steps   int `default:"10" help:"Steps of an episode."`
}

// throughputBench is the result of bench throughput.
type throughputBench struct {
	World         string  `json:"world"`
	Driver        string  `json:"driver"`
	Worlds        int     `json:"worlds"`
	Seconds       float64 `json:"seconds"`
	StepsEach     int     `json:"steps_per_episode"`
	Episodes      int     `json:"episodes"`
	Steps         int     `json:"steps"`
	EpisodesPerS  float64 `json:"episodes_per_s"`
	StepsPerS     float64 `json:"steps_per_s"`
	CPUPerStep    float64 `json:"cpu_ms_per_step"`
	CPUPerReset   float64 `json:"cpu_ms_per_reset"`
	MemoryMB      float64 `json:"memory_mb_per_world"`
	Failures      int     `json:"failures"`
	CPUPerEpisode float64 `json:"cpu_ms_per_episode"`
	frictionBench
}

func (c *benchThroughputCmd) Run(ctx context.Context, s *State) error {
	c.Traces = "off"
	g, err := c.open(ctx, s, c.Worlds)
	if err != nil {
		return err
	}
	defer g.Close()
	plan, err := g.Bench()
	if err != nil {
		return err
	}
	if err := g.Settled(ctx); err != nil {
		return err
	}
	res, err := c.measure(ctx, s, g, plan)
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(res)
	}
	fmt.Fprintf(s.Stdout, "%d worlds (%s), episodes of %d steps, %.0f s: %.2f episodes/s, %.1f steps/s, %.1f ms CPU a step, %.0f ms a reset, %.0f MB a world, %d failures%s\n",
		res.Worlds, res.Driver, res.StepsEach, res.Seconds, res.EpisodesPerS, res.StepsPerS, res.CPUPerStep, res.CPUPerReset, res.MemoryMB, res.Failures, res.line())
	return nil
}

// tally adds up what the workers did.
type tally struct {
	mu                        sync.Mutex
	episodes, steps, failures int
	friction                  frictionBench
}

// strikes adds what struck in a step.
func (t *tally) strikes(events []gym.PerturbationEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		t.friction.add(e.Kind, e.Numbers["delay"])
	}
}

func (c *benchThroughputCmd) measure(ctx context.Context, s *State, g *gym.Gym, plan gym.BenchPlan) (*throughputBench, error) {
	perStep, err := c.stepCost(ctx, g, plan)
	if err != nil {
		return nil, err
	}
	if err := g.Settled(ctx); err != nil {
		return nil, err
	}
	memory := g.Usage().MemoryMB
	s.say("measuring for %d s", c.Seconds)
	run, cancel := context.WithTimeout(ctx, time.Duration(c.Seconds)*time.Second)
	defer cancel()
	start, cpu := time.Now(), g.CPUTime()
	var t tally
	var workers sync.WaitGroup
	for w := range c.Worlds {
		workers.Go(func() { c.work(run, g, plan, int64(w), &t) })
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	took, spent := time.Since(start), g.CPUTime()-cpu
	d := g.Describe()
	res := &throughputBench{
		World: d.World, Driver: d.Driver, Worlds: c.Worlds, Seconds: round(took.Seconds()), StepsEach: c.Steps,
		Episodes: t.episodes, Steps: t.steps, Failures: t.failures,
		EpisodesPerS: round(float64(t.episodes) / took.Seconds()), StepsPerS: round(float64(t.steps) / took.Seconds()),
		CPUPerStep: round(perStep), MemoryMB: round(memory), frictionBench: t.friction,
	}
	res.Profile = c.Profile
	if t.episodes > 0 {
		res.CPUPerEpisode = round(ms(spent) / float64(t.episodes))
		res.CPUPerReset = round((ms(spent) - perStep*float64(t.steps)) / float64(t.episodes))
	}
	return res, nil
}

// stepCost is the CPU of one step, measured alone so that the resets of a full run can be told from its steps.
func (c *benchThroughputCmd) stepCost(ctx context.Context, g *gym.Gym, plan gym.BenchPlan) (float64, error) {
	env := g.NewEnv()
	defer env.Close()
	if _, err := env.Reset(ctx, gym.Request{Task: plan.Task, Profile: c.Profile, MaxSteps: 1 << 30}); err != nil {
		return 0, err
	}
	if err := g.Settled(ctx); err != nil {
		return 0, err
	}
	const n = 200
	cpu := g.CPUTime()
	for i := range n {
		if _, err := env.Step(ctx, plan.Nth(i)); err != nil {
			return 0, err
		}
	}
	return ms(g.CPUTime()-cpu) / n, nil
}

// work plays episodes until the time is over.
func (c *benchThroughputCmd) work(ctx context.Context, g *gym.Gym, plan gym.BenchPlan, seed int64, t *tally) {
	env := g.NewEnv()
	defer env.Close()
	for ctx.Err() == nil {
		steps, err := c.episode(ctx, env, plan, seed, t)
		seed += int64(c.Worlds)
		t.mu.Lock()
		t.steps += steps
		switch {
		case err == nil:
			t.episodes++
		case ctx.Err() == nil:
			t.failures++
		}
		t.mu.Unlock()
	}
}

func (c *benchThroughputCmd) episode(ctx context.Context, env *gym.Env, plan gym.BenchPlan, seed int64, t *tally) (int, error) {
	first, err := env.Reset(ctx, gym.Request{Task: plan.Task, Seed: seed, Profile: c.Profile, MaxSteps: c.Steps + 1})
	if err != nil {
		return 0, err
	}
	t.strikes(first.Info.Perturbations)
	for i := range c.Steps {
		r, err := env.Step(ctx, plan.Nth(i))
		if err != nil {
			return i, err
		}
		t.strikes(r.Info.Perturbations)
	}
	return c.Steps, nil
}
