package episode

// tombstones remember why the last episodes ended, so that a late call is told
// the reason rather than that its episode never was.
type tombstones struct {
	reason map[string]string
	order  []string
	next   int
}

func newTombstones(n int) *tombstones {
	return &tombstones{reason: make(map[string]string, n), order: make([]string, n)}
}

func (t *tombstones) add(id, reason string) {
	delete(t.reason, t.order[t.next])
	t.order[t.next] = id
	t.next = (t.next + 1) % len(t.order)
	t.reason[id] = reason
}

func (t *tombstones) find(id string) (string, bool) {
	r, ok := t.reason[id]
	return r, ok
}
