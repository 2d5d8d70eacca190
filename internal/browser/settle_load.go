package browser

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// openWait bounds the wait for a window that a page has asked for; the browser may refuse it.
	openWait = 2 * time.Second
	// loadTurns is how often a document gets a hop of real time to load in before its clock
	// goes on: there are those that wait for their own timers.
	loadTurns = 50
	// loadTurn is how far the clock goes when real time does not load a document: what the
	// browser parses by timers of its own, such as a picture within a picture, needs it.
	loadTurn = 10 * time.Millisecond
)

// windows waits for windows that the page has asked for, and for documents that load.
func (s *settler) windows(ctx context.Context) error {
	if err := s.opened(ctx); err != nil {
		return err
	}
	return s.documents(ctx)
}

// documents waits until documents have loaded. A new one costs the page's clock whole turns,
// one at least: how much of them it needed depends on the machine.
func (s *settler) documents(ctx context.Context) error {
	waited := time.Duration(0)
	for range maxRounds + 1 {
		var loading, fresh bool
		s.b.read(func() { loading, fresh = s.b.anyLoading(), s.p.commits != s.commits })
		if !loading {
			return s.arrive(ctx, waited, fresh)
		}
		d := loadTurn - waited%loadTurn
		if due := s.b.dueIn(s.b.rawTime(s.b.virtual), true); due > 0 {
			d = max(d, time.Duration(due)*time.Millisecond)
		} else if done, err := s.loaded(ctx); err != nil {
			return err
		} else if done {
			continue
		} else if waited == 0 {
			d = time.Millisecond
		}
		if err := s.advance(ctx, d); err != nil {
			return err
		}
		waited += d
	}
	return nil
}

// arrive ends the wait for documents, which took so much virtual time.
func (s *settler) arrive(ctx context.Context, waited time.Duration, fresh bool) error {
	rest := (loadTurn - waited%loadTurn) % loadTurn
	if fresh && waited == 0 {
		rest = loadTurn
	}
	if rest > 0 {
		if err := s.advance(ctx, rest); err != nil {
			return err
		}
	}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	return s.downloads(ctx)
}

// loaded gives documents real time to load. Their frames go to and fro between processes,
// and what that takes is nothing that the page's clock should show. It ends when only
// the page's clock can bring the document on.
func (s *settler) loaded(ctx context.Context) (done bool, err error) {
	for range loadTurns {
		// Without frames nobody asks for styles, and a document whose styles were never
		// asked for does not find out that it has loaded.
		if s.lay(ctx) == "interactive" && s.alone() {
			break
		}
		wait, cancel := context.WithTimeoutCause(ctx, hop, errCapped)
		err = s.b.until(wait, "wait for the document", func() bool {
			done = !s.b.anyLoading()
			return done || s.p.trouble() != nil
		})
		cancel()
		if !errors.Is(err, errCapped) || ctx.Err() != nil {
			break
		}
		err = nil
	}
	return done, err
}

// opened waits for the windows that the page has asked for, and until those that came
// can be used. A window that has come is never refused any more, only slow.
func (s *settler) opened(ctx context.Context) error {
	wait, cancel := context.WithTimeoutCause(ctx, openWait, errCapped)
	defer cancel()
	err := s.b.until(wait, "wait for a window", func() bool { return s.b.expecting == 0 })
	if err == nil {
		wait, cancel := context.WithDeadlineCause(ctx, s.began.Add(s.b.cfg.NavigationCap), errCapped)
		defer cancel()
		led := s.b.led()
		err = s.b.until(wait, "wait for a new tab", func() bool {
			return !slices.ContainsFunc(s.b.tabs, func(p *page) bool {
				return p.closing || p.number > 0 && !p.crashed && !(p.ready && (p.begun() || !led[p]))
			})
		})
		if errors.Is(err, errCapped) && ctx.Err() == nil {
			s.capped()
		}
	}
	s.b.read(func() {
		s.b.expecting = 0
		s.p.closing = false
	})
	if errors.Is(err, errCapped) && ctx.Err() == nil {
		return nil
	}
	return err
}

// led are the tabs that were opened with an address that they may show: each begins to
// load some time after it may run.
func (b *Browser) led() map[*page]bool {
	wanted := map[*page]string{}
	b.read(func() {
		for _, p := range b.tabs {
			if p.wanted != "" && p.wanted != "about:blank" && !p.begun() {
				wanted[p] = p.wanted
			}
		}
	})
	led := map[*page]bool{}
	for p, url := range wanted {
		_, refused := b.checkURL(p, url)
		led[p] = refused == nil
	}
	return led
}

// catchUp lets the time pass that documents have taken to come.
func (s *settler) catchUp(ctx context.Context) error {
	var lag time.Duration
	s.b.read(func() { lag, s.b.lag = s.b.lag, 0 })
	if lag <= 0 {
		return nil
	}
	used := s.used
	err := s.advance(ctx, lag)
	s.used = used // the page's own work has the whole horizon
	return err
}

// lay makes the tab's document lay itself out, if it has one already, and tells its
// readyState. That it cannot be asked, as it is changing, is no failure: it is asked
// again in the next round.
func (s *settler) lay(ctx context.Context) (readyState string) {
	var known bool
	s.b.read(func() { known = s.p.agentCtx != 0 && s.p.trouble() == nil })
	if known {
		ctx, cancel := context.WithTimeout(ctx, s.b.cfg.Cap)
		defer cancel()
		_ = s.p.evalOnce(ctx, "void(document.documentElement&&document.documentElement.offsetHeight),document.readyState", &readyState)
	}
	return readyState
}

// alone says that nothing loads but the document that the tab shows already.
func (s *settler) alone() (yes bool) {
	s.b.read(func() {
		frames := 0
		for _, p := range s.b.tabs {
			frames += len(p.loading) + len(p.scheduled)
		}
		yes = frames == 1 && s.p.loading[s.p.target] && !s.p.coming
	})
	return yes
}
