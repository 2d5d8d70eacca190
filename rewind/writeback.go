package rewind

import (
	"github.com/pommelgym/pommel/internal/uapi"
)

// manyCopies is the number of bytes from which on two threads of a process copy at the same time.
const manyCopies = 200 * pageSize

// startCopies lets stopped threads of a process make the calls that are still in its
// batch and write the saved pages back. They go on while the next process is worked on;
// finishCopies waits for them.
func (t *Tree) startCopies(p *process, b *batch) error {
	w := &p.writes
	for _, s := range w.slow {
		page := uint32(s.src)
		if err := p.write(s.dst, p.arena.bytes(pageRun{page, uint32(s.n >> pageShift)})); err != nil {
			return err
		}
	}
	for _, d := range w.drops {
		if err := t.room(&p.tasks[0], b); err != nil {
			return err
		}
		b.add(uapi.SysMadvise, d.start, d.end-d.start, uapi.MadvDontneed)
	}
	t.report.PagesWritten += w.written
	t.report.PagesZeroed += w.zeroed
	t.report.PagesDropped += w.dropped
	ops := w.copies
	for len(ops) > maxCopies {
		if err := t.launch(p, b, ops[:maxCopies]); err != nil {
			return err
		}
		if err := t.finishCopies(p); err != nil {
			return err
		}
		ops = ops[maxCopies:]
	}
	return t.launch(p, b, ops)
}

// mapsMemory says whether calls in a batch make memory fit to be written.
func (b *batch) mapsMemory() bool {
	for i := range b.calls {
		switch b.calls[i].nr {
		case uapi.SysMmap, uapi.SysMprotect, uapi.SysBrk:
			return true
		}
	}
	return false
}

// launch sets up to two threads to work.
func (t *Tree) launch(p *process, b *batch, ops []copyOp) error {
	if len(ops) == 0 && len(b.calls) == 0 {
		return nil
	}
	total := uint64(0)
	for i := range ops {
		total += ops[i].n
	}
	copy(uapi.View[copyOp](p.shared[pageSize+copyListAt:], maxCopies), ops)
	split := len(ops)
	if total > manyCopies && len(p.tasks) > 1 {
		if b.mapsMemory() { // must be over before another thread copies
			if err := t.flush(&p.tasks[0], b); err != nil {
				return err
			}
		}
		split = 0
		for done := uint64(0); split < len(ops) && done < total/2; split++ {
			done += ops[split].n
		}
	}
	p.inCalls, b.calls = b.calls, b.calls[:0]
	t.report.Injected += len(p.inCalls)
	first := work{calls: p.data, nCalls: len(p.inCalls), copies: p.data + copyListAt, nCopies: split, keys: hasKeys(p.tasks[0].saved.xstate)}
	if err := t.enter(p, &p.tasks[0], first); err != nil {
		return err
	}
	p.copying = 1
	if split == len(ops) {
		return nil
	}
	p.copying = 2
	return t.enter(p, &p.tasks[1], work{copies: p.data + copyListAt + uint64(split)*24, nCopies: len(ops) - split, keys: first.keys})
}

// finishCopies waits for the threads that copy.
func (t *Tree) finishCopies(p *process) error {
	for c := range p.copying {
		if err := t.awaitTrap(&p.tasks[c]); err != nil {
			return err
		}
	}
	p.copying = 0
	calls := p.inCalls
	p.inCalls = nil
	return p.batch().check(calls)
}

// rearmWritten starts tracking afresh in the areas that were touched.
func (p *process) rearmWritten() error {
	for _, s := range p.writes.armed {
		if err := p.arm(s.start, s.end); err != nil {
			return err
		}
	}
	return nil
}
