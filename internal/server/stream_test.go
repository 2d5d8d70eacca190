package server

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gen/pommel/v1/pommelv1connect"
	"github.com/pommelgym/pommel/internal/fault"
)

type clientStream = connect.BidiStreamForClientSimple[pommelv1.SessionRequest, pommelv1.SessionResponse]

func openStream(t testing.TB, ctx context.Context, url string, opts ...connect.ClientOption) *clientStream {
	t.Helper()
	st, err := gymClient(t, url, opts...).Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func exchange(t testing.TB, st *clientStream, req *pommelv1.SessionRequest) *pommelv1.SessionResponse {
	t.Helper()
	if err := st.Send(req); err != nil {
		t.Fatal(err)
	}
	res, err := st.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func resetOf(task string) *pommelv1.SessionRequest_Reset_ {
	return &pommelv1.SessionRequest_Reset_{Reset_: &pommelv1.ResetRequest{Task: task}}
}

func stepOf(id string, n int32, action string) *pommelv1.SessionRequest_Step {
	return &pommelv1.SessionRequest_Step{Step: &pommelv1.StepRequest{EpisodeId: id, Step: n, Action: action}}
}

// TestStreamAnswersInOrder: pipelined requests are answered in order with their ids,
// errors are answers, and the stream goes on after them.
func TestStreamAnswersInOrder(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	for name, opts := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := openStream(t, t.Context(), srv.url, opts...)
			id := exchange(t, st, &pommelv1.SessionRequest{Id: 7, Call: resetOf("buy")}).GetReset_().GetEpisodeId()
			for _, r := range []*pommelv1.SessionRequest{
				{Id: 10, Call: stepOf(id, 1, "a()")},
				{Id: 9, Call: stepOf(id, 5, "b()")},
				{Id: 8},
				{Id: 11, Call: stepOf(id, 2, "c()")},
				{Id: 12, Call: &pommelv1.SessionRequest_Observe{Observe: &pommelv1.ObserveRequest{EpisodeId: id}}},
				{Id: 13, Call: &pommelv1.SessionRequest_Heartbeat{Heartbeat: &pommelv1.HeartbeatRequest{EpisodeId: id}}},
				{Id: 14, Call: &pommelv1.SessionRequest_Close{Close: &pommelv1.CloseRequest{EpisodeId: id}}},
			} {
				if err := st.Send(r); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range []struct {
				id    int64
				kind  fault.Kind
				reply bool
			}{{10, "", true}, {9, fault.InvalidArgument, false}, {8, fault.InvalidArgument, false}, {11, "", true}, {12, "", true}, {13, "", true}, {14, "", true}} {
				res, err := st.Receive()
				if err != nil {
					t.Fatal(err)
				}
				if res.GetId() != want.id || res.GetError().GetKind() != string(want.kind) || (res.GetError() == nil) != want.reply {
					t.Errorf("answer = %v, want id %d and kind %q", res, want.id, want.kind)
				}
			}
			if err := st.CloseRequest(); err != nil {
				t.Error(err)
			}
			if _, err := st.Receive(); !errors.Is(err, io.EOF) {
				t.Errorf("end of the stream = %v", err)
			}
		})
	}
}

// TestEndOfStream: episodes end with their stream, however it ends, unless they are kept.
func TestEndOfStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ cut, keep bool }{
		"closed": {}, "cut": {cut: true}, "closed, kept": {keep: true}, "cut, kept": {cut: true, keep: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sessions := newScripted(t, script{})
			srv := serve(t, sessions, Options{}, "127.0.0.1:0")
			var conn net.Conn
			http := h2c(t, func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
				conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
				return conn, err
			})
			st, err := pommelv1connect.NewGymServiceClient(http, srv.url).Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			id := exchange(t, st, &pommelv1.SessionRequest{Call: resetOf("buy"), Keep: c.keep}).GetReset_().GetEpisodeId()
			if c.cut {
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
			} else if err := st.CloseRequest(); err != nil {
				t.Error(err)
			}
			if !c.keep {
				waitEnd(t, sessions, id)
				return
			}
			if _, err := st.Receive(); err == nil {
				t.Error("the stream did not end")
			}
			again := openStream(t, t.Context(), srv.url)
			if res := exchange(t, again, &pommelv1.SessionRequest{Call: stepOf(id, 1, "a()")}); res.GetStep().GetStep() != 1 {
				t.Errorf("step on the next stream = %v", res)
			}
		})
	}
}

// TestResetOnAStreamThatBreaks: an episode that starts for nobody is not started.
func TestResetOnAStreamThatBreaks(t *testing.T) {
	t.Parallel()
	started, gaveUp := make(chan struct{}), make(chan struct{})
	sessions := newScripted(t, script{reset: func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		close(gaveUp)
		return ctx.Err()
	}})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st := openStream(t, ctx, srv.url)
	call := resetOf("buy")
	call.Reset_.RequestId = "r1"
	if err := st.Send(&pommelv1.SessionRequest{Call: call}); err != nil {
		t.Fatal(err)
	}
	<-started
	cancel()
	if err := st.CloseResponse(); err != nil {
		t.Log(err)
	}
	<-gaveUp
	if n := sessions.Len(); n != 0 {
		t.Errorf("%d episodes are held", n)
	}
}
