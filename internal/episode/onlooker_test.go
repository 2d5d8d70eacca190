package episode

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

// TestLooksRenewNoLease: an onlooker keeps no episode alive, however often he looks.
func TestLooksRenewNoLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorlds{}
		tb := NewTable(w.start, Limits{Lease: time.Minute})
		defer tb.Close()
		id := reset(t, tb, ResetCall{}).EpisodeID
		for range 5 {
			time.Sleep(10 * time.Second) // fake time of the synctest bubble
			if o, err := tb.Look(t.Context(), id, browser.View{}); err != nil || o.Text != "seen" {
				t.Fatalf("look = %+v, %v", o, err)
			}
			if h := tb.Held(); len(h) != 1 || h[0].EpisodeID != id || h[0].Lease != time.Minute || h[0].Busy {
				t.Fatalf("held = %+v", h)
			}
		}
		if left := time.Until(tb.Held()[0].Expires); left != 10*time.Second {
			t.Errorf("left = %v", left)
		}
		time.Sleep(11 * time.Second) // fake time of the synctest bubble
		synctest.Wait()
		_, err := tb.Look(t.Context(), id, browser.View{})
		wantKind(t, err, fault.LeaseExpired)
		if h := tb.Held(); len(h) != 0 {
			t.Errorf("held = %+v", h)
		}
	})
}

// TestLeaseThatEndsDuringALook ends once the look is over.
func TestLeaseThatEndsDuringALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		look := make(chan struct{})
		w := &fakeWorlds{setup: func(l *fakeLive) { l.look = look }}
		tb := NewTable(w.start, Limits{Lease: time.Minute})
		defer tb.Close()
		id := reset(t, tb, ResetCall{}).EpisodeID
		looked := make(chan error, 1)
		go func() {
			_, err := tb.Look(t.Context(), id, browser.View{})
			looked <- err
		}()
		time.Sleep(2 * time.Minute) // fake time of the synctest bubble
		if len(tb.Held()) != 1 {
			t.Error("the episode ended under an onlooker's eyes")
		}
		close(look)
		if err := <-looked; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if h := tb.Held(); len(h) != 0 {
			t.Errorf("held = %+v", h)
		}
		if got := w.live(0).ended; len(got) != 1 || got[0] != "lease_expired" {
			t.Errorf("ended = %q", got)
		}
	})
}

// TestLooksWaitForNobody: an episode in a step, or over, is left alone.
func TestLooksWaitForNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorlds{setup: func(l *fakeLive) { l.block = make(chan struct{}) }}
		tb := NewTable(w.start, Limits{})
		defer tb.Close()
		id := reset(t, tb, ResetCall{}).EpisodeID
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 3 {
				if _, err := tb.Step(t.Context(), id, 0, "a()", browser.View{}); err != nil {
					t.Error(err)
				}
			}
		}()
		synctest.Wait()
		_, err := tb.Look(t.Context(), id, browser.View{})
		wantKind(t, err, fault.ResourceExhausted)
		if h := tb.Held(); len(h) != 1 || !h[0].Busy {
			t.Errorf("held = %+v", h)
		}
		close(w.live(0).block)
		<-done
		_, err = tb.Look(t.Context(), id, browser.View{})
		wantKind(t, err, fault.EpisodeOver)
		_, err = tb.Look(t.Context(), "e9", browser.View{})
		wantKind(t, err, fault.NotFound)
	})
}
