package client_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/pommelgym/pommel/client"
	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
)

func TestEpisode(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := session(t, f, client.Options{})
	first := mustReset(t, s)
	if first.Step != 0 || first.Done() || first.Instruction != "Buy it." || first.Observation.GetText() != "START" || first.Info.GetSeed() != 3 {
		t.Errorf("reset = %+v", first)
	}
	for i, action := range []string{"a()", "a()", "b()"} {
		if r := mustStep(t, s, action); r.Step != i+1 || r.Observation.GetText() != "after "+action || r.Done() {
			t.Errorf("step %d = %+v", i+1, r)
		}
	}
	if o, err := s.Observe(t.Context(), nil); err != nil || o.GetText() != "again" {
		t.Errorf("observe = %v, %v", o, err)
	}
	if d, err := s.Heartbeat(t.Context()); err != nil || d.Milliseconds() != 60 {
		t.Errorf("heartbeat = %v, %v", d, err)
	}
	if r := mustStep(t, s, "finish()"); !r.Done() || !r.Terminated || r.Reward != 1 || !r.Info.GetSuccess() {
		t.Errorf("end = %+v", r)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if got := f.closedEpisodes(); !slices.Equal(got, []string{first.EpisodeID}) {
		t.Errorf("closed %q", got)
	}
	if _, err := s.Step(t.Context(), "a()"); client.KindOf(err) != client.EpisodeOver {
		t.Errorf("step after close = %v", err)
	}
}

// TestBrokenConnection: the connection breaks after the step was made and before its
// answer came. The caller gets the answer, and the step was made once.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	f := newFake()
	var once sync.Once
	f.onStep = func(string) *pommelv1.Error { once.Do(f.cut); return nil }
	s := session(t, f, client.Options{})
	first := mustReset(t, s)
	if r := mustStep(t, s, "buy()"); r.Step != 1 || r.Observation.GetText() != "after buy()" {
		t.Errorf("step = %+v", r)
	}
	mustStep(t, s, "next()")
	if got := f.actions(first.EpisodeID); !slices.Equal(got, []string{"buy()", "next()"}) {
		t.Errorf("actions = %q", got)
	}
}

func TestBrokenConnectionInReset(t *testing.T) {
	t.Parallel()
	f := newFake()
	var once sync.Once
	f.onReset = func() { once.Do(f.cut) }
	s := session(t, f, client.Options{})
	if r := mustReset(t, s); r.EpisodeID != "e1" && r.EpisodeID != "e2" {
		t.Errorf("reset = %+v", r)
	}
	mustStep(t, s, "a()")
}

func TestWithoutRetries(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := session(t, f, client.Options{Retries: -1})
	mustReset(t, s)
	var once sync.Once
	f.onStep = func(string) *pommelv1.Error { once.Do(f.cut); return nil }
	if _, err := s.Step(t.Context(), "a()"); client.KindOf(err) != client.Unavailable || !client.KindOf(err).Void() {
		t.Errorf("step = %v", err)
	}
	// The caller may decide to ask again by itself.
	if r := mustStep(t, s, "a()"); r.Step != 1 {
		t.Errorf("step = %+v", r)
	}
}

// TestAbandonedStep: a step whose context ended is made once, whatever is called next.
func TestAbandonedStep(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"slow()", "other()"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			started, release := make(chan struct{}), make(chan struct{})
			f.onStep = func(a string) *pommelv1.Error {
				if a == "slow()" {
					close(started)
					<-release
				}
				return nil
			}
			s := session(t, f, client.Options{})
			first := mustReset(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-started; cancel() }()
			if _, err := s.Step(ctx, "slow()"); client.KindOf(err) != client.Canceled || !errors.Is(err, context.Canceled) {
				t.Errorf("abandoned step = %v", err)
			}
			close(release)
			want := []string{"slow()"}
			if next != "slow()" {
				want = append(want, next)
			}
			if r := mustStep(t, s, next); r.Step != len(want) || r.Observation.GetText() != "after "+next {
				t.Errorf("step = %+v", r)
			}
			if got := f.actions(first.EpisodeID); !slices.Equal(got, want) {
				t.Errorf("actions = %q, want %q", got, want)
			}
		})
	}
}

// TestAbandonedReset: the episode that nobody waited for is closed.
func TestAbandonedReset(t *testing.T) {
	t.Parallel()
	f := newFake()
	started, release := make(chan struct{}, 2), make(chan struct{})
	f.onReset = func() { started <- struct{}{}; <-release }
	s := session(t, f, client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := s.Reset(ctx, client.Request{Task: "buy"}); client.KindOf(err) != client.Canceled {
		t.Errorf("abandoned reset = %v", err)
	}
	close(release)
	r := mustReset(t, s)
	if got := f.closedEpisodes(); !slices.Equal(got, []string{"e1"}) || r.EpisodeID != "e2" {
		t.Errorf("closed %q, running %s", got, r.EpisodeID)
	}
}

// TestForgetfulServer: a server that was restarted has lost the episode: it is void.
func TestForgetfulServer(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := session(t, f, client.Options{})
	mustReset(t, s)
	f.forget()
	for range 2 {
		if _, err := s.Step(t.Context(), "a()"); client.KindOf(err) != client.WorldLost || !client.KindOf(err).Void() {
			t.Errorf("step = %v", err)
		}
	}
	mustReset(t, s)
	mustStep(t, s, "a()")
}

func TestTypedErrors(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.onStep = func(string) *pommelv1.Error {
		return &pommelv1.Error{Kind: "world_lost", Message: "the browser died", Hint: "reset"}
	}
	s := session(t, f, client.Options{})
	mustReset(t, s)
	var e *client.Error
	if _, err := s.Step(t.Context(), "a()"); !errors.As(err, &e) || e.Kind != client.WorldLost || e.Message != "the browser died" || e.Hint != "reset" {
		t.Errorf("error = %+v", e)
	}
}

func TestNoEpisode(t *testing.T) {
	t.Parallel()
	s := session(t, newFake(), client.Options{})
	if _, err := s.Step(t.Context(), "a()"); client.KindOf(err) != client.EpisodeOver {
		t.Errorf("step = %v", err)
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := session(t, f, client.Options{Heartbeat: true})
	id := mustReset(t, s).EpisodeID
	for range 3 {
		if got := <-f.beats; got != id {
			t.Errorf("heartbeat of %s, want %s", got, id)
		}
	}
}

func TestDial(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"", ":7777", "host:7777/path", "ftp://x", "http://", "unix:", "::::"} {
		if _, err := client.Dial(addr, client.Options{}); client.KindOf(err) != client.InvalidArgument {
			t.Errorf("dial %q = %v", addr, err)
		}
	}
	path := filepath.Join(t.TempDir(), "s")
	if _, err := newFake().listen(t, "unix", path, ""); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial("unix:"+path, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if info, err := c.Server(t.Context()); err != nil || info.GetWorld() != "shop" {
		t.Errorf("server = %v, %v", info, err)
	}
	if tasks, err := c.Tasks(t.Context(), "", ""); err != nil || len(tasks) != 1 {
		t.Errorf("tasks = %v, %v", tasks, err)
	}
}

func TestServerOutOfReach(t *testing.T) {
	t.Parallel()
	c, err := client.Dial("unix:"+filepath.Join(t.TempDir(), "none"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Session(t.Context()); client.KindOf(err) != client.Unavailable {
		t.Errorf("session = %v", err)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	addr, err := newFake().listen(t, "tcp", "127.0.0.1:0", "secret")
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]client.Kind{"": client.Unauthenticated, "wrong": client.Unauthenticated, "secret": ""} {
		c, err := client.Dial("http://"+addr, client.Options{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		s, err := c.Session(t.Context())
		if client.KindOf(err) != want {
			t.Errorf("token %q: %v", token, err)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
