package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/gym"
)

type benchResetCmd struct {
	worldFlags
	jsonFlag
	N int `default:"30" help:"How many resets."`
}

// resetBench is the result of bench reset. MS is what a caller waits when the pool has
// a world ready; RespawnMS is what it takes to have one ready again.
type resetBench struct {
	World     string  `json:"world"`
	Driver    string  `json:"driver"`
	Part      string  `json:"part"`
	N         int     `json:"n"`
	OK        int     `json:"ok"`
	Failures  int     `json:"failures"`
	SlowPath  int     `json:"slow_path"`
	MS        spread  `json:"ms"`
	FirstObs  spread  `json:"first_observation_ms"`
	RespawnMS spread  `json:"respawn_ms"`
	CPUMS     float64 `json:"cpu_ms"`
	Tree      struct {
		Processes int `json:"processes"`
		Threads   int `json:"threads"`
	} `json:"tree"`
	MemoryMB struct {
		Start float64 `json:"start"`
		End   float64 `json:"end"`
	} `json:"memory_mb"`
}

func (c *benchResetCmd) Run(ctx context.Context, s *State) error {
	c.Traces = "off"
	g, err := c.open(ctx, s, 1)
	if err != nil {
		return err
	}
	defer g.Close()
	plan, err := g.Bench()
	if err != nil {
		return err
	}
	res := &resetBench{World: g.Describe().World, Driver: g.Describe().Driver, Part: "world", N: c.N, SlowPath: c.N}
	bar := s.progress("bench reset", c.N)
	defer bar.end()
	var reset, ready []float64
	env := g.NewEnv()
	defer env.Close()
	if err := g.Settled(ctx); err != nil {
		return err
	}
	usage := g.Usage()
	res.MemoryMB.Start, res.Tree.Processes, res.Tree.Threads = usage.MemoryMB, usage.Processes, usage.Threads
	cpu := g.CPUTime()
	for i := range c.N {
		start := time.Now()
		if _, err := env.Reset(ctx, gym.Request{Task: plan.Task, Seed: int64(i)}); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			res.Failures++
			continue
		}
		reset = append(reset, since(start))
		start = time.Now()
		if err := env.End(); err != nil {
			return err
		}
		if err := g.Settled(ctx); err != nil {
			return err
		}
		ready = append(ready, since(start))
		bar.step("")
	}
	res.OK = len(reset)
	res.CPUMS = round(ms(g.CPUTime()-cpu) / float64(max(1, c.N)))
	res.MS, res.RespawnMS = spreadOf(reset), spreadOf(ready)
	res.FirstObs = res.MS
	res.MemoryMB.End = g.Usage().MemoryMB
	if c.JSON {
		return s.printJSON(res)
	}
	table(s.Stdout, spreadHeader, res.MS.row("reset to first observation, world ready", res.OK), res.RespawnMS.row("world ready again (driver "+res.Driver+")", res.OK))
	fmt.Fprintf(s.Stdout, "\n%d failures; %.0f ms CPU a reset; %d processes, %d threads; %.0f MB a world\n",
		res.Failures, res.CPUMS, res.Tree.Processes, res.Tree.Threads, res.MemoryMB.End)
	return nil
}
