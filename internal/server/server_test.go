package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gen/pommel/v1/pommelv1connect"
	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
)

func asConnect(err error, target **connect.Error) bool { return errors.As(err, target) }

// TestEveryProtocol: one episode from Reset to Close in each protocol that the port speaks.
func TestEveryProtocol(t *testing.T) {
	t.Parallel()
	srv := serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0")
	http1 := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(http1.CloseIdleConnections)
	for name, c := range map[string]pommelv1connect.GymServiceClient{
		"connect":       gymClient(t, srv.url),
		"connect json":  gymClient(t, srv.url, connect.WithProtoJSON()),
		"connect http1": pommelv1connect.NewGymServiceClient(http1, srv.url),
		"grpc":          gymClient(t, srv.url, connect.WithGRPC()),
		"grpc-web":      gymClient(t, srv.url, connect.WithGRPCWeb()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			first := mustReset(t, c, &pommelv1.ResetRequest{Task: "buy", Seed: 1 << 60})
			id := first.GetEpisodeId()
			if first.GetInstruction() != "Do buy" || first.GetInfo().GetSeed() != 1<<60 || first.GetObservation().GetText() != "page 0" {
				t.Errorf("reset = %v", first)
			}
			r, err := c.Step(ctx, &pommelv1.StepRequest{EpisodeId: id, Step: 1, Action: "click('1')"})
			if err != nil || r.GetStep() != 1 || r.GetReward() != 0.5 || r.GetObservation().GetLastAction() != "click('1')" {
				t.Errorf("step = %v, %v", r, err)
			}
			if o, err := c.Observe(ctx, &pommelv1.ObserveRequest{EpisodeId: id}); err != nil || o.GetObservation().GetText() != "page 1" {
				t.Errorf("observe = %v, %v", o, err)
			}
			if h, err := c.Heartbeat(ctx, &pommelv1.HeartbeatRequest{EpisodeId: id}); err != nil || h.GetLeaseMs() != 60_000 {
				t.Errorf("heartbeat = %v, %v", h, err)
			}
			for range 2 {
				if _, err := c.Close(ctx, &pommelv1.CloseRequest{EpisodeId: id}); err != nil {
					t.Errorf("close = %v", err)
				}
			}
			_, err = c.Step(ctx, &pommelv1.StepRequest{EpisodeId: id, Step: 2, Action: "noop()"})
			wantError(t, err, connect.CodeFailedPrecondition, fault.StaleEpisode)
			tasks, err := c.ListTasks(ctx, &pommelv1.ListTasksRequest{})
			if err != nil || len(tasks.GetTasks()) != 1 || tasks.GetTasks()[0].GetMaxSteps() != 30 {
				t.Errorf("tasks = %v, %v", tasks, err)
			}
			if d, err := c.GetServer(ctx, &pommelv1.GetServerRequest{}); err != nil || d.GetWorld() != "shop" || d.GetFreeWorlds() != 1 || d.GetLeaseMs() != 60_000 {
				t.Errorf("server = %v, %v", d, err)
			}
		})
	}
}

// TestPlainJSON: a caller with nothing but curl reads the error kind.
func TestPlainJSON(t *testing.T) {
	t.Parallel()
	srv := serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url+"/pommel.v1.GymService/Step", strings.NewReader(`{"episodeId":"nope","action":"noop()"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusNotFound {
		t.Fatalf("status %d, %v", res.StatusCode, err)
	}
	for _, want := range []string{`"code":"not_found"`, `"type":"pommel.v1.Error"`, `"kind":"not_found"`, `"hint":`} {
		if !strings.Contains(strings.ReplaceAll(string(body), " ", ""), want) {
			t.Errorf("%s holds no %s", body, want)
		}
	}
}

// TestErrorTable: each kind has its code, its hint arrives, its private cause does not.
func TestErrorTable(t *testing.T) {
	t.Parallel()
	for kind, code := range map[fault.Kind]connect.Code{
		fault.InvalidArgument:   connect.CodeInvalidArgument,
		fault.NotFound:          connect.CodeNotFound,
		fault.EpisodeOver:       connect.CodeFailedPrecondition,
		fault.StaleEpisode:      connect.CodeFailedPrecondition,
		fault.LeaseExpired:      connect.CodeFailedPrecondition,
		fault.ResourceExhausted: connect.CodeResourceExhausted,
		fault.WorldLost:         connect.CodeDataLoss,
		fault.Unsupported:       connect.CodeUnimplemented,
		fault.Canceled:          connect.CodeCanceled,
		fault.Internal:          connect.CodeInternal,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inner := fault.New(kind, "inner words")
			inner.Err = errors.New("/secret/path")
			sessions := newScripted(t, script{step: func(context.Context, string) error {
				return fault.Wrap(fault.Internal, inner.WithHint("do this"), "outer words")
			}})
			c := gymClient(t, serve(t, sessions, Options{}, "127.0.0.1:0").url)
			id := mustReset(t, c, &pommelv1.ResetRequest{}).GetEpisodeId()
			_, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: id, Step: 1, Action: "noop()"})
			d := wantError(t, err, code, kind)
			if d.GetMessage() != "outer words: inner words" || d.GetHint() != "do this" {
				t.Errorf("detail = %v", d)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("private cause leaked: %v", err)
			}
		})
	}
}

func TestErrorWithoutKindIsInternalAndSilent(t *testing.T) {
	t.Parallel()
	if w := wireError(errors.New("/secret")); w.GetKind() != "internal" || strings.Contains(w.GetMessage(), "secret") {
		t.Errorf("wire = %v", w)
	}
	if w := wireError(context.Canceled); w.GetKind() != "canceled" {
		t.Errorf("wire = %v", w)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	c := gymClient(t, serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0").url)
	ctx := t.Context()
	id := mustReset(t, c, &pommelv1.ResetRequest{}).GetEpisodeId()
	for want, call := range map[string]func() error{
		"task is empty":  func() error { _, err := c.Reset(ctx, &pommelv1.ResetRequest{}); return err },
		"lease_ms is -1": func() error { _, err := c.Reset(ctx, &pommelv1.ResetRequest{Task: "a", LeaseMs: -1}); return err },
		`view.screenshot is "bmp"`: func() error {
			_, err := c.Observe(ctx, &pommelv1.ObserveRequest{EpisodeId: id, View: &pommelv1.View{Screenshot: "bmp"}})
			return err
		},
		"view.max_text is -1": func() error {
			_, err := c.Step(ctx, &pommelv1.StepRequest{EpisodeId: id, View: &pommelv1.View{MaxText: -1}})
			return err
		},
		"episode_id is empty":           func() error { _, err := c.Step(ctx, &pommelv1.StepRequest{}); return err },
		"step is -3":                    func() error { _, err := c.Step(ctx, &pommelv1.StepRequest{EpisodeId: id, Step: -3}); return err },
		`split "moon"; want train`:      func() error { _, err := c.ListTasks(ctx, &pommelv1.ListTasksRequest{Split: "moon"}); return err },
		"step 7 is not next; step 1 is": func() error { _, err := c.Step(ctx, &pommelv1.StepRequest{EpisodeId: id, Step: 7}); return err },
	} {
		if d := wantError(t, call(), connect.CodeInvalidArgument, fault.InvalidArgument); !strings.Contains(d.GetMessage(), want) {
			t.Errorf("message %q, want %q", d.GetMessage(), want)
		}
	}
}

// TestForeignText: what a page writes never makes an answer that the transport refuses.
func TestForeignText(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{observation: func(int) *gym.Observation {
		return &gym.Observation{
			Title: "half \xed\xa0\xbd smile", URL: "http://x/\xff", HTML: strings.Repeat("\u6f22", maxPart/3+2), Text: "nul\x00 and \uffff",
			AXTree: []byte(`"` + strings.Repeat("a", maxPart) + `"`), Dialog: &gym.Dialog{Message: "\xc0"},
			Screenshot: &gym.Image{Format: "png", Data: make([]byte, maxImage+1)},
			Elements:   []gym.Element{{Bid: "1", Name: "\xfe"}},
		}
	}})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	for _, opt := range [][]connect.ClientOption{{}, {connect.WithGRPC()}, {connect.WithProtoJSON()}} {
		o := mustReset(t, gymClient(t, srv.url, opt...), &pommelv1.ResetRequest{}).GetObservation()
		if !utf8.ValidString(o.GetTitle()) || !strings.Contains(o.GetTitle(), "\uFFFD") {
			t.Errorf("title = %q", o.GetTitle())
		}
		if o.GetText() != "nul\x00 and \uffff" {
			t.Errorf("text = %q", o.GetText())
		}
		if !o.GetTruncated() || len(o.GetHtml()) > maxPart || !utf8.ValidString(o.GetHtml()) || o.GetAxtreeJson() != "" || o.GetScreenshot() != nil {
			t.Errorf("truncated %v, html of %d bytes, axtree of %d", o.GetTruncated(), len(o.GetHtml()), len(o.GetAxtreeJson()))
		}
	}
}

// TestLostReply is a step whose caller vanishes in the middle: the retry gets the
// first result, and the step is made once.
func TestLostReply(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}, 2), make(chan struct{})
	sessions := newScripted(t, script{step: func(context.Context, string) error {
		started <- struct{}{}
		<-release
		return nil
	}})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	c := gymClient(t, srv.url)
	id := mustReset(t, c, &pommelv1.ResetRequest{}).GetEpisodeId()
	req := &pommelv1.StepRequest{EpisodeId: id, Step: 1, Action: "click('buy')"}
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() {
		_, err := gymClient(t, srv.url).Step(ctx, req)
		lost <- err
	}()
	<-started
	cancel()
	if err := <-lost; connect.CodeOf(err) != connect.CodeCanceled {
		t.Errorf("lost call = %v", err)
	}
	close(release)
	r, err := c.Step(t.Context(), req)
	if err != nil || r.GetStep() != 1 {
		t.Fatalf("retry = %v, %v", r, err)
	}
	if done := sessions.done(id); len(done) != 1 {
		t.Errorf("steps made = %q", done)
	}
	req.Action = "click('other')"
	_, err = c.Step(t.Context(), req)
	wantError(t, err, connect.CodeInvalidArgument, fault.InvalidArgument)
	next := mustReset(t, c, &pommelv1.ResetRequest{PreviousEpisodeId: id})
	req.Action = "click('buy')"
	_, err = c.Step(t.Context(), req)
	wantError(t, err, connect.CodeFailedPrecondition, fault.StaleEpisode)
	if next.GetEpisodeId() == id {
		t.Error("the episode's id was used again")
	}
}

// TestVanishedCaller: silence for longer than the lease frees the world.
func TestVanishedCaller(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	c := gymClient(t, serve(t, sessions, Options{}, "127.0.0.1:0").url)
	id := mustReset(t, c, &pommelv1.ResetRequest{LeaseMs: 30}).GetEpisodeId()
	waitEnd(t, sessions, id)
	_, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: id, Step: 1, Action: "noop()"})
	wantError(t, err, connect.CodeFailedPrecondition, fault.LeaseExpired)
}

func waitEnd(t *testing.T, s *scripted, id string) {
	t.Helper()
	select {
	case got := <-s.ended:
		if got != id {
			t.Errorf("episode %s ended, want %s", got, id)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("episode %s was not ended", id)
	}
}

func TestPanicIsOneFailedCall(t *testing.T) {
	t.Parallel()
	c := gymClient(t, serve(t, panicking{newScripted(t, script{})}, Options{}, "127.0.0.1:0").url)
	_, err := c.ListTasks(t.Context(), &pommelv1.ListTasksRequest{})
	wantError(t, err, connect.CodeInternal, fault.Internal)
	if _, err := c.GetServer(t.Context(), &pommelv1.GetServerRequest{}); err != nil {
		t.Errorf("next call = %v", err)
	}
}

type panicking struct{ gym.Sessions }

func (panicking) Tasks(string, string) ([]gym.TaskInfo, error) { panic("broken") }
