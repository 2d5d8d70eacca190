package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/pommelgym/pommel/client"
	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gen/pommel/v1/pommelv1connect"
)

// gymFake speaks the protocol of a server, with episodes that only count.
type gymFake struct {
	pommelv1connect.UnimplementedGymServiceHandler
	// onReset and onStep may hold a call or fail it.
	onReset func()
	onStep  func(action string) *pommelv1.Error

	mu       sync.Mutex
	n        int
	episodes map[string]*fakeEpisode
	byID     map[string]string // by request id
	closed   []string
	beats    chan string
	conns    map[net.Conn]struct{}
}

type fakeEpisode struct {
	actions []string
	answers []*pommelv1.StepResponse
}

func newFake() *gymFake {
	return &gymFake{episodes: map[string]*fakeEpisode{}, byID: map[string]string{}, beats: make(chan string, 100), conns: map[net.Conn]struct{}{}}
}

// listen serves f at addr and returns the address.
func (f *gymFake) listen(tb interface{ Cleanup(func()) }, network, addr, token string) (string, error) {
	mux := http.NewServeMux()
	mux.Handle(pommelv1connect.NewGymServiceHandler(f))
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Protocols: &p,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
				_ = connect.NewErrorWriter().Write(w, r, connect.NewError(connect.CodeUnauthenticated, errors.New("the token is missing or wrong")))
				return
			}
			mux.ServeHTTP(w, r)
		}),
		ConnState: func(c net.Conn, s http.ConnState) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if s == http.StateNew {
				f.conns[c] = struct{}{}
			}
		},
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		return "", err
	}
	done := make(chan struct{})
	go func() { _ = srv.Serve(l); close(done) }()
	tb.Cleanup(func() { _ = srv.Close(); <-done; f.cut() })
	return l.Addr().String(), nil
}

// cut breaks all connections, as a failing network does.
func (f *gymFake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
	clear(f.conns)
}

func (f *gymFake) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.episodes)
}

func (f *gymFake) actions(id string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.episodes[id].actions
}

func (f *gymFake) closedEpisodes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.closed...)
}

func (f *gymFake) GetServer(context.Context, *pommelv1.GetServerRequest) (*pommelv1.GetServerResponse, error) {
	return &pommelv1.GetServerResponse{World: "shop", Worlds: 2, LeaseMs: 60}, nil
}

func (f *gymFake) ListTasks(context.Context, *pommelv1.ListTasksRequest) (*pommelv1.ListTasksResponse, error) {
	return &pommelv1.ListTasksResponse{Tasks: []*pommelv1.Task{{Id: "buy"}}}, nil
}

func (f *gymFake) Heartbeat(_ context.Context, r *pommelv1.HeartbeatRequest) (*pommelv1.HeartbeatResponse, error) {
	f.beats <- r.GetEpisodeId()
	return &pommelv1.HeartbeatResponse{LeaseMs: 60}, nil
}

func (f *gymFake) Close(_ context.Context, r *pommelv1.CloseRequest) (*pommelv1.CloseResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = append(f.closed, r.GetEpisodeId())
	return &pommelv1.CloseResponse{}, nil
}

func (f *gymFake) reset(r *pommelv1.ResetRequest) *pommelv1.ResetResponse {
	if f.onReset != nil {
		f.onReset()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id, again := f.byID[r.GetRequestId()]
	if !again {
		f.n++
		id = fmt.Sprintf("e%d", f.n)
		f.byID[r.GetRequestId()] = id
		f.episodes[id] = &fakeEpisode{}
	}
	return &pommelv1.ResetResponse{EpisodeId: id, Instruction: "Buy it.", Observation: &pommelv1.Observation{Text: "START"}, Info: &pommelv1.Info{Task: r.GetTask(), Seed: r.GetSeed()}}
}

func (f *gymFake) step(r *pommelv1.StepRequest) (*pommelv1.StepResponse, *pommelv1.Error) {
	f.mu.Lock()
	e := f.episodes[r.GetEpisodeId()]
	f.mu.Unlock()
	n := int(r.GetStep())
	switch {
	case e == nil:
		return nil, &pommelv1.Error{Kind: "not_found", Message: "no such episode"}
	case n == len(e.actions) && n > 0 && e.actions[n-1] == r.GetAction():
		return e.answers[n-1], nil
	case n != len(e.actions)+1:
		return nil, &pommelv1.Error{Kind: "invalid_argument", Message: fmt.Sprintf("step %d is not next", n)}
	}
	f.mu.Lock()
	e.actions = append(e.actions, r.GetAction())
	answer := &pommelv1.StepResponse{Step: r.GetStep(), Observation: &pommelv1.Observation{Text: "after " + r.GetAction()}}
	if r.GetAction() == "finish()" {
		answer.Reward, answer.Terminated, answer.Info = 1, true, &pommelv1.Info{Success: true}
	}
	e.answers = append(e.answers, answer)
	f.mu.Unlock()
	if f.onStep != nil {
		if err := f.onStep(r.GetAction()); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func (f *gymFake) Session(ctx context.Context, st *connect.BidiStream[pommelv1.SessionRequest, pommelv1.SessionResponse]) error {
	for {
		req, err := st.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		res := &pommelv1.SessionResponse{Id: req.GetId()}
		switch c := req.GetCall().(type) {
		case *pommelv1.SessionRequest_Reset_:
			res.Result = &pommelv1.SessionResponse_Reset_{Reset_: f.reset(c.Reset_)}
		case *pommelv1.SessionRequest_Step:
			answer, fail := f.step(c.Step)
			res.Result = &pommelv1.SessionResponse_Step{Step: answer}
			if fail != nil {
				res.Result = &pommelv1.SessionResponse_Error{Error: fail}
			}
		case *pommelv1.SessionRequest_Observe:
			res.Result = &pommelv1.SessionResponse_Observe{Observe: &pommelv1.ObserveResponse{Observation: &pommelv1.Observation{Text: "again"}}}
		case *pommelv1.SessionRequest_Heartbeat:
			r, _ := f.Heartbeat(ctx, c.Heartbeat)
			res.Result = &pommelv1.SessionResponse_Heartbeat{Heartbeat: r}
		case *pommelv1.SessionRequest_Close:
			r, _ := f.Close(ctx, c.Close)
			res.Result = &pommelv1.SessionResponse_Close{Close: r}
		}
		if err := st.Send(res); err != nil {
			return err
		}
	}
}

func dial(t *testing.T, f *gymFake, o client.Options) *client.Client {
	t.Helper()
	addr, err := f.listen(t, "tcp", "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func session(t *testing.T, f *gymFake, o client.Options) *client.Session {
	t.Helper()
	s, err := dial(t, f, o).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func mustReset(t *testing.T, s *client.Session) *client.Result {
	t.Helper()
	r, err := s.Reset(t.Context(), client.Request{Task: "buy", Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustStep(t *testing.T, s *client.Session, action string) *client.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := s.Step(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
