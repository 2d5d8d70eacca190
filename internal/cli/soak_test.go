package cli_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pommelgym/pommel/client"
	"github.com/pommelgym/pommel/internal/trace"
)

// soakEpisodes is how many episodes the soak finishes: 30, or 5,000 when POMMEL_SOAK is set.
func soakEpisodes() int64 {
	if os.Getenv("POMMEL_SOAK") == "" {
		return 30
	}
	return 5000
}

// badLine is a network on which connections break at any time.
type badLine struct {
	l      net.Listener
	target string

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func newBadLine(t *testing.T, target string) *badLine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &badLine{l: l, target: target}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			b.mu.Lock()
			b.conns = append(b.conns, in, out)
			b.mu.Unlock()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				open.Go(func() { _, _ = io.Copy(pair[0], pair[1]); _ = pair[0].Close(); _ = pair[1].Close() })
			}
		}
	})
	t.Cleanup(func() { _ = l.Close(); b.cut(); open.Wait() })
	return b
}

func (b *badLine) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		_ = c.Close()
	}
	b.conns = nil
}

// played is what a client believes of an episode that it has finished.
type played struct {
	actions []string
	reward  float64
	success bool
}

// soak is one run: its clients' books are compared with the server's.
type soak struct {
	t      *testing.T
	server *served
	lease  time.Duration
	left   atomic.Int64 // episodes to finish
	seed   atomic.Int64

	mu       sync.Mutex
	finished map[string]played // guarded by mu
	void     map[string]int    // guarded by mu: by kind
}

// TestSoakOfBadClients: four clients are killed, stand still for longer than their lease, and lose
// their connections in the middle of calls. No world is leaked, no reward is false, and no step is
// carried out twice: the task is only solved when each action is done once.
func TestSoakOfBadClients(t *testing.T) {
	t.Parallel()
	traces := t.TempDir()
	s := &soak{t: t, lease: 2 * time.Second, finished: map[string]played{}, void: map[string]int{}}
	s.server = serve(t, "--worlds", "2", "--lease", s.lease.String(), "--traces", traces, "--keep", "0")
	s.left.Store(soakEpisodes())
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() { s.client(rand.New(rand.NewPCG(uint64(n), 7))) })
	}
	clients.Wait()
	s.compare(traces)
	s.noneLeft()
	t.Logf("%d episodes finished, void: %v", len(s.finished), s.void)
}

// client lives many lives: each ends by its own death, and the next one knows nothing of it.
func (s *soak) client(r *rand.Rand) {
	line := newBadLine(s.t, strings.TrimPrefix(s.server.address, "http://"))
	for s.left.Load() > 0 && !s.t.Failed() {
		s.life(r, line)
	}
}

func (s *soak) life(r *rand.Rand, line *badLine) {
	c, err := client.Dial(line.l.Addr().String(), client.Options{Name: "soak"})
	if err != nil {
		s.t.Error(err)
		return
	}
	defer c.Close()
	sess, err := c.Session(s.t.Context())
	if client.KindOf(err) == client.Unavailable {
		return // the line was cut in this moment
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	for s.left.Load() > 0 {
		alive := s.episode(r, line, sess)
		if !alive {
			line.cut() // without a farewell
			return
		}
	}
	if err := sess.Close(); err != nil && client.KindOf(err) != client.Unavailable {
		s.t.Error(err)
	}
}

var cartGoal = regexp.MustCompile(`^Put (\d+) of "(.+)" into your cart\. Do not order anything\.$`)

func cartPlan(goal string) []string {
	m := cartGoal.FindStringSubmatch(goal)
	if m == nil {
		return nil
	}
	return []string{
		fmt.Sprintf("fill(selector='#search', value=%q)", m[2]), "press(selector='#search', key_comb='Enter')",
		fmt.Sprintf("click(selector=%q)", "text="+m[2]), fmt.Sprintf("fill(selector='#quantity', value=%q)", m[1]), "click(selector='#add-to-cart')",
	}
}

// episode plays one. It returns false when the client dies.
func (s *soak) episode(r *rand.Rand, line *badLine, sess *client.Session) (alive bool) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	res, err := sess.Reset(ctx, client.Request{Task: "add-to-cart", Seed: s.seed.Add(1)})
	if err != nil {
		return s.lost("reset", err)
	}
	var got played
	for _, action := range cartPlan(res.Instruction) {
		switch r.IntN(20) {
		case 0:
			return false
		case 1:
			// Standing still is the case that is tested: the lease ends meanwhile.
			time.Sleep(s.lease + s.lease/4)
		case 2, 3, 4:
			cut := time.AfterFunc(time.Duration(r.IntN(40))*time.Millisecond, line.cut)
			defer cut.Stop()
		}
		if res, err = sess.Step(ctx, action); err != nil {
			return s.lost("step", err)
		}
		got.actions = append(got.actions, action)
		got.reward += res.Reward
		got.success = res.Info.GetSuccess()
	}
	if !res.Done() {
		s.t.Errorf("episode %s is not over after its plan: %v, last error %v", res.EpisodeID, got, res.Observation.GetLastActionError())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished[res.EpisodeID] = got
	s.left.Add(-1)
	return true
}

// lost notes an episode that the client could not finish. Only its own faults may cause that.
func (s *soak) lost(call string, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := client.KindOf(err)
	s.void[string(kind)]++
	if kind != client.LeaseExpired && kind != client.Unavailable && kind != client.ResourceExhausted {
		s.t.Errorf("%s: %v", call, err)
	}
	return true
}

// compare holds the clients' books against the server's records.
func (s *soak) compare(traces string) {
	for id, want := range s.finished {
		if want.reward < 0.999 || want.reward > 1.001 || !want.success {
			s.t.Errorf("episode %s: reward %g, success %v for a solved task", id, want.reward, want.success)
		}
		tr, err := trace.Read(filepath.Join(traces, id))
		if err != nil {
			s.t.Errorf("record of %s: %v", id, err)
			continue
		}
		var made []string
		for _, st := range tr.Steps {
			if st.Step > 0 { // step 0 is the reset
				made = append(made, st.Action)
			}
		}
		if !slices.Equal(made, want.actions) {
			s.t.Errorf("episode %s: the client asked for %q, the server made %q", id, want.actions, made)
		}
	}
}

// noneLeft waits until every world is free again.
func (s *soak) noneLeft() {
	c, err := client.Dial(s.server.address, client.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		info, err := c.Server(ctx)
		if err != nil {
			s.t.Fatalf("worlds are left over: %v", err)
		}
		if info.GetFreeWorlds() == info.GetWorlds() {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond): // the RPC tells of worlds only when it is asked
		case <-ctx.Done():
			s.t.Fatalf("%d of %d worlds are free", info.GetFreeWorlds(), info.GetWorlds())
		}
	}
}
