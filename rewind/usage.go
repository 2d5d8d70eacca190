package rewind

// Kept is how much memory the saved states of the tree take, in bytes. What several
// snapshots have in common counts once.
func (t *Tree) Kept() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0
	}
	sum := t.shm.inUse() + t.files.arena.inUse()
	for _, p := range t.procs {
		sum += p.arena.inUse()
	}
	return sum
}

func (a *arena) inUse() int64 {
	if a == nil {
		return 0
	}
	pages := int64(a.top)
	for _, r := range a.free {
		pages -= int64(r.n)
	}
	return pages << pageShift
}
