package soak

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/pommelgym/pommel/client"
	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server"
)

// Config says what is played.
type Config struct {
	// Episodes is how many episodes are finished; those that their clients give up come on top.
	Episodes int
	Clients  int
	// Lease is how long a client may be silent.
	Lease time.Duration
	// Plans is how many tasks take part, and Steps the most that a solution may take.
	Plans, Steps int
	// Tasks are the tasks to choose from; nil is all.
	Tasks []string
	Seed  int64
	// OnPlan, if set, is called for each task that was played undisturbed.
	OnPlan func(task string)
	// OnStart, if set, is called when the first episode is about to begin.
	OnStart func()
	// OnEpisode, if set, is called after each finished episode with the number of faults so far.
	OnEpisode func(faults int)

	// between, if set, stands between the server and the gym.
	between func(gym.Sessions) gym.Sessions
}

// Result is what came of it. Void counts the episodes that clients did not finish by their
// own fault, Faults what must not be.
type Result struct {
	World    string `json:"world"`
	Driver   string `json:"driver"`
	Clients  int    `json:"clients"`
	Plans    int    `json:"plans"`
	Episodes int    `json:"episodes"`
	Steps    int    `json:"steps"`
	// How the clients behaved.
	Cuts       int            `json:"cuts"`
	Stalls     int            `json:"stalls"`
	Pauses     int            `json:"pauses"`
	Deaths     int            `json:"deaths"`
	TakenOver  int            `json:"taken_over"`
	Void       map[string]int `json:"void"`
	Capped     int            `json:"capped"`
	Seconds    float64        `json:"seconds"`
	PerSecond  float64        `json:"episodes_per_second"`
	Goroutines [2]int         `json:"goroutines"`
	// What must not be.
	FalseRewards int      `json:"false_rewards"`
	Twice        int      `json:"steps_carried_out_twice"`
	Unlike       int      `json:"wrong_states"`
	Failures     int      `json:"failures"`
	Leaked       int      `json:"worlds_leaked"`
	Lost         int      `json:"worlds_lost"`
	Orphans      int      `json:"orphans"`
	Streams      int      `json:"streams_leaked"`
	Problems     []string `json:"problems,omitempty"`
}

// Faults is how many there are of all kinds.
func (r *Result) Faults() int {
	return r.FalseRewards + r.Twice + r.Unlike + r.Failures + r.Leaked + r.Lost + r.Orphans + r.Streams
}

const (
	// mostProblems is how many faults are told in words.
	mostProblems = 20
	// mostFaults is how many end a soak: it has shown what it can.
	mostFaults = 100
)

// soaking is a run under way.
type soaking struct {
	c       Config
	plans   []*plan
	address string
	direct  *client.Client // over a line that is never cut

	mu  sync.Mutex
	res Result // guarded by mu
}

// Run plays. It closes g, to see whether anything is left of it. The error is an
// interruption or that nothing could be played; what is wrong is in the result.
func Run(ctx context.Context, g *gym.Gym, c Config) (*Result, error) {
	s := &soaking{c: c, res: Result{Void: map[string]int{}, Clients: c.Clients}}
	err := s.onGym(ctx, g)
	orphans, closed := closeAll(g)
	s.res.Orphans = orphans
	return &s.res, cmp.Or(err, closed)
}

// closeAll closes g and counts the processes of its worlds that are still there.
func closeAll(g *gym.Gym) (orphans int, err error) {
	pids := g.Pids()
	err = g.Close()
	for _, pid := range pids {
		if _, gone := os.Stat(fmt.Sprintf("/proc/%d", pid)); gone == nil {
			orphans++
		}
	}
	return orphans, err
}

func (s *soaking) onGym(ctx context.Context, g *gym.Gym) error {
	s.res.World, s.res.Driver = g.Describe().World, g.Describe().Driver
	var err error
	if s.plans, err = record(ctx, g, s.c); err != nil {
		return err
	}
	s.res.Plans = len(s.plans)
	if err := g.Settled(ctx); err != nil {
		return err
	}
	s.res.Goroutines[0] = runtime.NumGoroutine()
	if err := s.served(ctx, g); err != nil {
		return err
	}
	s.res.Lost = g.Counts().Lost
	s.streams()
	return nil
}

// served plays against a server that it starts and stops.
func (s *soaking) served(ctx context.Context, g *gym.Gym) error {
	table := g.Sessions(gym.SessionLimits{Lease: s.c.Lease})
	defer table.Close()
	var sessions gym.Sessions = table
	if s.c.between != nil {
		sessions = s.c.between(sessions)
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- server.New(sessions, server.Options{}).ListenAndServe(serving, "127.0.0.1:0", func(a string) { address <- a })
	}()
	select {
	case s.address = <-address:
	case err := <-ended:
		return err
	}
	err := s.against(ctx)
	stop()
	if down := <-ended; err == nil && down != nil {
		err = fmt.Errorf("stop the server: %w", down)
	}
	return err
}

// against plays against the server at s.address, and waits until its worlds are free.
func (s *soaking) against(ctx context.Context) error {
	var err error
	if s.direct, err = client.Dial(s.address, client.Options{Name: "soak"}); err != nil {
		return err
	}
	defer s.direct.Close()
	if s.c.OnStart != nil {
		s.c.OnStart()
	}
	start := time.Now()
	if err := s.play(ctx); err != nil {
		return err
	}
	s.res.Seconds = time.Since(start).Seconds()
	s.res.PerSecond = float64(s.res.Episodes) / s.res.Seconds
	return s.free(ctx)
}

func (s *soaking) play(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	target := s.address
	if u, err := url.Parse(s.address); err == nil && u.Host != "" {
		target = u.Host
	}
	var clients sync.WaitGroup
	for n := range s.c.Clients {
		clients.Go(func() {
			if err := s.client(ctx, n, target); err != nil {
				cancel(err)
			}
		})
	}
	clients.Wait()
	return context.Cause(ctx)
}

// free waits until all worlds are free again: that of a client that died in silence is when
// its lease has ended.
func (s *soaking) free(ctx context.Context) error {
	const grace = 30 * time.Second // to put worlds back on a busy machine
	deadline := time.Now().Add(s.c.Lease + grace)
	for {
		info, err := s.direct.Server(ctx)
		if err != nil {
			return err
		}
		taken := int(info.GetWorlds() - info.GetFreeWorlds())
		if taken == 0 || time.Now().After(deadline) {
			s.res.Leaked = taken
			return nil
		}
		// The RPC tells of worlds only when it is asked.
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// streams looks whether connections and calls have left anything behind in this process.
func (s *soaking) streams() {
	const usual = 20                                                                        // worlds have some of their own that come and go
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) { // nothing tells of the end of a goroutine
		s.res.Goroutines[1] = runtime.NumGoroutine()
		if more := s.res.Goroutines[1] - s.res.Goroutines[0]; more <= usual || time.Now().After(deadline) {
			s.res.Streams = max(0, more-usual)
			return
		}
	}
}

// fault notes something that must not be.
func (s *soaking) fault(n *int, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
	if len(s.res.Problems) < mostProblems {
		s.res.Problems = append(s.res.Problems, fmt.Sprintf(format, args...))
	}
}

func (s *soaking) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// more says whether episodes are left to play.
func (s *soaking) more(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ctx.Err() == nil && s.res.Episodes < s.c.Episodes && s.res.Faults() < mostFaults
}

func (s *soaking) finished(steps int) {
	s.mu.Lock()
	s.res.Episodes++
	s.res.Steps += steps
	over := s.res.Episodes > s.c.Episodes
	faults := s.res.Faults()
	s.mu.Unlock()
	if s.c.OnEpisode != nil && !over {
		s.c.OnEpisode(faults)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
