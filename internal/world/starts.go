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
type starts struct {
	max int

	mu    sync.Mutex
	list  []kept // guarded by mu
	asked string // guarded by mu; the key of the last episode
	again bool   // guarded by mu; the one before had the same
	// unused counts those that were kept in a row without any being asked for again, and
	// seen are the keys that were not kept for that reason.
	unused int             // guarded by mu
	seen   map[string]bool // guarded by mu
}

type kept struct {
	key   string
	state *Checkpoint
	value any
	used  bool
}

const (
	// hopeless is after how many starts that nobody asked for again only those are kept that
	// are asked for a second time: saving one costs some milliseconds and megabytes.
	hopeless = 24
	maxSeen  = 4096
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
	i := slices.IndexFunc(s.list, func(k kept) bool { return k.key == key })
	if i < 0 {
		return
	}
	k := s.list[i]
	k.used, s.unused = true, 0
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
	if s.max <= 0 || key == "" {
		return false
	}
	if s.unused < hopeless || s.seen[key] {
		return true
	}
	if len(s.seen) >= maxSeen {
		clear(s.seen)
	}
	s.seen[key] = true
	return false
}

// add keeps one more and returns those that have to go for it.
func (s *starts) add(k kept) (out []*Checkpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unused++
	delete(s.seen, k.key)
	s.list = append(s.list, k)
	for len(s.list) > s.max {
		out = append(out, s.list[0].state)
		s.list = slices.Delete(s.list, 0, 1)
	}
	return out
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
	c, err := w.Checkpoint(ctx)
	if fault.KindOf(err) == fault.ResourceExhausted {
		return nil // it alone is too large
	}
	if err != nil {
		return err
	}
	delete(w.saved.taken, c.number) // it outlives the episode
	w.Forget(ctx, w.saved.starts.add(kept{key: key, state: c, value: value})...)
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
