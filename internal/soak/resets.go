package soak

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/agent"
)

// Resets says how many episodes are begun, and what is done in them.
type Resets struct {
	// Count is how many episodes are begun, From the number of the first, Actions how many random
	// actions each has at most, Seeds how many seeds of each task there are: few, so that starts come again.
	Count, From, Actions, Seeds int
	Seed                        int64
	// Tasks are the tasks to begin; nil is all.
	Tasks []string
	// OnReset, if set, is called after each episode with the number of wrong states so far.
	OnReset func(wrong int)
}

// ResetsResult is what came of it. Wrong are starts whose first observation or rows were not those of
// the first start of the same task and seed, in whichever world that was.
type ResetsResult struct {
	World    string  `json:"world"`
	Driver   string  `json:"driver"`
	Worlds   int     `json:"worlds"`
	Resets   int     `json:"resets"`
	Actions  int     `json:"actions"`
	Starts   int     `json:"different_starts"`
	Wrong    int     `json:"wrong_states"`
	Verified int     `json:"verified"`
	Orphans  int     `json:"orphans"`
	Lost     int     `json:"worlds_lost"`
	SlowPath int     `json:"slow_paths"`
	Failures int     `json:"failures"`
	Seconds  float64 `json:"seconds"`
	MemoryMB Drift   `json:"memory_mb"` // of the worlds
	// Server is what this process holds.
	Server   ServerDrift `json:"server"`
	Problems []string    `json:"problems,omitempty"`
	// OK holds it against the bars.
	OK bool `json:"ok"`
	// Took are the milliseconds from each reset's call to its first observation.
	Took []float64 `json:"-"`
}

// mostSlow is the share of resets that may take the slow path.
const mostSlow = 0.001

// resetting is such a soak under way.
type resetting struct {
	c     Resets
	g     *gym.Gym
	tasks []gym.TaskInfo

	mu    sync.Mutex
	begun int               // guarded by mu, as all below
	first map[string]string // what the first start of a kind was
	looks []look
	res   ResetsResult
}

// RunResets begins episodes in all worlds of g at the same time, and closes g, to see whether
// anything is left of it. What episode n does depends on n and c.Seed alone. A result comes
// with an interruption too: what was found until then.
func RunResets(ctx context.Context, g *gym.Gym, c Resets) (*ResetsResult, error) {
	tasks, err := g.Select("", "", c.Tasks)
	if err != nil {
		return nil, err
	}
	k := &resetting{c: c, g: g, tasks: tasks, first: map[string]string{}}
	d := g.Describe()
	k.res = ResetsResult{World: d.World, Driver: d.Driver, Worlds: d.Worlds}
	start := time.Now()
	var players sync.WaitGroup
	for range d.Worlds {
		players.Go(func() { k.play(ctx) })
	}
	players.Wait()
	k.res.Seconds = time.Since(start).Seconds()
	n := g.Counts()
	k.res.Lost, k.res.SlowPath, k.res.Verified = n.Lost, n.SlowPaths, n.Verified
	k.res.Orphans, err = closeAll(g)
	k.finish()
	return &k.res, cmp.Or(context.Cause(ctx), err)
}

// play begins episodes until there are enough.
func (k *resetting) play(ctx context.Context) {
	env := k.g.NewEnv()
	defer env.Close()
	rows := &fingerprint{env: env}
	for {
		n := k.take(ctx)
		if n < 0 {
			return
		}
		rng := rand.New(rand.NewPCG(uint64(k.c.Seed), uint64(n)))
		r := gym.Request{Task: k.tasks[rng.IntN(len(k.tasks))].ID, Seed: rng.Int64N(int64(k.c.Seeds)), View: gym.View{Elements: true}}
		if err := k.episode(ctx, env, rows, rng, r); err != nil {
			if ctx.Err() != nil {
				return
			}
			k.fail(n, r, err)
		}
		k.count(n)
	}
}

// take is the number of the next episode, or -1.
func (k *resetting) take(ctx context.Context) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.begun >= k.c.Count || ctx.Err() != nil {
		return -1
	}
	k.begun++
	return k.c.From + k.begun - 1
}

// episode begins one, looks whether it begins as the first time, and plays at random.
func (k *resetting) episode(ctx context.Context, env *gym.Env, rows *fingerprint, rng *rand.Rand, r gym.Request) error {
	start := time.Now()
	last, err := env.Reset(ctx, r)
	if err != nil {
		return err
	}
	took := time.Since(start)
	sum, err := rows.take(ctx)
	if err != nil {
		return err
	}
	k.began(fmt.Sprintf("%s seed %d", r.Task, r.Seed), last.Info.ObservationHash+" "+sum, took)
	words := strings.Fields(last.Instruction)
	for range k.c.Actions {
		if last.Done() {
			break
		}
		if last, err = env.Step(ctx, agent.RandomAction(rng, last.Observation, words)); err != nil {
			return err
		}
		k.mu.Lock()
		k.res.Actions++
		k.mu.Unlock()
	}
	return nil
}

// began holds a start against the first one of its kind.
func (k *resetting) began(kind, state string, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.res.Took = append(k.res.Took, float64(took)/float64(time.Millisecond))
	was, again := k.first[kind]
	if again && was != state {
		k.res.Wrong++
		k.problem("%s began as %s, and the first time as %s", kind, state, was)
	}
	if !again {
		k.first[kind] = state
	}
}

func (k *resetting) fail(n int, r gym.Request, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.res.Failures++
	k.problem("episode %d, %s seed %d: %v", n, r.Task, r.Seed, err)
}

// problem needs k.mu.
func (k *resetting) problem(format string, args ...any) {
	if len(k.res.Problems) < mostProblems {
		k.res.Problems = append(k.res.Problems, fmt.Sprintf(format, args...))
	}
}

// count notes that an episode is over.
func (k *resetting) count(n int) {
	if every := max(1, k.c.Count/samples); n%every == 0 {
		k.look(n)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.res.Resets++
	if k.c.OnReset != nil {
		k.c.OnReset(k.res.Wrong)
	}
}

// look notes what is held now. A soak that cannot see growth must not pass for one without.
func (k *resetting) look(n int) {
	l, err := lookAt(k.g.Usage().MemoryMB)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		k.res.Failures++
		k.problem("after episode %d: look at this process: %v", n, err)
	case l.worldsMB > 0: // else all worlds are being replaced
		k.looks = append(k.looks, l)
	}
}

// finish holds the result against the bars.
func (k *resetting) finish() {
	r := &k.res
	r.Starts = len(k.first)
	r.MemoryMB = driftOf(k.looks, func(l look) float64 { return l.worldsMB })
	r.Server = ServerDrift{
		MemoryMB:   driftOf(k.looks, func(l look) float64 { return l.serverMB }),
		Goroutines: driftOf(k.looks, func(l look) float64 { return l.goroutines }),
		Files:      driftOf(k.looks, func(l look) float64 { return l.files }),
	}
	r.OK = r.Resets == k.c.Count && r.Wrong == 0 && r.Orphans == 0 && r.Lost == 0 && r.Failures == 0 &&
		!r.grown() && float64(r.SlowPath) <= mostSlow*float64(r.Resets)
}
