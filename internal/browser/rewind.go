package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
)

// State is what a Browser knows about its browser at one moment: tabs, frames, clock,
// pointer. It is worth something only while the browser is, or is put back, as it was then.
type State struct {
	shared
	own
	pages []page // copies of the tabs
	seed  uint64
	epoch time.Time
}

// Held is a Browser at rest: its turn is taken, and nothing that was asked of the browser
// is unanswered. It is what a process must be in when it is saved or put back.
type Held struct{ b *Browser }

// Hold waits until the browser is at rest and keeps calls waiting until Release. It fails
// when it does not come to rest before ctx ends, or when a call was given up in its
// middle: what the browser was told then may still be on its way.
//
// Commands that an open dialog or the death of a renderer holds up do not count.
func (b *Browser) Hold(ctx context.Context) (*Held, error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, lost(context.Cause(ctx), "wait for the browser")
	}
	err := b.conn.Err()
	if err == nil {
		err = b.rest(ctx)
	}
	if err != nil {
		<-b.turn
		return nil, lost(err, "bring the browser to rest")
	}
	return &Held{b: b}, nil
}

func (b *Browser) rest(ctx context.Context) error {
	if b.torn {
		return fault.New(fault.Internal, "a call was given up")
	}
	// The pipe keeps the order: with the answer all earlier events are here.
	if err := b.root.Call(ctx, "Browser.getVersion", nil, nil); err != nil {
		return err
	}
	err := b.until(ctx, "wait for tabs to be set up", func() bool {
		return len(b.newTabs) == 0 && !b.settingUp && !b.orphaned && b.opening == 0 && len(b.paused) == 0 && !b.deciding
	})
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		wait, cancel := context.WithTimeout(ctx, moveWait)
		err := b.conn.Settle(wait, func(session, method string) bool {
			// Some input is never answered, as when its document goes away under it.
			return tries > inputTries && strings.HasPrefix(method, "Input.") || b.heldUp(session)
		})
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		// The page hears of the last move of the pointer in the next frame.
		if err := b.frameAll(ctx); err != nil {
			return err
		}
	}
}

// inputTries is how many frames input gets to be answered.
const inputTries = 2

// frameAll makes a frame in every tab that can make one.
func (b *Browser) frameAll(ctx context.Context) error {
	var tabs []*page
	b.read(func() {
		for _, p := range b.tabs {
			if p.trouble() == nil && p.number > 0 {
				tabs = append(tabs, p)
			}
		}
	})
	for _, p := range tabs {
		if err := p.frame(ctx); err != nil && !errors.Is(err, errDialog) && !errors.Is(err, errGone) && !errors.Is(err, errCrashed) {
			return err
		}
	}
	return nil
}

// heldUp says whether a session's tab cannot answer.
func (b *Browser) heldUp(session string) bool {
	p := b.tabOf(session)
	if p == nil {
		return session != ""
	}
	stuck := false
	b.read(func() { stuck = p.trouble() != nil })
	return stuck
}

// Release lets calls go on.
func (h *Held) Release() { <-h.b.turn }

// Save notes what is known.
func (h *Held) Save() *State {
	b := h.b
	s := &State{own: b.own, seed: b.cfg.Seed, epoch: b.cfg.Epoch}
	b.read(func() {
		s.shared = b.shared.clone()
		for _, p := range b.tabs {
			s.pages = append(s.pages, p.copy())
		}
	})
	return s
}

// Forget drops what was asked and stops listening. It is called right before the process
// is put back: what it has said until then is void, and so are sessions with tabs that it
// will not know.
func (h *Held) Forget() { h.b.conn.Forget() }

// Restore takes up the state that was saved when the process was in the state that it has
// been put back to. What the process had said before is out of the pipe when it returns,
// and each tab has shown that it answers.
func (h *Held) Restore(ctx context.Context, s *State) error {
	b := h.b
	calls := []interface {
		Wait(context.Context) (json.RawMessage, error)
	}{b.root.Send("Browser.getVersion", nil)}
	for i := range s.pages {
		if p := &s.pages[i]; p.agentCtx != 0 && p.trouble() == nil {
			calls = append(calls, p.s.Send("Runtime.evaluate", evalParams(p.agentCtx, "1")))
		}
	}
	for _, c := range calls {
		if _, err := c.Wait(ctx); err != nil {
			return lost(err, "speak with the rewound browser")
		}
	}
	b.own = s.own
	b.cfg.Seed, b.cfg.Epoch = s.seed, s.epoch
	b.update(func() {
		b.shared = s.shared.clone()
		for i, p := range b.tabs {
			*p = s.pages[i].copy()
		}
	})
	b.root.Handle(b.onRoot)
	for _, p := range s.tabs {
		p.s.Handle(p.onEvent)
	}
	return nil
}

func (s *shared) clone() shared {
	c := *s
	c.tabs, c.newTabs = slices.Clone(s.tabs), slices.Clone(s.newTabs)
	c.blocked, c.notes, c.loads = slices.Clone(s.blocked), slices.Clone(s.notes), maps.Clone(s.loads)
	c.paused, c.holdings = slices.Clone(s.paused), slices.Clone(s.holdings)
	return c
}

// copy is a page whose maps and lists are its own. Commands that wait for an answer belong
// to the moment and are left out.
func (p *page) copy() page {
	c := *p
	c.contexts, c.loading, c.scheduled = maps.Clone(p.contexts), maps.Clone(p.loading), maps.Clone(p.scheduled)
	c.scripts, c.parked = slices.Clone(p.scripts), nil
	c.rewrites = maps.Clone(p.rewrites)
	return c
}

// Collect has the page's memory cleared of garbage, so that a saved state is small and no
// collection is due in each episode that begins with it.
func (b *Browser) Collect(ctx context.Context) error {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := b.tab(ctx)
	if err != nil {
		return lost(err, "collect garbage")
	}
	if _, err := p.await(ctx, p.s.Send("HeapProfiler.collectGarbage", nil)); err != nil {
		return lost(fmt.Errorf("collect garbage: %w", err), "use browser")
	}
	return nil
}
