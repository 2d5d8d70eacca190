package server

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gen/pommel/v1/pommelv1connect"
	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/episode"
	"github.com/pommelgym/pommel/internal/fault"
)

// script is what the scripted worlds do. Leases, retries and ids are the real ones.
type script struct {
	observation func(step int) *gym.Observation
	// step may fail or block a step before it counts.
	step  func(ctx context.Context, action string) error
	reset func(ctx context.Context) error
}

// scripted is a gym.Sessions over a real table of episodes without browsers.
type scripted struct {
	*episode.Table
	script script
	lease  time.Duration // 0: a minute

	mu    sync.Mutex
	n     int
	steps map[string][]string // guarded by mu: actions done, by episode
	ended chan string         // ids of episodes in the order of their end
}

func newScripted(t testing.TB, sc script) *scripted {
	t.Helper()
	s := &scripted{script: sc, steps: map[string][]string{}, ended: make(chan string, 1000)}
	s.Table = episode.NewTable(s.start, episode.Limits{})
	t.Cleanup(s.Table.Close)
	return s
}

func (s *scripted) start(ctx context.Context, r episode.Request, _ time.Duration) (episode.Live, *gym.Result, error) {
	if s.script.reset != nil {
		if err := s.script.reset(ctx); err != nil {
			return nil, nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	l := &scriptedEpisode{s: s, id: fmt.Sprintf("e%d", s.n), task: r.Task}
	res := &gym.Result{
		EpisodeID: l.id, Instruction: "Do " + r.Task, Observation: l.look(0),
		Info: gym.Info{Task: r.Task, Seed: r.Seed, Stages: []gym.Stage{{Name: "done", Weight: 1}}},
	}
	if r.Profile != "" {
		res.Info.Perturbed, res.Info.Profile = true, r.Profile
		res.Info.Perturbations = []gym.PerturbationEvent{{
			VirtualMS: 1500, Step: 1, Rule: "slow", Kind: "http.latency", At: 2, Target: "GET /", Seen: "late",
			Numbers: map[string]int{"delay": 3000}, Texts: map[string]string{"style": "icon"}, Cost: 1,
		}}
	}
	return l, res, nil
}

func (s *scripted) Reset(ctx context.Context, r gym.SessionRequest) (*gym.Result, error) {
	return s.Table.Reset(ctx, episode.ResetCall{Request: r.Request, RequestID: r.RequestID, Previous: r.Previous, Wait: r.Wait, Lease: cmp.Or(r.Lease, s.lease)})
}

func (s *scripted) Tasks(split, _ string) ([]gym.TaskInfo, error) {
	if split != "" && split != "train" {
		return nil, fault.New(fault.InvalidArgument, "split %q; want train", split)
	}
	return []gym.TaskInfo{{ID: "buy", Title: "Buy", Difficulty: "easy", Split: "train", MaxSteps: 30, Stages: []string{"done"}}}, nil
}

func (s *scripted) Describe() gym.Description {
	return gym.Description{Version: "v1", World: "shop", WorldTitle: "Shop", Driver: "local", Worlds: 2, Free: 1, Lease: cmp.Or(s.lease, time.Minute)}
}

func (s *scripted) done(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.steps[id]...)
}

type scriptedEpisode struct {
	s        *scripted
	id, task string
}

func (l *scriptedEpisode) ID() string { return l.id }

func (l *scriptedEpisode) Step(ctx context.Context, action string, _ gym.View) (*gym.Result, error) {
	if l.s.script.step != nil {
		if err := l.s.script.step(ctx, action); err != nil {
			return nil, err
		}
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.steps[l.id] = append(l.s.steps[l.id], action)
	n := len(l.s.steps[l.id])
	o := l.look(n)
	o.LastAction = action
	over := strings.HasPrefix(action, "finish(")
	return &gym.Result{EpisodeID: l.id, Step: n, Observation: o, Reward: 0.5, Terminated: over, Info: gym.Info{Task: l.task, Success: over}}, nil
}

func (l *scriptedEpisode) Observe(context.Context, gym.View) (*gym.Observation, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.look(len(l.s.steps[l.id])), nil
}

func (l *scriptedEpisode) Checkpoint(context.Context) (string, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return fmt.Sprint(len(l.s.steps[l.id])), nil
}

func (l *scriptedEpisode) Restore(_ context.Context, id string) (*gym.Result, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	var n int
	if _, err := fmt.Sscan(id, &n); err != nil {
		return nil, fault.New(fault.NotFound, "the episode has no checkpoint %q", id)
	}
	l.s.steps[l.id] = l.s.steps[l.id][:n]
	return &gym.Result{EpisodeID: l.id, Step: n, Observation: l.look(n), Info: gym.Info{Task: l.task}}, nil
}

func (l *scriptedEpisode) Forget(context.Context, string) error { return nil }

func (l *scriptedEpisode) End(string) { l.s.ended <- l.id }

func (l *scriptedEpisode) look(step int) *gym.Observation {
	if l.s.script.observation != nil {
		return l.s.script.observation(step)
	}
	return &gym.Observation{URL: "http://shop/", Title: "Shop", Text: fmt.Sprintf("page %d", step), Tabs: []gym.Tab{{URL: "http://shop/", Active: true}}}
}

// running is a server that listens.
type running struct {
	url  string
	stop func() // stops it and waits for its end
}

func serve(t testing.TB, sessions gym.Sessions, o Options, addr string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	urls, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- New(sessions, o).ListenAndServe(ctx, addr, func(url string) { urls <- url }) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	select {
	case u := <-urls:
		t.Cleanup(stop)
		return running{url: u, stop: stop}
	case err := <-ended:
		cancel()
		t.Fatalf("server did not start: %v", err)
	}
	return running{}
}

// h2c is an HTTP client that speaks HTTP/2 without TLS, through cutting when it is set.
func h2c(t testing.TB, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	t.Helper()
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &p, DialContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func gymClient(t testing.TB, url string, opts ...connect.ClientOption) pommelv1connect.GymServiceClient {
	t.Helper()
	return pommelv1connect.NewGymServiceClient(h2c(t, nil), url, opts...)
}

func mustReset(t testing.TB, c pommelv1connect.GymServiceClient, r *pommelv1.ResetRequest) *pommelv1.ResetResponse {
	t.Helper()
	if r.GetTask() == "" {
		r.Task = "buy"
	}
	res, err := c.Reset(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// wantError checks code and kind, and returns the detail.
func wantError(t testing.TB, err error, code connect.Code, kind fault.Kind) *pommelv1.Error {
	t.Helper()
	if connect.CodeOf(err) != code {
		t.Errorf("error = %v (%v), want code %v", err, connect.CodeOf(err), code)
	}
	var ce *connect.Error
	if !asConnect(err, &ce) || len(ce.Details()) == 0 {
		t.Fatalf("error %v carries no detail", err)
	}
	v, derr := ce.Details()[0].Value()
	if derr != nil {
		t.Fatal(derr)
	}
	d := v.(*pommelv1.Error)
	if d.GetKind() != string(kind) {
		t.Errorf("kind = %q, want %q", d.GetKind(), kind)
	}
	return d
}

// withToken sends the server's token with each call.
func withToken(token string) connect.ClientOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			if token != "" {
				r.Header().Set("Authorization", "Bearer "+token)
			}
			return next(ctx, r)
		}
	}))
}
