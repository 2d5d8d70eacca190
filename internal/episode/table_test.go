package episode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

// fakeLive is an episode of three steps that counts what was done to it.
type fakeLive struct {
	id    string
	block chan struct{} // a step waits for it, if set
	look  chan struct{} // an observation waits for it, if set
	fail  error

	mu       sync.Mutex
	steps    []string
	ended    []string
	saved    []int // by checkpoint: how many steps had been made
	restores int
}

func (f *fakeLive) ID() string { return f.id }

func (f *fakeLive) Step(ctx context.Context, a string, _ browser.View) (*Result, error) {
	if f.block != nil {
		select {
		case <-f.block:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps = append(f.steps, a)
	if f.fail != nil {
		return nil, f.fail
	}
	return &Result{EpisodeID: f.id, Step: len(f.steps), Reward: 0.5, Terminated: len(f.steps) == 3}, nil
}

func (f *fakeLive) Observe(context.Context, browser.View) (*browser.Observation, error) {
	if f.look != nil {
		<-f.look
	}
	return &browser.Observation{Text: "seen"}, nil
}

func (f *fakeLive) Checkpoint(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved = append(f.saved, len(f.steps))
	return fmt.Sprintf("c%d", len(f.saved)), f.fail
}

func (f *fakeLive) Restore(_ context.Context, id string) (*Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var k int
	if _, err := fmt.Sscanf(id, "c%d", &k); err != nil || k > len(f.saved) {
		return nil, fault.New(fault.NotFound, "no %s", id)
	}
	f.restores++
	f.steps = f.steps[:f.saved[k-1]]
	return &Result{EpisodeID: f.id, Step: len(f.steps)}, nil
}

func (f *fakeLive) Forget(context.Context, string) error { return nil }

func (f *fakeLive) End(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, reason)
}

type fakeWorlds struct {
	mu    sync.Mutex
	made  []*fakeLive
	setup func(*fakeLive)
	delay time.Duration
	err   error
}

func (w *fakeWorlds) start(ctx context.Context, r Request, _ time.Duration) (Live, *Result, error) {
	select {
	case <-time.After(w.delay):
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if w.err != nil {
		return nil, nil, w.err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &fakeLive{id: fmt.Sprintf("e%d", len(w.made)+1)}
	if w.setup != nil {
		w.setup(l)
	}
	w.made = append(w.made, l)
	return l, &Result{EpisodeID: l.id}, nil
}

func (w *fakeWorlds) live(i int) *fakeLive {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made[i]
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if got := fault.KindOf(err); got != want {
		t.Errorf("error = %v, kind %q, want %q", err, got, want)
	}
}

func reset(t *testing.T, tb *Table, c ResetCall) *Result {
	t.Helper()
	r, err := tb.Reset(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRetriedStepIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorlds{}
		tb := NewTable(w.start, Limits{})
		defer tb.Close()
		r := reset(t, tb, ResetCall{})
		ctx := t.Context()
		first, err := tb.Step(ctx, r.EpisodeID, 1, "click('1')", browser.View{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := tb.Step(ctx, r.EpisodeID, 1, "click('1')", browser.View{})
		if err != nil || again != first {
			t.Errorf("retry = %p, %v, want the first result %p", again, err, first)
		}
		_, err = tb.Step(ctx, r.EpisodeID, 1, "click('2')", browser.View{})
		wantKind(t, err, fault.InvalidArgument)
		_, err = tb.Step(ctx, r.EpisodeID, 5, "click('2')", browser.View{})
		wantKind(t, err, fault.InvalidArgument)
		if _, err = tb.Step(ctx, r.EpisodeID, 0, "click('2')", browser.View{}); err != nil {
			t.Error(err)
		}
		_, err = tb.Step(ctx, r.EpisodeID, 1, "click('1')", browser.View{})
		wantKind(t, err, fault.StaleEpisode)
		if got := w.live(0).steps; len(got) != 2 {
			t.Errorf("steps made = %q, want 2", got)
		}
	})
}

func TestStepOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		w := &fakeWorlds{setup: func(l *fakeLive) { l.block = gate }}
		tb := NewTable(w.start, Limits{})
		defer tb.Close()
		id := reset(t, tb, ResetCall{}).EpisodeID
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = tb.Step(ctx, id, 1, "buy", browser.View{})
		}()
		synctest.Wait()
		cancel() // the connection breaks
		retry := make(chan *Result)
		go func() {
			r, err := tb.Step(t.Context(), id, 1, "buy", browser.View{})
			if err != nil {
				t.Error(err)
			}
			retry <- r
		}()
		synctest.Wait()
		close(gate)
		if r := <-retry; r == nil || r.Step != 1 {
			t.Errorf("retry = %+v, want step 1", r)
		}
		<-done
		if got := w.live(0).steps; len(got) != 1 {
			t.Errorf("the step was made %d times", len(got))
		}
	})
}

func TestEndOfAnEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorlds{}
		tb := NewTable(w.start, Limits{})
		defer tb.Close()
		id := reset(t, tb, ResetCall{}).EpisodeID
		for n := 1; n <= 3; n++ {
			if _, err := tb.Step(t.Context(), id, n, "a", browser.View{}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := tb.Step(t.Context(), id, 4, "a", browser.View{})
		wantKind(t, err, fault.EpisodeOver)
		next := reset(t, tb, ResetCall{Previous: id})
		_, err = tb.Step(t.Context(), id, 3, "a", browser.View{})
		wantKind(t, err, fault.StaleEpisode)
		_, err = tb.Step(t.Context(), "nonsense", 1, "a", browser.View{})
		wantKind(t, err, fault.NotFound)
		for range 2 {
			if err := tb.CloseEpisode(t.Context(), next.EpisodeID); err != nil {
				t.Error(err)
			}
		}
		if tb.Len() != 0 || len(w.live(0).ended) != 1 || len(w.live(1).ended) != 1 {
			t.Errorf("held %d, ended %q %q; want nothing held and each ended once", tb.Len(), w.live(0).ended, w.live(1).ended)
		}
	})
}

func TestVanishedCallerLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorlds{}
		tb := NewTable(w.start, Limits{Lease: 10 * time.Second})
		defer tb.Close()
		silent := reset(t, tb, ResetCall{}).EpisodeID
		beating := reset(t, tb, ResetCall{}).EpisodeID
		for range 5 {
			time.Sleep(4 * time.Second) // fake time of the synctest bubble
			if _, err := tb.Heartbeat(t.Context(), beating); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		_, err := tb.Step(t.Context(), silent, 1, "a", browser.View{})
		wantKind(t, err, fault.LeaseExpired)
		if _, err := tb.Step(t.Context(), beating, 1, "a", browser.View{}); err != nil {
			t.Error(err)
		}
		if got := w.live(0).ended; len(got) != 1 || got[0] != "lease_expired" {
			t.Errorf("ended = %q", got)
		}
	})
}

func TestLongStepDoesNotLoseItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		w := &fakeWorlds{setup: func(l *fakeLive) { l.block = gate }}
		tb := NewTable(w.start, Limits{Lease: time.Second})
		defer tb.Close()
		id := reset(t, tb, ResetCall{}).EpisodeID
		time.AfterFunc(20*time.Second, func() { close(gate) })
		for n := 1; n <= 2; n++ {
			if _, err := tb.Step(t.Context(), id, n, "a", browser.View{}); err != nil {
				t.Errorf("step %d: %v", n, err)
			}
		}
	})
}

func TestRetriedResetIsOneEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorlds{delay: 5 * time.Second}
		tb := NewTable(w.start, Limits{})
		defer tb.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := tb.Reset(ctx, ResetCall{RequestID: "r1"})
		wantKind(t, err, fault.Canceled)
		r := reset(t, tb, ResetCall{RequestID: "r1"})
		r2 := reset(t, tb, ResetCall{RequestID: "r1"})
		if r.EpisodeID != r2.EpisodeID || len(w.made) != 1 {
			t.Errorf("ids %q and %q of %d episodes, want one", r.EpisodeID, r2.EpisodeID, len(w.made))
		}
	})
}

func TestLostWorldIsAnErrorEachTimeItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := fault.New(fault.WorldLost, "the browser died")
		w := &fakeWorlds{setup: func(l *fakeLive) { l.fail = lost }}
		tb := NewTable(w.start, Limits{})
		defer tb.Close()
		id := reset(t, tb, ResetCall{}).EpisodeID
		for _, n := range []int{1, 1, 2} {
			_, err := tb.Step(t.Context(), id, n, "a", browser.View{})
			wantKind(t, err, fault.WorldLost)
		}
		if got := w.live(0).steps; len(got) != 1 {
			t.Errorf("a lost world was stepped %d times", len(got))
		}
		w.err = errors.New("disk full")
		_, err := tb.Reset(t.Context(), ResetCall{RequestID: "x"})
		wantKind(t, err, fault.Internal)
		w.err = nil
		reset(t, tb, ResetCall{RequestID: "x"}) // a failed start may be tried again under its id
	})
}

func TestBadViewCostsNoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := NewTable((&fakeWorlds{}).start, Limits{})
		defer tb.Close()
		id := reset(t, tb, ResetCall{}).EpisodeID
		_, err := tb.Step(t.Context(), id, 1, "a", browser.View{Screenshot: "gif"})
		wantKind(t, err, fault.InvalidArgument)
		if _, err := tb.Step(t.Context(), id, 1, "b", browser.View{}); err != nil {
			t.Error(err)
		}
	})
}

func TestDrainAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorlds{}
		tb := NewTable(w.start, Limits{})
		a, b := reset(t, tb, ResetCall{}).EpisodeID, reset(t, tb, ResetCall{}).EpisodeID
		drained := make(chan error)
		go func() { drained <- tb.Drain(t.Context()) }()
		synctest.Wait()
		_, err := tb.Reset(t.Context(), ResetCall{})
		wantKind(t, err, fault.Canceled)
		_ = tb.CloseEpisode(t.Context(), a)
		synctest.Wait()
		select {
		case err := <-drained:
			t.Fatalf("Drain returned %v with an episode left", err)
		default:
		}
		_ = tb.CloseEpisode(t.Context(), b)
		if err := <-drained; err != nil {
			t.Error(err)
		}
		tb.Close()
		tb.Close()
	})
}

// TestStatus: who takes an episode over learns where it is, also after its end.
func TestStatus(t *testing.T) {
	t.Parallel()
	w := &fakeWorlds{}
	tab := NewTable(w.start, Limits{})
	defer tab.Close()
	first, err := tab.Reset(t.Context(), ResetCall{Request: Request{Task: "t", Seed: 4, View: browser.View{HTML: true}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := tab.Status(t.Context(), first.EpisodeID)
	if err != nil || s.Steps != 0 || s.Last != first || s.Task != "t" || s.Seed != 4 || !s.View.HTML {
		t.Errorf("status = %+v, %v", s, err)
	}
	for n := 1; n <= 3; n++ {
		for range 2 { // the second one is a repetition, which earns nothing
			if _, err := tab.Step(t.Context(), first.EpisodeID, n, "a", browser.View{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s, err = tab.Status(t.Context(), first.EpisodeID); err != nil || s.Steps != 3 || s.Reward != 1.5 || !s.Last.Done() {
		t.Errorf("status at the end = %+v, %v", s, err)
	}
	if _, err := tab.Status(t.Context(), "nobody"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("status of nobody = %v", err)
	}
}
