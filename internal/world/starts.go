package world

import (
	"context"
	"slices"
	"sync"

	"github.com/pommelgym/pommel/internal/fault"
)

// A start is the state of a world right after an episode has begun: rows set up, page
// loaded, first observation made. Training begins the same episodes again and again; from
// the second time on it takes one rewind.

// defaultStarts is how many a world keeps.
const defaultStarts = 16

// starts are those that a world keeps, the latest used last.
//
// Saving one takes as long as loading a page does. It is worth that only if it will still be there when
// the episode comes again. When there is no room, one is therefore saved if its episode has
// come back after fewer others than there is room for; or else episodes that take turns, more than
// there is room for, would drive each other out, and none would ever begin at its own.
type starts struct {
	max int

	mu    sync.Mutex
	list  []kept         // guarded by mu, as all below
	asked string         // the key of the last episode
	again bool           // the one before had the same
	count int            // of episodes so far
	since int            // how many ago that of the last one was asked for before; 0 is never
	seen  map[string]int // when each was asked for last
	room  int            // for how many there is room: max, until there was no memory for as many
}

// newStarts keeps up to most; 0 is defaultStarts, fewer none.
func newStarts(most int) *starts {
	if most == 0 {
		most = defaultStarts
	}
	return &starts{max: most, room: most, seen: map[string]int{}}
}

type kept struct {
	key   string
	state *Checkpoint
	value any
	last  int // when it was asked for last
}

const (
	// stale is for how many times as many episodes as there is room for one must have been of no use to
	// make room for any other.
	stale   = 16
	maxSeen = 4096
)

func (s *starts) find(key string) (kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(k kept) bool { return k.key == key })
	if key == "" || i < 0 {
		return kept{}, false
	}
	return s.list[i], true
}

// ask notes what the next episode is.
func (s *starts) ask(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again, s.asked = key == s.asked, key
	if key == "" {
		return
	}
	s.count++
	s.since = 0
	if at, ok := s.seen[key]; ok {
		s.since = s.count - at
	}
	if len(s.seen) >= maxSeen {
		clear(s.seen)
	}
	s.seen[key] = s.count
	i := slices.IndexFunc(s.list, func(k kept) bool { return k.key == key })
	if i < 0 {
		return
	}
	k := s.list[i]
	k.last = s.count
	s.list = append(slices.Delete(s.list, i, i+1), k)
}

// next guesses what the next episode will be.
func (s *starts) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again {
		return s.asked
	}
	return ""
}

// worth says whether the start of the present episode should be kept.
func (s *starts) worth(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.max <= 0 || key == "" || key != s.asked:
		return false
	case len(s.list) < s.room || s.count-s.list[0].last >= stale*s.max:
		return true
	}
	return s.since > 0 && s.since <= s.room
}

// add keeps one more and returns those that have to go for it. before is how many there were when
// it was about to be saved: if some have gone since, there was no memory for all.
func (s *starts) add(k kept, before int) (out []*Checkpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.last = s.count
	if len(s.list) < before {
		s.room = len(s.list) + 1
	}
	s.list = append(s.list, k)
	for len(s.list) > s.max {
		out = append(out, s.list[0].state)
		s.list = slices.Delete(s.list, 0, 1)
	}
	return out
}

func (s *starts) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list)
}

// drop gives up the one that was not used for longest; nil when there is none.
func (s *starts) drop() *Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return nil
	}
	c := s.list[0].state
	s.list = slices.Delete(s.list, 0, 1)
	return c
}

// Started is what KeepStart was given for the start at which the world was handed out; nil
// when it was handed out in its first state.
func (w *World) Started() any {
	if w.saved == nil {
		return nil
	}
	k, _ := w.saved.starts.find(w.saved.at)
	return k.value
}

// KeepStart saves the state of now as the start of episodes under a key, and value with
// it. It may choose not to. Only an error of kind world_lost means that the world does not go on.
func (w *World) KeepStart(ctx context.Context, key string, value any) error {
	if w.savable() != nil || !w.saved.starts.worth(key) {
		return nil
	}
	before := w.saved.starts.size()
	c, err := w.Checkpoint(ctx)
	if fault.KindOf(err) == fault.ResourceExhausted {
		return nil // it alone is too large
	}
	if err != nil {
		return err
	}
	delete(w.saved.taken, c.number) // it outlives the episode
	w.Forget(ctx, w.saved.starts.add(kept{key: key, state: c, value: value}, before)...)
	return nil
}

// hasStart says whether a start is kept under a key.
func (w *World) hasStart(key string) bool {
	if w.saved == nil {
		return false
	}
	_, ok := w.saved.starts.find(key)
	return ok
}

// standsAt says whether the world was last put back to the start under key, or to its first state for "".
func (w *World) standsAt(key string) bool {
	if w.saved == nil {
		return key == ""
	}
	return w.saved.at == key
}

// guess is where the next episode will most likely begin.
func (w *World) guess() string {
	if w.saved == nil {
		return ""
	}
	return w.saved.starts.next()
}

// ask notes which episode begins now.
func (w *World) ask(key string) {
	if w.saved != nil {
		w.saved.starts.ask(key)
	}
}
