package server

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
)

// TestGentleStop: while a stop drains, the step in progress gets its answer and calls on
// running episodes are answered, new episodes are refused; then streams end.
func TestGentleStop(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}, 2), make(chan struct{})
	sessions := newScripted(t, script{step: func(context.Context, string) error {
		started <- struct{}{}
		<-release
		return nil
	}})
	draining, drained := make(chan struct{}), make(chan struct{})
	srv := serve(t, sessions, Options{Drain: func(context.Context) error {
		close(draining)
		<-drained
		return nil
	}}, "127.0.0.1:0")
	c := gymClient(t, srv.url)
	id := mustReset(t, c, &pommelv1.ResetRequest{}).GetEpisodeId()
	st := openStream(t, t.Context(), srv.url)
	idle := openStream(t, t.Context(), srv.url)
	exchange(t, idle, &pommelv1.SessionRequest{Id: 1})
	if err := st.Send(&pommelv1.SessionRequest{Id: 1, Call: stepOf(id, 1, "a()"), Keep: true}); err != nil {
		t.Fatal(err)
	}
	<-started
	stopped := make(chan struct{})
	go func() { srv.stop(); close(stopped) }()
	<-draining
	if _, err := c.Reset(t.Context(), &pommelv1.ResetRequest{Task: "buy"}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("reset while draining = %v", err)
	}
	if res := exchange(t, idle, &pommelv1.SessionRequest{Id: 2, Call: resetOf("buy")}); res.GetError().GetKind() != "resource_exhausted" {
		t.Errorf("reset on a stream while draining = %v", res)
	}
	if code, _ := get(t, srv.url+"/readyz"); code != 503 {
		t.Errorf("readyz while draining = %d", code)
	}
	close(release)
	if res, err := st.Receive(); err != nil || res.GetStep().GetStep() != 1 {
		t.Errorf("running step = %v, %v", res, err)
	}
	if _, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: id, Step: 2}); err != nil {
		t.Errorf("step while draining = %v", err)
	}
	close(drained)
	for _, s := range []*clientStream{st, idle} {
		if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("end of the stream = %v", err)
		}
	}
	<-stopped
}
