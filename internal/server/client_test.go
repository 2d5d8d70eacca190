package server

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pommelgym/pommel/client"
	"github.com/pommelgym/pommel/internal/fault"
)

// cuttingProxy passes bytes on until it is told to cut.
type cuttingProxy struct {
	l      net.Listener
	target string

	frozen atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, target string) *cuttingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &cuttingProxy{l: l, target: target}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.target)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			wg.Go(func() { p.pass(out, in) })
			wg.Go(func() { p.pass(in, out) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.cut(); wg.Wait() })
	return p
}

// pass copies until an end closes. A frozen proxy swallows what comes, as a network does
// whose other side has lost its power.
func (p *cuttingProxy) pass(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if p.frozen.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *cuttingProxy) freeze() { p.frozen.Store(true) }

func (p *cuttingProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func openSession(t *testing.T, addr string, o client.Options) *client.Session {
	t.Helper()
	c, err := client.Dial(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestClientOverABadNetwork: the connection is cut in every step, after the step has
// begun. Each step is made once, and each result arrives.
func TestClientOverABadNetwork(t *testing.T) {
	t.Parallel()
	var proxy *cuttingProxy
	var once sync.Map
	sessions := newScripted(t, script{step: func(_ context.Context, action string) error {
		if _, again := once.LoadOrStore(action, true); !again {
			proxy.cut()
		}
		return nil
	}})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	proxy = newProxy(t, srv.url[len("http://"):])
	s := openSession(t, proxy.l.Addr().String(), client.Options{})
	r, err := s.Reset(t.Context(), client.Request{Task: "buy", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	id, want := r.EpisodeID, []string{"a()", "b()", "c()", "d()", "finish()"}
	for i, action := range want {
		r, err = s.Step(t.Context(), action)
		if err != nil || r.Step != i+1 || r.Observation.GetLastAction() != action {
			t.Fatalf("step %d = %+v, %v", i+1, r, err)
		}
	}
	if !r.Done() || !r.Info.GetSuccess() {
		t.Errorf("end = %+v", r)
	}
	if got := sessions.done(id); !slices.Equal(got, want) {
		t.Errorf("steps made = %q", got)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	waitEnd(t, sessions, id)
}

// TestClientThatCrashes: with its connection gone and no farewell, the lease frees the
// world; without retries the server frees it at once.
func TestClientThatCrashes(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]client.Options{"that may come back": {}, "that will not": {Retries: -1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sessions := newScripted(t, script{})
			srv := serve(t, sessions, Options{}, "127.0.0.1:0")
			proxy := newProxy(t, srv.url[len("http://"):])
			s := openSession(t, proxy.l.Addr().String(), o)
			req := client.Request{Task: "buy"}
			if o.Retries == 0 {
				req.Lease = 100 * time.Millisecond
			}
			r, err := s.Reset(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			_ = proxy.l.Close()
			proxy.cut()
			waitEnd(t, sessions, r.EpisodeID)
		})
	}
}

// TestRestartedServer: the episode is void, and the session goes on with the next one.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	path := "unix:" + filepath.Join(t.TempDir(), "s")
	first := serve(t, newScripted(t, script{}), Options{}, path)
	s := openSession(t, path, client.Options{})
	if _, err := s.Reset(t.Context(), client.Request{Task: "buy"}); err != nil {
		t.Fatal(err)
	}
	first.stop()
	// Another script, so that ids of the first server mean nothing here.
	second := newScripted(t, script{})
	second.n = 100
	serve(t, second, Options{}, path)
	if _, err := s.Step(t.Context(), "a()"); client.KindOf(err) != client.WorldLost {
		t.Fatalf("step after the restart = %v", err)
	}
	if r, err := s.Reset(t.Context(), client.Request{Task: "buy"}); err != nil || r.EpisodeID != "e101" {
		t.Fatalf("reset after the restart = %+v, %v", r, err)
	}
}

// TestClientKeepsItsLease: a slow agent with a heartbeat outlives many leases.
func TestClientKeepsItsLease(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	s := openSession(t, srv.url, client.Options{Heartbeat: true})
	lease := 600 * time.Millisecond
	if _, err := s.Reset(t.Context(), client.Request{Task: "buy", Lease: lease}); err != nil {
		t.Fatal(err)
	}
	// Thinking is what is tested here: there is no event to wait for.
	select {
	case id := <-sessions.ended:
		t.Fatalf("episode %s lost its lease", id)
	case <-time.After(3 * lease):
	}
	if _, err := s.Step(t.Context(), "finish()"); err != nil {
		t.Fatal(err)
	}
}

func TestClientSeesKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{
		fault.InvalidArgument, fault.EpisodeOver, fault.StaleEpisode, fault.LeaseExpired,
		fault.ResourceExhausted, fault.WorldLost, fault.Unsupported, fault.Internal,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			sessions := newScripted(t, script{step: func(context.Context, string) error {
				return fault.New(kind, "what happened").WithHint("what to do")
			}})
			s := openSession(t, serve(t, sessions, Options{}, "127.0.0.1:0").url, client.Options{})
			if _, err := s.Reset(t.Context(), client.Request{Task: "buy"}); err != nil {
				t.Fatal(err)
			}
			_, err := s.Step(t.Context(), "a()")
			var e *client.Error
			if !errors.As(err, &e) || string(e.Kind) != string(kind) || e.Message != "what happened" || e.Hint != "what to do" {
				t.Errorf("error = %#v", err)
			}
		})
	}
}
