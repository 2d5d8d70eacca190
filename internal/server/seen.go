package server

import "sync"

// seen remembers the last names it was asked about, so that what a caller repeats is
// counted once.
type seen struct {
	mu    sync.Mutex
	names map[string]bool // guarded by mu
	order []string        // guarded by mu
}

const seenMost = 8192

func (s *seen) first(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[name] {
		return false
	}
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[name] = true
	if s.order = append(s.order, name); len(s.order) > seenMost {
		delete(s.names, s.order[0])
		s.order = s.order[1:]
	}
	return true
}
