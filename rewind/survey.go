package rewind

import (
	"sync"

	"github.com/pommelgym/pommel/internal/uapi"
)

// survey is the look at all processes: at their memory, and at the areas and descriptors of
// those that have run. None of this needs ptrace, so the tracing thread and its helper share it.
type survey struct {
	w  *rewinder
	mu sync.Mutex
	// todo are looks that nobody has begun, the longest one first; guarded by mu.
	todo []glanceAt
	all  bool // nothing is added to todo any more; guarded by mu
}

// glanceAt is a look at one process or at a shared object.
type glanceAt struct {
	p            *process
	memory, rest bool
	object       *objectState
}

// survey looks at all processes, and puts shared objects back that somebody unknown may have written.
func (w *rewinder) survey() {
	v := survey{w: w, todo: make([]glanceAt, 0, 1+len(w.t.live)+len(w.s.objects))}
	end := w.t.helper.start(v.work)
	for _, p := range w.t.live {
		p.writes.shared = p.writes.shared[:0]
		p.job, p.lookJob = nil, nil
		switch {
		case w.rests(p, w.s.process(p.pid)):
			p.writes.reset()
		case w.alone():
			v.add(glanceAt{p: p, memory: true})
			v.add(glanceAt{p: p, rest: true})
		default:
			v.add(glanceAt{p: p, memory: true, rest: true})
		}
	}
	if w.full {
		for _, s := range w.s.objects {
			v.add(glanceAt{object: s})
		}
	}
	v.mu.Lock()
	v.all = true
	v.mu.Unlock()
	v.work()
	end()
}

// alone says that there is only one process. It has run, or nobody would rewind it.
func (w *rewinder) alone() bool { return len(w.t.live) == 1 }

func (v *survey) add(at glanceAt) {
	v.mu.Lock()
	v.todo = append(v.todo, at)
	v.mu.Unlock()
}

// work looks until there is nothing left to be looked at.
func (v *survey) work() {
	for {
		v.mu.Lock()
		if len(v.todo) > 0 {
			at := v.todo[0]
			v.todo = v.todo[1:]
			v.mu.Unlock()
			v.look(at)
			continue
		}
		all := v.all
		v.mu.Unlock()
		if all {
			return
		}
		uapi.Yield()
	}
}

// look does one look. Whether the rest of a process has to be looked at, its memory tells.
func (v *survey) look(at glanceAt) {
	p, w := at.p, v.w
	if at.object != nil {
		n := at.object.compareAll(w.t.shm, w.t.epoch)
		v.mu.Lock()
		w.t.report.ObjectsCompared++
		w.t.report.PagesShared += n
		v.mu.Unlock()
		return
	}
	st := w.s.process(p.pid)
	if at.memory {
		p.diff = w.differing(p, st, p.diff[:0])
		p.job = p.planMemory(st, p.diff)
	}
	if at.rest && !(at.memory && p.idle()) {
		p.lookJob = w.look(p, st)
	}
}

// differing lists where the wanted state differs from the one that tracking is relative to.
func (w *rewinder) differing(p *process, st *processState, out []span) []span {
	base := w.t.base
	if w.t.tainted {
		return append(out, span{0, ^uint64(0)})
	}
	if base == w.s || base == nil {
		return out
	}
	if old := base.process(p.pid); old != nil {
		return diffRuns(old.runs, st.runs, out)
	}
	return append(out, span{0, ^uint64(0)})
}

// idle says that a process has not run: nothing was written but what the kernel itself writes.
func (p *process) idle() bool { return p.job == nil && !p.ran && p.writes.onlyRseq }
