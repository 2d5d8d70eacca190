package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// shortBudget is the virtual time that passes in any step.
	shortBudget = 50 * time.Millisecond
	// maxRounds bounds a step whose page keeps starting new work.
	maxRounds = 12
)

var errCapped = errors.New("the page did not come to rest in time")

// work is what the page has still to do, as P.state reports it.
type work struct {
	Mine      int      `json:"mine"`      // requests that this step has started
	Others    int      `json:"others"`    // other open requests, and streams
	Timer     float64  `json:"timer"`     // ms to the last timer that counts, or -1
	Raf       int      `json:"raf"`       // callbacks that wait for a frame
	Observers int      `json:"observers"` // frames whose observers wait for frames
	Ended     int      `json:"ended"`     // animations that were just ended
	Names     []string `json:"names"`
	Title     string   `json:"title"`
	Arrived   *arrived `json:"arrived"`
	// Again says that requests were waited for, and that the rest has to be asked anew.
	Again bool `json:"again"`
	Soft  int  `json:"soft"` // of the requests, those that need virtual time to go on
}

// busy says that waiting longer would change what a user sees.
func (w work) busy() bool { return w.Timer >= 0 || w.Raf > 0 || w.Ended > 0 }

// arrived is what the watch saw of the input that was sent.
type arrived struct {
	Down, Move, Key, Input, Wheel, Click int
	Cover, Label                         string
}

// settler lets the consequences of one action happen.
type settler struct {
	b       *Browser
	p       *page
	began   time.Time
	used    time.Duration // virtual
	commits int
	// What had happened when the step began.
	departures, arrivals, downloadsBefore int
	in                                    []int // path to the frame of another origin that is acted on
	scrolled                              bool  // listeners hear of it in the next frame
	frame                                 bool  // a frame is due in any case
	freed                                 bool  // held requests were sent on: their answers are to come
	out                                   *Settle
}

func (b *Browser) settler(p *page, out *Settle) *settler {
	s := &settler{b: b, p: p, began: time.Now(), out: out}
	b.read(func() {
		s.commits, s.arrivals, s.departures, s.downloadsBefore = p.commits, p.commits, p.departures, b.downloads
	})
	return s
}

// ask puts P.state to the page, which answers when the step's requests have ended. At
// the cap it is told to wait no longer.
func (s *settler) ask(ctx context.Context, expr string) (w work, err error) {
	s.b.read(func() { s.p.dirty = false })
	capped, cancel := context.WithDeadlineCause(ctx, s.began.Add(s.b.cfg.Cap), errCapped)
	defer cancel()
	if s.in != nil {
		return s.askInside(capped, ctx, expr)
	}
	ended := 0
	for {
		w = work{}
		err = s.p.evalAgent(capped, expr, &w)
		if errors.Is(err, errCapped) && ctx.Err() == nil {
			s.capped()
			capped, w.Again = ctx, true
			err = s.p.evalAgent(ctx, "P.release()", nil)
		}
		ended += w.Ended
		if err == nil && w.Soft > 0 && w.Again {
			err = s.soften(ctx, capped)
		}
		if err != nil || !w.Again {
			w.Ended = ended
			s.b.read(func() { s.p.title = w.Title })
			return w, err
		}
	}
}

// hop is how long, in real time, another process gets for its part of what it does for
// the page. It is far more than it needs, so that the page hears of it after the same
// virtual time in every run.
const hop = 4 * time.Millisecond

// soften waits for storage and the like: it gives the other side time, and then lets
// the page's clock go on by a tick, without which the page would not hear of it.
func (s *settler) soften(ctx, capped context.Context) error {
	wait, cancel := context.WithTimeoutCause(ctx, hop, errCapped)
	err := s.p.evalAgent(wait, "P.quiet()", nil)
	cancel()
	switch {
	case err == nil || !errors.Is(err, errCapped) || ctx.Err() != nil:
		return err
	case time.Now().After(s.began.Add(s.b.cfg.Cap)) || capped.Err() != nil:
		s.capped()
		return s.p.evalAgent(ctx, "P.release()", nil)
	}
	return s.advance(ctx, time.Millisecond)
}

// askInside asks a frame of another origin first, and then the main frame.
func (s *settler) askInside(capped, ctx context.Context, expr string) (w work, err error) {
	for again := true; again && err == nil; again = w.Again {
		w = work{}
		err = s.p.evalFrame(capped, s.in, expr, &w)
		if errors.Is(err, errCapped) && ctx.Err() == nil {
			s.capped()
			capped, w.Again = ctx, true
			err = s.p.evalFrame(ctx, s.in, "P.release()", nil)
		}
	}
	if err != nil && !errors.Is(err, errNoFrame) {
		return w, err
	}
	inner := w
	w = work{Timer: -1}
	s.in = nil
	if w, err = s.ask(ctx, "P.state()"); err != nil {
		return w, err
	}
	w.Timer, w.Raf, w.Observers, w.Ended = max(w.Timer, inner.Timer), w.Raf+inner.Raf, w.Observers+inner.Observers, w.Ended+inner.Ended
	w.Names, w.Arrived = append(w.Names, inner.Names...), inner.Arrived
	return w, nil
}

func (s *settler) capped() {
	if !s.out.Capped {
		s.b.stats.Capped++
	}
	s.out.Capped = true
}

// run waits until the page has come to rest, starting from what it said it has to do.
func (s *settler) run(ctx context.Context, w work) error {
	defer func() { s.out.Wall += time.Since(s.began) }()
	for round := 0; ; round++ {
		s.out.Running = w.Names
		d := s.budget(w, round)
		if err := s.advance(ctx, d); err != nil {
			return err
		}
		if err := s.windows(ctx); err != nil {
			return err
		}
		if err := s.frames(ctx, w); err != nil {
			return err
		}
		var dirty bool
		s.b.read(func() { dirty = s.p.dirty })
		if !dirty && !w.busy() && s.due() < 0 && !s.freed {
			return nil
		}
		s.freed = false
		next, err := s.ask(ctx, "P.state()")
		if err != nil {
			return err
		}
		s.out.Running = next.Names
		if (!next.busy() && !s.unread() && s.due() < 0 && !s.freed) || round >= maxRounds || s.used >= s.b.cfg.Horizon {
			return nil
		}
		w = next
	}
}

// due is how many ms ahead the next held request lies that the step waits for; -1: none.
func (s *settler) due() float64 {
	d := s.b.dueIn(s.b.rawTime(s.b.virtual), false)
	if d < 0 || d > float64((s.b.cfg.Horizon-s.used).Milliseconds()) {
		return -1
	}
	return d
}

func (s *settler) unread() (dirty bool) {
	s.b.read(func() { dirty = s.p.dirty })
	return dirty
}

// budget is how far virtual time goes next: a short step, or up to the last timer
// within the horizon.
func (s *settler) budget(w work, round int) time.Duration {
	d := time.Duration(max(w.Timer, s.due())+1) * time.Millisecond
	if round == 0 {
		d = max(d, shortBudget)
	}
	return max(time.Millisecond, min(d, s.b.cfg.Horizon-s.used))
}

// frames makes frames when something waits for one: animation callbacks, observers,
// scroll listeners, ends of transitions, a new document.
func (s *settler) frames(ctx context.Context, w work) error {
	var commits int
	s.b.read(func() { commits = s.p.commits })
	fresh := commits != s.commits
	s.commits = commits
	if w.Raf == 0 && w.Observers == 0 && w.Ended == 0 && !s.scrolled && !fresh && !s.frame {
		return nil
	}
	s.scrolled, s.frame = false, false
	if err := s.p.frame(ctx); err != nil {
		return err
	}
	if w.Raf > 0 {
		return s.animate(ctx)
	}
	s.p.endless = false
	if w.Observers > 0 || fresh {
		// What a frame has found out is told in tasks after it.
		return s.advance(ctx, time.Millisecond)
	}
	return nil
}

// animate gives a page that animates by script a few frames at growing distances, so
// that what ends within the horizon ends. A page that never stops gets one more only.
func (s *settler) animate(ctx context.Context) error {
	rounds := 6
	if s.p.endless {
		rounds = 1
	}
	for i := range rounds {
		w, err := s.ask(ctx, "P.state()")
		if err != nil {
			return err
		}
		if w.Raf == 0 {
			s.p.endless = false
			return nil
		}
		d := min(16*time.Millisecond<<i, s.b.cfg.Horizon-s.used)
		if d <= 0 {
			break
		}
		if err := s.advance(ctx, d); err != nil {
			return err
		}
		if err := s.p.frame(ctx); err != nil {
			return err
		}
	}
	s.p.endless = true
	return nil
}

// advance lets virtual time go on by d. It stands still while documents, images and
// scripts load, unless some page holds a stream open, which would stop it for ever.
func (s *settler) advance(ctx context.Context, d time.Duration) error {
	goal := s.b.virtual + float64(d.Milliseconds())
	left := d.Milliseconds()
	for tries := 0; left > 0 && tries < 4; tries++ {
		part := s.part(goal, left)
		hold := s.holds()
		err := s.budgeted(ctx, hold, part)
		if err == nil && part < left {
			left -= part
			tries--
			continue
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errCapped) {
			return err
		}
		// Time stood still for something that does not end. What is left of the budget
		// is run without regard to it.
		var now float64
		if err := s.p.evalAgent(ctx, "Date.now()", &now); err != nil {
			return err
		}
		left = int64(goal - s.b.start + s.b.raw - now)
		if !hold {
			break
		}
		if s.heldUp() {
			tries--
		}
	}
	s.b.virtual = goal
	s.freed = s.b.letGo(s.b.rawTime(goal)) || s.freed
	s.b.read(func() { s.b.at = goal - s.b.start })
	s.used += d
	s.out.VirtualMS += float64(d.Milliseconds())
	return nil
}

// part is how much of what is left of an advance to goal comes before the next held
// request is due. Those that are due now are let go.
func (s *settler) part(goal float64, left int64) int64 {
	if !s.heldUp() {
		return left
	}
	now := s.b.rawTime(goal) - float64(left)
	s.freed = s.b.letGo(now) || s.freed
	if d := s.b.dueIn(now, false); d > 0 {
		return min(left, int64(d))
	}
	return left
}

// heldUp says whether a request is held in virtual time: then time must go on although
// the request is under way.
func (s *settler) heldUp() (yes bool) {
	s.b.read(func() { yes = s.b.anyHeld() })
	return yes
}

// holds says whether virtual time may wait for the network.
func (s *settler) holds() (hold bool) {
	s.b.read(func() { hold = !s.b.anyHeld() && (!s.b.anyStreams() || s.b.anyLoading()) })
	return hold
}

// budgeted runs one budget. It ends with errCapped when the page opens a stream while
// time stands still, or when the real-time bound is reached.
func (s *settler) budgeted(ctx context.Context, hold bool, ms int64) error {
	policy := "advance"
	if hold {
		policy = "pauseIfNetworkFetchesPending"
	}
	var before int
	s.b.read(func() { before = s.p.expired })
	_, err := s.p.await(ctx, s.p.s.Send("Emulation.setVirtualTimePolicy",
		json.RawMessage(fmt.Appendf(nil, `{"policy":%q,"budget":%d}`, policy, ms))))
	if err != nil {
		return err
	}
	for {
		var loading bool
		s.b.read(func() { loading = s.b.anyLoading() })
		wait, cancel := context.WithDeadlineCause(ctx, s.limit(hold, loading), errCapped)
		var state error
		var ended, stream, moved bool
		err := s.b.until(wait, "wait for the page", func() bool {
			now := s.b.anyLoading()
			state, ended = s.p.trouble(), s.p.expired > before
			stream = hold && (!now && s.b.anyStreams() || s.b.anyHeld())
			moved = now != loading
			return ended || state != nil || stream || moved
		})
		cancel()
		switch {
		case ended:
			return nil
		case state != nil:
			return state
		case stream:
			return errCapped
		case moved:
			continue
		case errors.Is(err, errCapped):
			s.capped()
			s.b.update(s.giveUp)
		}
		return err
	}
}

// giveUp takes whatever is still loading for a stream. It is called with mu held.
func (s *settler) giveUp() {
	s.p.streams = true
	for _, p := range s.b.tabs {
		clear(p.loading)
		clear(p.scheduled)
	}
}

// limit is until when a budget is waited for in real time.
func (s *settler) limit(hold, loading bool) time.Time {
	switch {
	case loading:
		return s.began.Add(s.b.cfg.NavigationCap)
	case hold:
		return s.began.Add(s.b.cfg.Cap)
	}
	return time.Now().Add(s.b.cfg.Watchdog)
}

// anyStreams and anyLoading are called with mu held. One renderer serves all tabs, and
// virtual time belongs to the renderer, so they look at all of them.
func (b *Browser) anyStreams() bool {
	for _, p := range b.tabs {
		if p.streams {
			return true
		}
	}
	return false
}

func (b *Browser) anyLoading() bool {
	for _, p := range b.tabs {
		if !p.crashed && len(p.loading)+len(p.scheduled) > 0 {
			return true
		}
	}
	return false
}
