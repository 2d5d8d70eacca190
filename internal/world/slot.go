package world

import (
	"context"
	"time"
)

// want is a caller's wish for a world.
type want struct {
	key   string          // of the start that it should stand at, or ""
	world chan *World     // takes the world; nil means: ask again
	gone  <-chan struct{} // closed when the caller waits no more
}

const (
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 30 * time.Second

	// linger is how long a world that came back is left as it is, where putting it back takes
	// milliseconds: trainers ask for their next episode at once, and it can then be brought
	// straight to the start of that one.
	linger = 10 * time.Millisecond
)

// keeping is the life of a slot.
type keeping struct {
	p     *Pool
	i     int
	w     *World
	clean bool // no episode has touched the world
}

func (s *keeping) serve() {
	p := s.p
	defer p.wg.Done()
	defer func() {
		if s.w != nil {
			_ = s.w.Close()
		}
	}()
	backoff := firstBackoff
	for p.ctx.Err() == nil {
		if s.w == nil {
			p.set(s.i, starting, nil, nil)
			fresh, err := p.start(p.ctx, nil)
			if err != nil {
				p.failed(s.i, err, backoff)
				backoff = min(backoff*2, maxBackoff)
				continue
			}
			s.w, s.clean = fresh, true
		}
		s.offer()
		if s.w != nil {
			backoff = firstBackoff
		}
	}
}

// start brings up a world when it is its turn.
func (p *Pool) start(ctx context.Context, progress func(string)) (*World, error) {
	select {
	case p.starts <- struct{}{}:
		defer func() { <-p.starts }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.count(func(s *Stats) { s.Starts++ })
	return p.driver.Start(ctx, p.img, progress)
}

// offer hands the world to the next caller and waits for it to come back. A world that
// dies unused is not handed out.
func (s *keeping) offer() {
	p := s.p
	var later <-chan time.Time
	if s.clean {
		p.set(s.i, ready, s.w, nil)
	} else {
		if _, quick := p.driver.(inPlace); !quick || s.w.Cause() != nil {
			s.reset("")
			return
		}
		p.set(s.i, starting, s.w, nil)
		timer := time.NewTimer(linger)
		defer timer.Stop()
		later = timer.C
	}
	var r *want
	select {
	case r = <-p.direct[s.i]:
	case r = <-p.wants:
	case <-later:
		s.reset(s.w.guess())
		return
	case <-s.w.Lost():
		if s.clean {
			p.lost(s.w)
		}
		s.reset("")
		return
	case <-p.ctx.Done():
		return
	}
	if !s.bring(r.key) {
		select {
		case r.world <- nil:
		case <-r.gone:
		case <-p.ctx.Done():
		}
		return
	}
	s.hand(r)
}

// bring has the world stand where an episode is to begin.
func (s *keeping) bring(key string) bool {
	if !s.w.hasStart(key) {
		key = ""
	}
	if s.clean && s.w.standsAt(key) {
		return true
	}
	s.reset(key)
	return s.w != nil && s.w.standsAt(key)
}

// hand gives the world away and waits until it is back.
func (s *keeping) hand(r *want) {
	p, w := s.p, s.w
	back := make(chan struct{})
	p.mu.Lock()
	p.taken[w] = back
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.taken, w)
		p.mu.Unlock()
	}()
	w.ask(r.key)
	p.set(s.i, inUse, w, nil) // first: it may come back before anything else is done here
	select {
	case r.world <- w:
	case <-r.gone:
		return // still clean
	case <-p.ctx.Done():
		return
	}
	s.clean = false
	select {
	case <-back:
		select {
		case <-w.Lost():
			p.lost(w)
		default:
		}
	case <-p.ctx.Done():
	}
}

func (p *Pool) lost(w *World) {
	p.count(func(s *Stats) { s.Lost++ })
	p.log.Warn("world lost", "world", p.img.Spec.Name, "cause", w.Cause())
}

// reset puts the world back, or replaces it. After a failure there is none.
func (s *keeping) reset(key string) {
	p, w := s.p, s.w
	p.set(s.i, starting, nil, nil)
	d, quick := p.driver.(inPlace)
	var report ResetReport
	if quick {
		fresh, r, ok := d.tryReset(p.ctx, w, key)
		if ok {
			p.noteReset(r, nil)
			s.w, s.clean = fresh, true
			return
		}
		report = r
	}
	select {
	case p.starts <- struct{}{}:
		defer func() { <-p.starts }()
	case <-p.ctx.Done():
		return
	}
	var fresh *World
	var err error
	if quick {
		fresh, report, err = d.replace(p.ctx, w, report)
	} else {
		fresh, report, err = p.driver.Reset(p.ctx, w)
	}
	p.noteReset(report, err)
	if err != nil {
		if p.ctx.Err() == nil {
			p.log.Error("reset failed", "world", p.img.Spec.Name, "error", err)
		}
		fresh = nil
	}
	s.w, s.clean = fresh, true
}
