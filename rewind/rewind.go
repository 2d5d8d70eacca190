package rewind

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Rewind puts the tree back to a snapshot, in place. The processes stay the same; what
// they have done since is gone. It answers what was done, or a *NeedsRespawnError.
func (t *Tree) Rewind(ctx context.Context, s *Snapshot) (*Report, error) {
	r, _, err := t.rewind(ctx, s, false)
	return r, err
}

// Verify is Rewind with a proof: before the tree goes on, every saved and shared page,
// all registers, descriptors and files are compared with the snapshot.
func (t *Tree) Verify(ctx context.Context, s *Snapshot) (*Report, *Verification, error) {
	return t.rewind(ctx, s, true)
}

func (t *Tree) rewind(ctx context.Context, s *Snapshot, verify bool) (*Report, *Verification, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s == nil {
		return nil, nil, errors.New("rewind: no snapshot is given")
	}
	if err := t.usable(s); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, &NeedsRespawnError{Reason: ReasonInterrupted, Detail: err.Error()}
	}
	t.opt.ReapLock.Lock()
	defer t.opt.ReapLock.Unlock()
	var w rewinder
	err := t.tracer.do(func() error {
		w = rewinder{t: t, s: s, verify: verify}
		return w.run()
	})
	if err == nil {
		t.base, t.tainted = s, false
		return t.report, w.proof, nil
	}
	p := asProblem(err)
	out := &NeedsRespawnError{Reason: p.reason, Detail: p.text, Ended: w.touched}
	if w.touched {
		t.end(out)
	}
	t.restartTracer()
	return nil, nil, out
}

// end kills a tree that is neither what it was nor what it should be.
func (t *Tree) end(why *NeedsRespawnError) {
	t.lost = why
	for _, p := range t.procs {
		if p.pidfd >= 0 {
			_ = uapi.PidfdKill(p.pidfd)
		}
	}
}

// rewinder is one rewind on its way.
type rewinder struct {
	t       *Tree
	s       *Snapshot
	verify  bool
	touched bool // something was changed: giving up would leave a damaged tree
	full    bool // shared memory may have been written by somebody unknown
	dead    []*processState
	proof   *Verification
	mark    time.Time
}

// lap adds the time since the last lap to a part.
func (w *rewinder) lap(part *time.Duration) {
	now := time.Now()
	*part += now.Sub(w.mark)
	w.mark = now
}

func (w *rewinder) run() error {
	t := w.t
	begin := time.Now()
	w.mark = begin
	t.report = &Report{}
	t.target = w.s
	t.epoch++
	split := &t.report.Split
	if err := w.stop(); err != nil {
		t.letGo(t.live)
		return err
	}
	w.lap(&split.Stop)
	w.touched = true
	if err := w.population(); err != nil {
		return err
	}
	w.lap(&split.Processes)
	if err := w.prepareObjects(); err != nil {
		return err
	}
	if err := w.processes(); err != nil {
		return err
	}
	w.mark = time.Now()
	if err := w.remakeDead(); err != nil {
		return err
	}
	w.lap(&split.Processes)
	if err := t.drain(w.s); err != nil {
		return err
	}
	for _, p := range t.live {
		if err := t.undoSignals(p, w.s.process(p.pid)); err != nil {
			return err
		}
	}
	w.lap(&split.Drain)
	if w.verify {
		w.proof = t.compare(w.s)
		w.mark = time.Now()
	}
	w.s.closeTemporary()
	for _, o := range w.s.objects {
		o.settle()
	}
	w.count()
	if err := t.resume(t.live, true); err != nil {
		return err
	}
	t.lastPid = lastPid()
	w.lap(&split.Resume)
	t.report.Total = time.Since(begin)
	return nil
}

func (w *rewinder) fromFiles() map[string]*entry {
	if w.t.tainted {
		return map[string]*entry{} // so that every file counts as different
	}
	if w.t.base == w.s || w.t.base == nil {
		return nil
	}
	return w.t.base.files
}

func (w *rewinder) count() {
	r := w.t.report
	r.Processes = len(w.s.procs)
	for _, st := range w.s.procs {
		r.Threads += len(st.threads)
		r.Areas += len(st.areas)
	}
}

// stop stops all processes that are known. Those that are gone are left out of t.live.
func (w *rewinder) stop() error {
	t := w.t
	t.live = t.live[:0]
	for _, p := range t.procs {
		if p.pidfd >= 0 {
			t.live = append(t.live, p)
		}
	}
	w.largestFirst()
	if err := t.stopAll(t.live, dropSignals); err != nil {
		return err
	}
	t.dropEnded()
	for _, pid := range t.opt.Roots {
		p, st := t.procs[pid], w.s.process(pid)
		if p == nil || len(p.tasks) == 0 || st == nil {
			return fail(ReasonRootGone, "root process %d has ended", pid)
		}
		if identify("/proc/"+itoa(pid)+"/exe") != st.exe || !p.infested() {
			return fail(ReasonRootGone, "root process %d has replaced its program", pid)
		}
	}
	return nil
}

// largestFirst puts the processes that take longest first, so that none of them is still being
// looked at when all others are done.
func (w *rewinder) largestFirst() {
	effort := func(p *process) int {
		st := w.s.process(p.pid)
		if st == nil {
			return 0
		}
		return len(st.runs) + len(st.areas)
	}
	slices.SortFunc(w.t.live, func(a, b *process) int {
		return cmp.Or(cmp.Compare(effort(b), effort(a)), cmp.Compare(a.pid, b.pid))
	})
}

// prepareObjects makes the shared objects of the snapshot ready.
func (w *rewinder) prepareObjects() error {
	for _, s := range w.s.objects {
		s.o.full = false
		if err := s.prepare(); err != nil {
			return err
		}
	}
	return nil
}

// processes rewinds what lives: threads first, then a scan of all memories side by side,
// then everything that needs injected calls, while the pages of one process are copied
// by its own threads.
func (w *rewinder) processes() error {
	t := w.t
	split := &t.report.Split
	for _, p := range t.live {
		if err := w.endThreads(p); err != nil {
			return err
		}
	}
	w.lap(&split.Threads)
	w.survey()
	w.lap(&split.Scan)
	for _, p := range t.live {
		if err := w.begin(p); err != nil {
			return err
		}
	}
	for _, p := range t.live {
		if p.undo != nil {
			if err := w.goOn(p, p.batch()); err != nil {
				return err
			}
		}
	}
	// What follows does not concern the memory that is being copied.
	w.sharedMemory()
	w.lap(&split.Write)
	if err := t.files.undo(t.report, w.fromFiles(), w.s.files); err != nil {
		return err
	}
	w.lap(&split.Files)
	for _, p := range t.live {
		if p.ran {
			if err := w.finish(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// endThreads ends threads that the snapshot does not know. Their end writes to memory (the
// kernel clears the word that joiners wait for), so it comes before the memory is scanned.
func (w *rewinder) endThreads(p *process) error {
	survivor := false
	for i := range p.tasks {
		survivor = survivor || p.tasks[i].saved != nil
	}
	if !survivor {
		return fail(ReasonThread, "no thread of process %d is left that the snapshot knows", p.pid)
	}
	k, st := 0, w.s.process(p.pid)
	p.ran = len(p.tasks) != len(st.threads)
	for i := range p.tasks {
		tk := p.tasks[i]
		if tk.saved != nil {
			p.tasks[k] = tk
			k++
			continue
		}
		p.ran = true
		if err := w.t.endThread(p, &tk); err != nil {
			return err
		}
	}
	p.tasks = p.tasks[:k]
	p.ran = p.ran || k != len(st.threads)
	return nil
}

// begin puts back of one process what needs calls made in it. If its memory can only be written
// when they are over, they are left running, and goOn waits for them.
func (w *rewinder) begin(p *process) error {
	t, st := w.t, w.s.process(p.pid)
	split := &t.report.Split
	p.undo = nil
	if p.idle() {
		t.report.IdleProcesses++
		if !w.alone() {
			p.peekFiles(st)
		}
		return nil
	}
	if p.lookJob != nil {
		return p.lookJob
	}
	p.ran = true
	tk := &p.tasks[0]
	b := p.batch() // one round trip does for everything, as a rule
	if err := t.undoTimers(p, tk, st, b); err != nil {
		return err
	}
	if err := t.undoCwd(p, tk, st, b); err != nil {
		return err
	}
	w.lap(&split.Threads)
	if err := t.undoFiles(p, tk, st, b); err != nil {
		return err
	}
	w.lap(&split.Descriptors)
	if p.now.sameAreas && p.job != nil {
		return p.job
	}
	if !p.now.sameAreas {
		u := &areaUndo{t: t, p: p, tk: tk, st: st, b: b, how: itsOwn}
		if err := u.sweep(); err != nil {
			return err
		}
		if u.unsettled() {
			p.undo = u
			err := t.launch(p, b, nil)
			w.lap(&split.Areas)
			return err
		}
	}
	w.lap(&split.Areas)
	return w.goOn(p, b)
}

// goOn makes the threads of a process that are missing and starts to write its pages back. b
// has the calls that may be made along with that.
func (w *rewinder) goOn(p *process, b *batch) error {
	t, st := w.t, w.s.process(p.pid)
	split := &t.report.Split
	if p.undo != nil {
		if err := t.finishCopies(p); err != nil {
			return err
		}
		if err := p.undo.settle(); err != nil {
			return err
		}
		w.lap(&split.Areas)
	}
	for _, th := range st.threads {
		if p.task(th.tid) == nil {
			if err := t.flush(&p.tasks[0], b); err != nil {
				return err
			}
			if err := t.makeThread(p, &p.tasks[0], th); err != nil {
				return err
			}
		}
	}
	w.lap(&split.Threads)
	err := t.startCopies(p, b)
	w.lap(&split.Write)
	return err
}

// smallSet is the number of written pages below which tracking is always started afresh.
const smallSet = 256

// armDue says whether tracking is to be started afresh. Small sets are at once: it costs
// little, and only so does it show when a process has not run. So are those that have grown
// by half: a tree that goes from one snapshot to another would write back what differed
// between all that it has been at.
func (p *process) armDue(every int) bool {
	n := p.writes.written + p.writes.zeroed
	if p.sinceArm == 0 {
		p.fresh = n
	}
	p.sinceArm++
	return n < smallSet || n > p.fresh+p.fresh/2 || p.sinceArm >= every
}

// finish waits for the copies of a process and starts tracking afresh when it is time.
func (w *rewinder) finish(p *process) error {
	split := &w.t.report.Split
	if err := w.t.finishCopies(p); err != nil {
		return err
	}
	w.lap(&split.Write)
	if p.sinceArm == 0 {
		w.t.report.PagesTracked += p.writes.written + p.writes.zeroed
	}
	if p.armDue(w.t.opt.Rearm) {
		p.sinceArm = 0
		if err := p.rearmWritten(); err != nil {
			return err
		}
	}
	w.lap(&split.Rearm)
	return nil
}
