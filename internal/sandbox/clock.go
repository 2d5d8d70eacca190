package sandbox

import (
	"context"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/worldclock"
)

// takeClock keeps what the keeper says about the clock.
func (s *Sandbox) takeClock(a answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noClock = a.NoClock
	if len(a.files) < 2 {
		return nil
	}
	defer a.files[1].Close()
	page, err := worldclock.OpenPage(a.files[1], true)
	if err != nil {
		return err
	}
	s.page = page
	return nil
}

func (s *Sandbox) closeClock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.page != nil {
		_ = s.page.Close() // it cannot be told to anybody
		s.page = nil
	}
}

// Clocked is nil when the processes live by a clock of the sandbox's own, and otherwise
// says why they live by the real one (fault.Unsupported).
func (s *Sandbox) Clocked() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.page != nil:
		return nil
	case s.noClock != "":
		return fault.New(fault.Unsupported, "this host cannot give a world its own clock: %s", s.noClock)
	}
	return fault.New(fault.Unsupported, "the sandbox has no clock of its own")
}

// Now is the instant that processes inside read; without a clock it is the real one.
func (s *Sandbox) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.page == nil {
		return time.Now()
	}
	return s.page.Now()
}

// SetClock sets the instant that processes inside read. Without a clock, or in a sandbox
// that was closed, it does nothing.
func (s *Sandbox) SetClock(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.page == nil {
		return nil
	}
	return s.page.Set(at)
}

// Reseed makes the random bytes that processes get from the kernel a function of a seed,
// from now on. Without a clock it does nothing.
func (s *Sandbox) Reseed(ctx context.Context, label string, seed uint64) error {
	if s.Clocked() != nil {
		return nil
	}
	_, err := s.call(ctx, request{Reseed: &reseedRequest{Label: label, Seed: seed}})
	return err
}
