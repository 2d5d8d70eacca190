package rewind

// sharedMemory writes back the pages of shared objects that any process has written.
func (w *rewinder) sharedMemory() {
	t := w.t
	states := make(map[*object]*objectState, len(w.s.objects))
	for _, s := range w.s.objects {
		states[s.o] = s
		if t.base != w.s && t.base != nil {
			w.objectDiff(s)
		}
	}
	for _, p := range t.live {
		for _, sp := range p.writes.shared {
			if s := states[sp.o]; s != nil && s.putBack(t.shm, sp.page, t.epoch) {
				t.report.PagesShared++
			}
		}
	}
	for _, s := range w.s.objects {
		if s.o.full {
			t.report.ObjectsCompared++
			t.report.PagesShared += s.compareAll(t.shm, t.epoch)
		}
		s.o.full = false
	}
}

// objectDiff puts back the pages in which two snapshots differ.
func (w *rewinder) objectDiff(s *objectState) {
	old := w.t.base.object(s.o)
	if old == nil {
		s.o.full = true
		return
	}
	for i := range s.pages {
		if i >= len(old.pages) || old.pages[i] != s.pages[i] {
			if s.putBack(w.t.shm, i, w.t.epoch) {
				w.t.report.PagesShared++
			}
		}
	}
}
