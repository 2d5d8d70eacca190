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
	N      int `default:"30" help:"How many resets."`
	Verify int `default:"0" help:"Compare the world with its snapshot byte for byte at each Nth reset in place; 0 never."`
}

// resetBench is the result of bench reset. MS is what it takes to put a world back, FirstObs
// what a caller waits when the pool has a world ready. RespawnMS is the former again, as
// seen from outside: from the end of an episode until a world is ready.
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
	// SplitMS are medians; the parts of a rewind that run side by side add up to more.
	SplitMS    map[string]float64 `json:"split_ms"`
	DirtyPages spread             `json:"dirty_pages"`
	Tree       struct {
		Processes int `json:"processes"`
		Threads   int `json:"threads"`
		VMAs      int `json:"vmas"`
	} `json:"tree"`
	// Verified counts the resets after which everything was found to be as in the snapshot.
	Verified int            `json:"verified"`
	Reasons  map[string]int `json:"reasons,omitempty"` // of slow paths
	MemoryMB struct {
		Start float64 `json:"start"`
		End   float64 `json:"end"`
	} `json:"memory_mb"`
}

func (c *benchResetCmd) Run(ctx context.Context, s *State) error {
	g, err := gym.Open(ctx, gym.Options{
		World: c.World, Driver: c.Driver, Worlds: 1, Traces: "off", VerifyEvery: c.Verify, Log: s.logger(c.Log), Progress: s.bootProgress(),
	})
	if err != nil {
		return err
	}
	defer g.Close()
	plan, err := g.Bench()
	if err != nil {
		return err
	}
	res := &resetBench{World: g.Describe().World, Driver: g.Describe().Driver, Part: "world", N: c.N}
	var resets resetNotes
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
		resets.add(g.LastReset())
		bar.step("")
	}
	res.OK = len(reset)
	res.CPUMS = round(ms(g.CPUTime()-cpu) / float64(max(1, c.N)))
	res.FirstObs, res.RespawnMS = spreadOf(reset), spreadOf(ready)
	resets.fill(res)
	res.MemoryMB.End = g.Usage().MemoryMB
	if c.JSON {
		return s.printJSON(res)
	}
	table(s.Stdout, spreadHeader, res.MS.row("world put back", res.OK), res.FirstObs.row("reset to first observation, world ready", res.OK), res.RespawnMS.row("world ready again (driver "+res.Driver+")", res.OK))
	fmt.Fprintf(s.Stdout, "\n%d failures; %d slow paths; %d verified; %.0f dirty pages; %.0f ms CPU a reset; %d processes, %d threads; %.0f MB a world\n",
		res.Failures, res.SlowPath, res.Verified, res.DirtyPages.P50, res.CPUMS, res.Tree.Processes, res.Tree.Threads, res.MemoryMB.End)
	return nil
}

// resetNotes collect what the worlds' driver says about each reset.
type resetNotes struct {
	took, pages    []float64
	split          map[string][]float64
	slow, verified int
	areas          int
	reasons        map[string]int
}

// add notes a reset. One that was verified is not timed: comparing takes longer than putting back.
func (n *resetNotes) add(r gym.ResetInfo) {
	if n.split == nil {
		n.split, n.reasons = map[string][]float64{}, map[string]int{}
	}
	switch {
	case r.SlowPath:
		n.slow++
		n.reasons[r.Reason]++
	case r.Verified:
		n.verified++
		return
	}
	n.took = append(n.took, ms(r.Took))
	if r.Areas > 0 {
		n.pages = append(n.pages, float64(r.Pages))
		n.areas = r.Areas
	}
	for name, d := range r.Split {
		n.split[name] = append(n.split[name], ms(d))
	}
}

func (n *resetNotes) fill(res *resetBench) {
	res.MS, res.DirtyPages = spreadOf(n.took), spreadOf(n.pages)
	res.SlowPath, res.Verified, res.Tree.VMAs, res.Reasons = n.slow, n.verified, n.areas, n.reasons
	res.SplitMS = map[string]float64{}
	for name, v := range n.split {
		res.SplitMS[name] = spreadOf(v).P50
	}
}
