package world

import (
	"context"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/sandbox"
)

// bootLead is how long before the instant of its episodes a world starts. Programs that
// have run for a while are what a user meets; and generators of random numbers that were
// seeded at the start (OpenSSL's, which PostgreSQL uses) take fresh bytes after an hour,
// at the latest, so that those of an episode depend on its seed.
const bootLead = 2 * time.Hour

// clockOf is the clock that a world starts with.
func clockOf(s *Spec) *sandbox.Clock {
	return &sandbox.Clock{Start: s.Clock.Add(-bootLead), Label: s.Name}
}

// Clocked is nil when application and database live by the world's clock; otherwise it
// says why they live by the real one, and with the kernel's random numbers.
func (w *World) Clocked() error {
	if err := w.box.Clocked(); err != nil || w.vm == nil {
		return err
	}
	return w.vm.clocked()
}

// Now is the instant that the world's programs read.
func (w *World) Now() time.Time { return w.box.Now() }

// BeginEpisode sets the instant and the seed of the world's programs.
func (w *World) BeginEpisode(ctx context.Context, at time.Time, seed uint64) error {
	if err := w.box.Reseed(ctx, "episode", seed); err != nil {
		return err
	}
	if w.vm != nil {
		if err := w.vm.m.Reseed(ctx, "episode", seed); err != nil {
			return err
		}
	}
	return w.setClock(at)
}

// setClock sets the clock of the sandbox, and that of a machine in it.
func (w *World) setClock(at time.Time) error {
	if err := w.box.SetClock(at); err != nil || w.vm == nil {
		return err
	}
	return w.vm.setClock(at)
}

// leastAdvance keeps what different actions do from bearing one time.
const leastAdvance = time.Millisecond

// Advance lets the world's clock go on to an instant, and in any case a little.
func (w *World) Advance(to time.Time) error {
	if least := w.box.Now().Add(leastAdvance); to.Before(least) {
		to = least
	}
	return w.setClock(to)
}

const (
	// stallAfter is how long a step may take before anybody asks whether it waits for the clock.
	stallAfter = 500 * time.Millisecond
	// stallWindow is for how long a world must have done nothing to count as waiting, and
	// stallWork what counts as nothing.
	stallWindow = 200 * time.Millisecond
	stallWork   = 5 * time.Millisecond
	// stallAnyway is after how long the clock goes on even if the world is busy: it may be
	// busy with asking what time it is.
	stallAnyway = 5 * time.Second
	// stallTick is how finely a clock that goes on does so.
	stallTick = 10 * time.Millisecond
)

// Unstall is called when something is asked of the world, and the function that it returns
// when it is done, which answers how far the clock had to go on by itself meanwhile. A clock
// that stands still keeps everything waiting that waits for an instant: a database's
// timeouts, its detection of deadlocks, pg_sleep. So when a world has done nothing for a
// while and is not done, its clock goes on in real time.
func (w *World) Unstall() (done func() time.Duration) {
	if w.Clocked() != nil {
		return func() time.Duration { return 0 }
	}
	s := &stall{box: w.box, set: w.setClock, stop: make(chan struct{}), began: time.Now()}
	s.running.Add(1)
	timer := time.AfterFunc(stallAfter, func() {
		defer s.running.Done()
		s.watch()
	})
	return sync.OnceValue(func() time.Duration {
		if timer.Stop() {
			return 0
		}
		close(s.stop)
		s.running.Wait()
		return s.ticked
	})
}

// stall is the watch over one call.
type stall struct {
	box     *sandbox.Sandbox
	set     func(time.Time) error
	began   time.Time
	stop    chan struct{}
	running sync.WaitGroup
	ticked  time.Duration // valid when running is done
}

func (s *stall) watch() {
	for before := s.box.Activity(); ; {
		if !s.pause(stallWindow) {
			return
		}
		now := s.box.Activity()
		if work := now - before; work >= 0 && work < stallWork || time.Since(s.began) > stallAnyway {
			break
		}
		before = now
	}
	for last := time.Now(); s.pause(stallTick); {
		now := time.Now()
		if err := s.set(s.box.Now().Add(now.Sub(last))); err != nil {
			return // at the end of all time
		}
		s.ticked += now.Sub(last)
		last = now
	}
}

// pause waits, and answers whether to go on.
func (s *stall) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.stop:
		return false
	case <-timer.C:
		return true
	}
}
