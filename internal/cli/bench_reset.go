package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/gym"
)

type benchResetCmd struct {
	worldFlags
	jsonFlag
	Part    string `default:"world" enum:"world,services" help:"What is put back: the whole world, or database and application alone."`
	N       int    `default:"200" help:"How many resets."`
	Pairs   int    `default:"4" help:"How many different episodes (task and seed) are begun in turn."`
	NewEach int    `default:"10" help:"Each Nth reset begins an episode that never was before; 0 never."`
	Verify  int    `default:"0" help:"Compare the world with its snapshot byte for byte at each Nth reset in place; 0 never."`
	Against string `default:"" help:"Measure another driver too, with a twentieth of the resets, for the ratio."`
}

// resetBench is the result of bench reset. MS is what it takes to put a world back;
// FirstObs what a caller waits from Reset, with the episode before it still to be ended, to
// the first observation of an episode that was begun before; FirstNew the same for others.
type resetBench struct {
	World  string `json:"world"`
	Driver string `json:"driver"`
	Part   string `json:"part"`
	N      int    `json:"n"`
	// Interrupted says that there were to be more than N.
	Interrupted bool   `json:"interrupted,omitempty"`
	OK          int    `json:"ok"`
	Failures    int    `json:"failures"`
	SlowPath    int    `json:"slow_path"`
	MS          spread `json:"ms"`
	FirstObs    spread `json:"first_observation_ms"`
	FirstNew    spread `json:"first_observation_new_ms"`
	// CPUMS is that of the whole machine in a reset to the first observation.
	CPUMS float64 `json:"cpu_ms"`
	// SplitMS are parts of MS; those that run side by side add up to more.
	SplitMS    map[string]spread `json:"split_ms"`
	DirtyPages spread            `json:"dirty_pages"`
	// StepMS are the steps between the resets. TrackingMS is how much longer they take, at the
	// median, in episodes in which the first write to each page was tracked, which has it cost a page
	// fault; absent if there was no such episode, or no other.
	StepMS     spread   `json:"step_ms"`
	TrackingMS *float64 `json:"tracking_ms,omitempty"`
	Tree       struct {
		Processes int `json:"processes"`
		Threads   int `json:"threads"`
		VMAs      int `json:"vmas"`
	} `json:"tree"`
	// Verified counts the resets after which everything was found to be as in the snapshot.
	Verified int            `json:"verified"`
	Starts   int            `json:"kept_starts"`       // resets that led to the kept start of an episode
	Reasons  map[string]int `json:"reasons,omitempty"` // of slow paths
	MemoryMB struct {
		Start float64 `json:"start"`
		End   float64 `json:"end"`
	} `json:"memory_mb"`
	Against *resetBench `json:"against,omitempty"`
	// Ratio is how many times longer the other driver takes to the first observation.
	Ratio float64 `json:"ratio,omitempty"`
}

func (c *benchResetCmd) Run(ctx context.Context, s *State) error {
	if c.Part == "services" {
		return c.services(ctx, s)
	}
	res, err := c.measure(ctx, s, c.Driver, c.N)
	if err == nil && c.Against != "" {
		if res.Against, err = c.measure(ctx, s, c.Against, max(5, c.N/20)); err == nil && res.FirstObs.P50 > 0 {
			res.Ratio = round(res.Against.FirstObs.P50 / res.FirstObs.P50)
		}
	}
	if res == nil {
		return err
	}
	// What had been measured before an interruption is told too.
	return cmp.Or(err, c.print(s, res))
}

func (c *benchResetCmd) print(s *State, res *resetBench) error {
	if c.JSON {
		return s.printJSON(res)
	}
	rows := [][]string{res.MS.row(res.Part+" put back", res.OK),
		res.FirstObs.row("reset to first observation, begun before", res.OK), res.FirstNew.row("reset to first observation, new episode", res.OK)}
	if res.Part == "world" {
		rows = append(rows, res.StepMS.row("step between resets", stepsBetween*res.OK))
	}
	table(s.Stdout, spreadHeader, rows...)
	fmt.Fprintf(s.Stdout, "\ndriver %s: %d failures; %d slow paths; %d verified; %.0f dirty pages; %.1f ms CPU a reset; %d processes, %d threads, %d areas; %.0f MB then %.0f MB\n",
		res.Driver, res.Failures, res.SlowPath, res.Verified, res.DirtyPages.P50, res.CPUMS, res.Tree.Processes, res.Tree.Threads, res.Tree.VMAs, res.MemoryMB.Start, res.MemoryMB.End)
	if res.TrackingMS != nil {
		fmt.Fprintf(s.Stdout, "steps take %.2f ms longer in episodes in which the first write to each page is tracked\n", *res.TrackingMS)
	}
	if a := res.Against; a != nil {
		fmt.Fprintf(s.Stdout, "driver %s: %.1f ms to the first observation, %.1f times as long\n", a.Driver, a.FirstObs.P50, res.Ratio)
	}
	return nil
}

// measure resets one environment again and again, with a few actions in between.
func (c *benchResetCmd) measure(ctx context.Context, s *State, driver string, n int) (*resetBench, error) {
	g, err := gym.Open(ctx, gym.Options{
		World: c.World, Driver: driver, Worlds: 1, Spares: -1, Traces: "off", VerifyEvery: c.Verify, Log: s.logger(c.Log), Progress: s.bootProgress(),
	})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	plan, err := g.Bench()
	if err != nil {
		return nil, err
	}
	if err := g.Settled(ctx); err != nil {
		return nil, err
	}
	m := &resetRun{c: c, g: g, plan: plan, env: g.NewEnv(), res: &resetBench{World: g.Describe().World, Driver: g.Describe().Driver, Part: c.Part, N: n}}
	defer m.env.Close()
	// What is only slow once, and the starts of the episodes.
	for i := range c.Pairs {
		if _, _, err := m.one(ctx, int64(i)); err != nil {
			return nil, err
		}
	}
	m.steps, m.last, m.fresh, m.rest = nil, 0, nil, nil
	usage := g.Usage()
	m.res.MemoryMB.Start, m.res.Tree.Processes, m.res.Tree.Threads = usage.MemoryMB, usage.Processes, usage.Threads
	bar := s.progress("bench reset "+m.res.Driver, n)
	defer bar.end()
	for i := range n {
		if err = m.step(ctx, i); err != nil {
			m.res.N, m.res.Interrupted = i, true
			break
		}
		bar.step("")
	}
	m.fill()
	return m.res, err
}

// resetRun is a measurement under way.
type resetRun struct {
	c           *benchResetCmd
	g           *gym.Gym
	env         *gym.Env
	plan        gym.BenchPlan
	res         *resetBench
	again, anew []float64
	steps       []float64 // of all episodes
	last        float64   // time of all steps of the last episode; 0 if it did not begin at a kept start
	fresh, rest []float64 // the same of all, by whether first writes were tracked
	cpu         time.Duration
	notes       resetNotes
}

// benchNewSeeds begin far from those of the pairs.
const benchNewSeeds = 1_000_000

func (m *resetRun) step(ctx context.Context, i int) error {
	seed, list := int64(i%m.c.Pairs), &m.again
	if m.c.NewEach > 0 && i%m.c.NewEach == m.c.NewEach-1 {
		seed, list = benchNewSeeds+int64(i), &m.anew
	}
	took, cpu, err := m.one(ctx, seed)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		m.res.Failures++
		return nil
	}
	m.res.OK++
	m.cpu += cpu
	r := m.g.LastReset()
	if !r.Verified {
		*list = append(*list, took)
	}
	m.notes.add(r)
	return nil
}

// one resets and then acts a little.
func (m *resetRun) one(ctx context.Context, seed int64) (took float64, cpu time.Duration, err error) {
	cpu = m.g.CPUTime()
	start := time.Now()
	if _, err := m.env.Reset(ctx, gym.Request{Task: m.plan.Task, Seed: seed}); err != nil {
		return 0, 0, err
	}
	took, cpu = since(start), m.g.CPUTime()-cpu
	r := m.g.LastReset()
	switch {
	case m.last == 0:
	case r.Tracked:
		m.fresh = append(m.fresh, m.last)
	default:
		m.rest = append(m.rest, m.last)
	}
	all, err := m.act(ctx)
	if m.last = 0; r.Start {
		m.last = all
	}
	return took, cpu, err
}

// stepsBetween is how many steps are made between two resets.
const stepsBetween = 3

func (m *resetRun) act(ctx context.Context) (all float64, err error) {
	for k := range stepsBetween {
		start := time.Now()
		if _, err := m.env.Step(ctx, m.plan.Nth(k)); err != nil {
			return 0, err
		}
		took := since(start)
		m.steps = append(m.steps, took)
		all += took
	}
	return all, nil
}

func (m *resetRun) fill() {
	m.res.CPUMS = round(ms(m.cpu) / float64(max(1, m.res.OK)))
	m.res.FirstObs, m.res.FirstNew = spreadOf(m.again), spreadOf(m.anew)
	m.notes.fill(m.res)
	m.res.StepMS = spreadOf(m.steps)
	if len(m.fresh) > 0 && len(m.rest) > 0 {
		cost := round((spreadOf(m.fresh).P50 - spreadOf(m.rest).P50) / stepsBetween)
		m.res.TrackingMS = &cost
	}
	m.res.MemoryMB.End = m.g.Usage().MemoryMB
}

// resetNotes collect what the worlds' driver says about each reset.
type resetNotes struct {
	took, pages            []float64
	split                  map[string][]float64
	slow, verified, starts int
	areas                  int
	reasons                map[string]int
}

// add notes a reset. One that was verified is not timed: comparing takes longer than putting back.
func (n *resetNotes) add(r gym.ResetInfo) {
	if n.split == nil {
		n.split, n.reasons = map[string][]float64{}, map[string]int{}
	}
	if r.Start {
		n.starts++
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
	res.SlowPath, res.Verified, res.Starts, res.Tree.VMAs, res.Reasons = n.slow, n.verified, n.starts, n.areas, n.reasons
	res.SplitMS = map[string]spread{}
	for name, v := range n.split {
		res.SplitMS[name] = spreadOf(v)
	}
}
