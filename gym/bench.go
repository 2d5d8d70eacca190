package gym

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/world"
)

// BenchAction is one action that benchmarks make again and again.
type BenchAction struct {
	Name string
	Do   string
}

// BenchPlan is what a world's author named as typical work: see bench in world.yaml.
type BenchPlan struct {
	Task    string
	URL     string
	Actions []BenchAction
}

// Nth is the i-th action of an endless round; each begins by going to the plan's page.
func (p BenchPlan) Nth(i int) string {
	if i %= len(p.Actions) + 1; i > 0 {
		return p.Actions[i-1].Do
	}
	return fmt.Sprintf("goto(%q)", p.URL)
}

// Bench is the plan in the world's world.yaml.
func (g *Gym) Bench() (BenchPlan, error) {
	b := g.spec.Bench
	if len(b.Actions) == 0 {
		return BenchPlan{}, fault.New(fault.InvalidArgument, "world %s names no bench in its world.yaml", g.spec.Name).
			WithHint("add bench: {task, url, actions: [{name, do}]}; see docs/worlds.md")
	}
	p := BenchPlan{Task: b.Task, URL: b.URL}
	for _, a := range b.Actions {
		p.Actions = append(p.Actions, BenchAction{Name: a.Name, Do: a.Do})
	}
	return p, nil
}

// Settled waits until no world is being started.
func (g *Gym) Settled(ctx context.Context) error { return g.pool.Settled(ctx) }

// Usage is what one world takes.
type Usage struct {
	MemoryMB  float64
	Processes int
	Threads   int
}

// Usage measures the worlds that are up now and returns their mean.
func (g *Gym) Usage() Usage {
	u := g.pool.Usage()
	return Usage{MemoryMB: u.MemoryMB, Processes: u.Processes, Threads: u.Threads}
}

// CPUTime is the CPU that the whole machine has used: what the processes of a world used
// that was ended is counted nowhere else. It means something on a machine with nothing else to do.
func (g *Gym) CPUTime() time.Duration { return MachineCPU() }

// MachineCPU is the CPU that the whole machine has used.
func MachineCPU() time.Duration {
	const tick = time.Second / 100 // USER_HZ, fixed on Linux
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var sum time.Duration
	for i, field := range strings.Fields(line) {
		// user, nice, system, then idle and iowait, then irq and softirq
		if n, err := strconv.ParseInt(field, 10, 64); err == nil && i != 4 && i != 5 && i <= 7 {
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// ResetInfo says how a world was put back after an episode.
type ResetInfo struct {
	Took time.Duration
	// SlowPath says that the world was started afresh instead; Reason why.
	SlowPath bool
	Reason   string
	// Start says that the world was put back to the kept start of an episode.
	Start bool
	// Split are parts of Took. Those of a rewind that run side by side may add up to more.
	Split map[string]time.Duration
	// Pages were written back, cleared or dropped.
	Pages int
	// Tracked says that for most of them a page fault told of the first write since the reset before. Where a
	// page is known to be written in most episodes, it is written back without that.
	Tracked bool
	Areas   int // of memory, in all processes
	// Verified says that everything was compared with the snapshot, which takes long.
	Verified bool
}

// Services are the database and the application of a world without its browser, to
// measure what it takes to put them back.
type Services struct{ s *world.Services }

// OpenServices starts and saves them. The driver is one that can put them back in place:
// rewind or microvm; "auto" is rewind.
func OpenServices(ctx context.Context, name, driver string, progress func(string)) (*Services, error) {
	d, err := world.DriverByName(driver)
	if err != nil {
		return nil, err
	}
	dir, err := world.Find(name)
	if err != nil {
		return nil, err
	}
	spec, _, err := read(dir)
	if err != nil {
		return nil, err
	}
	img, err := world.BuildImage(ctx, spec, progress)
	if err != nil {
		return nil, err
	}
	s, err := world.StartServices(ctx, img, d, progress)
	if err != nil {
		return nil, err
	}
	return &Services{s}, nil
}

// Driver is the name of the driver that puts them back.
func (s *Services) Driver() string { return s.s.Driver() }

// Work changes rows and has a page made.
func (s *Services) Work(ctx context.Context) error { return s.s.Work(ctx) }

// Reset puts the processes back; with verify everything is then compared with the snapshot.
func (s *Services) Reset(ctx context.Context, verify bool) (ResetInfo, error) {
	r, err := s.s.Reset(ctx, verify)
	return resetInfo(r), err
}

// Usage is what they take.
func (s *Services) Usage() Usage {
	u := s.s.Info().Usage
	return Usage{MemoryMB: u.MemoryMB, Processes: u.Processes, Threads: u.Threads}
}

// Close ends them.
func (s *Services) Close() error { return s.s.Close() }

// Counts say what became of the worlds since the gym was opened.
type Counts struct {
	Resets, SlowPaths, Failures, Lost, Verified int
}

// Counts are those of now.
func (g *Gym) Counts() Counts {
	s := g.pool.Stats()
	return Counts{Resets: s.Resets, SlowPaths: s.SlowPaths, Failures: s.Failures, Lost: s.Lost, Verified: s.Verified}
}

// Pids are the processes of all worlds that are up.
func (g *Gym) Pids() []int {
	var out []int
	for _, w := range g.pool.Worlds() {
		info := w.Info()
		out = append(out, info.Keeper)
		for _, m := range info.Processes {
			out = append(out, m.Pid)
		}
	}
	return out
}

// LastReset is the latest reset of a world.
func (g *Gym) LastReset() ResetInfo { return resetInfo(g.pool.Stats().LastReset) }

func resetInfo(r world.ResetReport) ResetInfo {
	info := ResetInfo{Took: r.Took, Start: r.Start, SlowPath: r.SlowPath, Reason: r.Reason, Split: r.Split, Verified: r.Verified}
	if w := r.Rewind; w != nil {
		info.Pages = w.PagesWritten + w.PagesZeroed + w.PagesDropped + w.PagesShared
		info.Tracked = w.PagesTracked > (w.PagesWritten+w.PagesZeroed)/2
		info.Areas = w.Areas
	}
	return info
}
