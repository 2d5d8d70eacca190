package rewind

import (
	"slices"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// population ends what the snapshot does not know, processes and threads, and notes what is missing.
func (w *rewinder) population() error {
	t := w.t
	if err := w.endUnknown(); err != nil {
		return err
	}
	for _, st := range w.s.procs {
		p := t.procs[st.pid]
		if p != nil && len(p.tasks) > 0 && !p.infested() { // it runs another program now
			if err := t.killAndWait(p.pid); err != nil {
				return err
			}
			p.tasks = p.tasks[:0]
			t.report.ProcessesEnded++
		}
		if p == nil || len(p.tasks) == 0 {
			w.dead = append(w.dead, st)
			w.full = true
			continue
		}
		for i := range p.tasks {
			p.tasks[i].saved = st.thread(p.tasks[i].tid)
			if p.tasks[i].group {
				_ = uapi.Kill(p.pid, sigCont)
			}
		}
	}
	for _, st := range w.dead {
		if err := w.reapDead(st); err != nil {
			return err
		}
	}
	t.dropEnded()
	if t.tainted || t.opt.OwnNamespace && lastPid() != t.lastPid {
		w.full = true
	}
	return nil
}

// dropEnded leaves those that still have a thread among the live.
func (t *Tree) dropEnded() {
	t.live = slices.DeleteFunc(t.live, func(p *process) bool { return len(p.tasks) == 0 })
}

func (st *processState) thread(tid int) *thread {
	for _, th := range st.threads {
		if th.tid == tid {
			return th
		}
	}
	return nil
}

// endUnknown kills processes that were made since, waits until they are dead and has their parents fetch them.
func (w *rewinder) endUnknown() error {
	t := w.t
	if t.opt.OwnNamespace && lastPid() == t.lastPid && !t.tainted && w.s.knowsAll(t.base) {
		return nil // nothing was made since, neither process nor thread
	}
	type orphan struct{ pid, parent int }
	var found []orphan
	known := func(pid int) bool { // by its number and by being the one that the number stood for
		p := t.procs[pid]
		return w.s.process(pid) != nil && p != nil && len(p.tasks) > 0
	}
	if t.opt.OwnNamespace && !t.strangers(known) {
		return nil
	}
	var look func(parent int, pids []int)
	look = func(parent int, pids []int) {
		for _, pid := range pids {
			if known(pid) || pid == t.self {
				continue
			}
			found = append(found, orphan{pid, parent})
			look(pid, children(pid, nil))
		}
	}
	for _, p := range t.live {
		if known(p.pid) {
			look(p.pid, children(p.pid, nil))
		}
	}
	if t.opt.OwnNamespace {
		look(t.self, t.orphans(nil))
	}
	if len(found) == 0 {
		return nil
	}
	w.full = true
	for _, o := range found {
		if err := t.killAndWait(o.pid); err != nil {
			return err
		}
		t.report.ProcessesEnded++
	}
	for _, o := range found {
		if p := t.procs[o.parent]; p != nil && known(o.parent) && len(p.tasks) > 0 {
			if _, err := t.one(p, &p.tasks[0], uapi.SysWait4, uint64(o.pid), 0, uapi.WAll|uapi.WNoHang, 0); err != nil {
				return err
			}
		} else {
			t.reapOwn(o.pid)
		}
		t.forgetProcess(o.pid)
	}
	t.live = slices.DeleteFunc(t.live, func(p *process) bool { return !known(p.pid) })
	return nil
}

// strangers says whether the namespace has a process that is neither known nor this program's own
// affair. One folder tells; to ask each thread for its children takes much longer.
func (t *Tree) strangers(known func(pid int) bool) bool {
	dir, err := uapi.Open("/proc", uapi.ORdonly|uapi.ODirectory)
	if err != nil {
		return true
	}
	defer uapi.Close(dir)
	pids, err := numbers(dir, t.tids[:0])
	t.tids = pids
	return err != nil || slices.ContainsFunc(pids, func(pid int) bool { return pid != t.self && !t.foreign[pid] && !known(pid) })
}

// knowsAll says whether a snapshot has every process that another one has.
func (s *Snapshot) knowsAll(base *Snapshot) bool {
	if base == nil {
		return false
	}
	for _, st := range base.procs {
		if s.process(st.pid) == nil {
			return false
		}
	}
	return true
}

// forgetProcess drops the record of a process that has ended, unless a snapshot still needs its saved pages.
func (t *Tree) forgetProcess(pid int) {
	p := t.procs[pid]
	if p == nil {
		return
	}
	p.tasks = p.tasks[:0]
	for _, s := range t.snaps {
		if s.process(pid) != nil {
			p.closeHandles()
			return
		}
	}
	p.close()
	delete(t.procs, pid)
}

// killAndWait ends a process and waits for its last breath: one that is dying may still be writing.
func (t *Tree) killAndWait(pid int) error {
	fd, err := uapi.PidfdOpen(pid)
	if err != nil {
		return nil // gone
	}
	defer uapi.Close(fd)
	_ = uapi.PidfdKill(fd)
	pf := [1]uapi.PollFd{{Fd: int32(fd), Events: uapi.PollIn}}
	deadline := time.Now().Add(t.opt.StopTimeout)
	for {
		left := time.Until(deadline).Milliseconds()
		if left <= 0 {
			return fail(ReasonStall, "process %d does not die", pid)
		}
		// A thread of it that is traced here reports its end to the tracer first.
		if p := t.procs[pid]; p != nil {
			for i := range p.tasks {
				_, _, _ = uapi.Wait(p.tasks[i].tid)
			}
		}
		n, _ := uapi.Poll(pf[:], int(min(left, 5)))
		if n > 0 {
			t.releaseDead(pid, deadline)
			return nil
		}
	}
}

// releaseDead takes the ends of a process's traced threads: before that its parent cannot fetch it.
func (t *Tree) releaseDead(pid int, deadline time.Time) {
	p := t.procs[pid]
	if p == nil {
		return
	}
	for i := range p.tasks {
		for {
			st, err := await(p.tasks[i].tid, deadline)
			if err != nil || st.Exited() || st.Signaled() {
				break
			}
		}
	}
}

// reapOwn fetches the end of a process that is a child of this program, if it is one.
func (t *Tree) reapOwn(pid int) {
	for range 100 {
		id, st, e := uapi.Wait(pid)
		if e != 0 {
			return
		}
		if id == pid && (st.Exited() || st.Signaled()) {
			t.opt.OnExit(pid, int(st))
			return
		}
		uapi.Nap(50_000)
	}
}

// reapDead has the parent of a process that has ended fetch it, so that its number becomes free.
func (w *rewinder) reapDead(st *processState) error {
	t := w.t
	if old := t.procs[st.pid]; old != nil {
		old.closeHandles()
	}
	if st.letGo {
		return fail(ReasonProcess, "process %d has died and its peers were told", st.pid)
	}
	parent := t.procs[st.ppid]
	if parent == nil || len(parent.tasks) == 0 {
		if w.s.process(st.ppid) != nil && st.ppid != t.self {
			return nil // the parent is dead too and is made again first
		}
		return fail(ReasonProcess, "process %d has ended and its parent %d is not in the tree", st.pid, st.ppid)
	}
	_, err := t.one(parent, &parent.tasks[0], uapi.SysWait4, uint64(st.pid), 0, uapi.WAll|uapi.WNoHang, 0)
	return err
}
