package rewind

import (
	"slices"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Most processes of a tree do nothing in most episodes: a database has a dozen that wait for
// work, each with hundreds of areas. That such a process has done nothing is found out by a
// look at its registers and at one or two pages for each thread:
//
//   - Each thread waits in the very call, made at the very place, that it was let go into, with
//     every register as it was then, and the call is one that writes nothing while it waits.
//   - The pages around each stack pointer were not written. A thread that has left its call
//     and come back to it was called on the way, which writes a return address there. The frame
//     of a signal handler lies there too, or at the top of the handlers' own stack.
//
// The vector state is not compared: the processor may forget that it was in use once it is
// all zeroes, which shows in the state although nothing has run.
//
// What others write into memory that is shared with it is found where it was written.

// stackReach is how far, in bytes, a wait's own frame and the area below the stack pointer
// that signal handlers leave alone extend.
const stackReach = 1024

// rests says whether a stopped process has done nothing since it was put back.
func (w *rewinder) rests(p *process, st *processState) bool {
	t := w.t
	if t.base == nil || t.tainted || len(w.dead) > 0 || p.ran {
		return false
	}
	old := t.base.process(p.pid)
	if old == nil || old != st && !slices.Equal(old.runs, st.runs) || len(old.threads) != len(st.threads) || len(p.tasks) != len(st.threads) {
		return false
	}
	for i := range p.tasks {
		tk := &p.tasks[i]
		was := old.thread(tk.tid)
		if was == nil || tk.group || tk.saved.regs != was.regs || !p.waits(tk, was) {
			return false
		}
	}
	return true
}

// waits says whether a thread is still in the call that it was let go into.
func (p *process) waits(tk *task, was *thread) bool {
	var r uapi.Regs
	if uapi.GetRegs(tk.tid, &r) != 0 || !blockedIn(&r) || !waitsOnly(&r) {
		return false
	}
	normalise(&r)
	if r != was.regs {
		return false
	}
	sp := stackPointer(&r)
	if !p.untouched(sp-stackReach, sp+stackReach) {
		return false
	}
	s := &was.altStack
	return s.SP == 0 || s.Size < pageSize || p.untouched(s.SP+s.Size-pageSize, s.SP+s.Size)
}

// untouched says whether no page of a range was written.
func (p *process) untouched(start, end uint64) bool {
	a := uapi.PmScanArg{Start: start &^ (pageSize - 1), End: (end + pageSize - 1) &^ (pageSize - 1),
		CategoryMask: uapi.PageIsWritten, CategoryAnyof: inMemory, ReturnMask: uapi.PageIsWritten}
	var found [1]uapi.PageRegion
	n, e := uapi.Scan(p.pagemap, &a, found[:])
	return n == 0 && e == 0
}
