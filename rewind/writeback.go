package rewind

import (
	"github.com/pommelgym/pommel/internal/uapi"
)

// copiers is how many threads of one process copy at the same time, and manyCopies the
// number of bytes from which on it is worth it.
const (
	copiers    = 2
	manyCopies = 200 * pageSize
)

// startCopies lets up to two stopped threads of a process write the saved pages back.
// They go on while the next process is worked on; finishCopies waits for them.
func (t *Tree) startCopies(p *process) error {
	w := &p.writes
	for _, s := range w.slow {
		page := uint32(s.src)
		if err := p.write(s.dst, p.arena.bytes(pageRun{page, uint32(s.n >> pageShift)})); err != nil {
			return err
		}
	}
	if err := t.runDrops(p); err != nil {
		return err
	}
	t.report.PagesWritten += w.written
	t.report.PagesZeroed += w.zeroed
	t.report.PagesDropped += w.dropped
	for len(w.copies) > maxCopies {
		rest := w.copies[maxCopies:]
		w.copies = w.copies[:maxCopies]
		if err := t.launchCopies(p, w.copies); err != nil {
			return err
		}
		if err := t.finishCopies(p); err != nil {
			return err
		}
		w.copies = rest
	}
	return t.launchCopies(p, w.copies)
}

func (t *Tree) runDrops(p *process) error {
	tk := &p.tasks[0]
	b := p.batch()
	flush := func() error {
		n := len(b.calls)
		if err := t.run(tk, b); err != nil {
			return err
		}
		for _, c := range b.calls[:n] {
			if c.ret != 0 {
				return fail(ReasonMemory, "give back %#x+%#x of process %d: %v", c.arg[0], c.arg[1], p.pid, uapi.Errno(-c.ret))
			}
		}
		return nil
	}
	for _, d := range p.writes.drops {
		if b.full() {
			if err := flush(); err != nil {
				return err
			}
		}
		b.add(uapi.SysMadvise, d.start, d.end-d.start, uapi.MadvDontneed)
	}
	return flush()
}

func (t *Tree) launchCopies(p *process, ops []copyOp) error {
	if len(ops) == 0 {
		return nil
	}
	total := uint64(0)
	for i := range ops {
		total += ops[i].n
	}
	k := 1
	if total > manyCopies && len(p.tasks) > 1 {
		k = copiers
	}
	copy(uapi.View[copyOp](p.shared[pageSize+copyListAt:], maxCopies), ops)
	begin, done := 0, uint64(0)
	for c := 0; c < k; c++ {
		end := begin
		for end < len(ops) && (c == k-1 || done < total*uint64(c+1)/uint64(k)) {
			done += ops[end].n
			end++
		}
		if end > begin {
			if err := t.enter(p, &p.tasks[c], p.code+copyLoopAt, p.data+copyListAt+uint64(begin)*24, end-begin); err != nil {
				return err
			}
			p.copying = c + 1
		}
		begin = end
	}
	return nil
}

// finishCopies waits for the threads that copy.
func (t *Tree) finishCopies(p *process) error {
	for c := range p.copying {
		if err := t.awaitTrap(&p.tasks[c]); err != nil {
			return err
		}
	}
	p.copying = 0
	return nil
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
