package rewind

import (
	"fmt"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// remakeDead makes processes again that have ended: their rewound parent forks one
// under the old number, which is then turned into what the snapshot knows. Parents come
// before their children in a snapshot.
func (w *rewinder) remakeDead() error {
	for _, st := range w.dead {
		parent := w.t.procs[st.ppid]
		if parent == nil || len(parent.tasks) == 0 {
			return fail(ReasonProcess, "process %d has ended and its parent %d is not in the tree", st.pid, st.ppid)
		}
		r := remaker{w: w, t: w.t, st: st, parent: parent, how: parents}
		if err := r.run(); err != nil {
			return fmt.Errorf("make process %d again: %w", st.pid, err)
		}
		w.t.report.ProcessesMade++
	}
	return nil
}

// remaker makes one process again.
type remaker struct {
	w      *rewinder
	t      *Tree
	st     *processState
	parent *process
	p      *process
	leader *thread
	how    origin
	rseq   bool // the restartable sequence has to be registered anew
}

func (r *remaker) run() error {
	if r.leader = r.st.thread(r.st.pid); r.leader == nil {
		return fail(ReasonProcess, "its first thread had ended before")
	}
	for _, step := range []func() error{r.fork, r.infest, r.identity, r.layout, r.descriptors, r.memory, r.finish} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// fork has the parent make a child with the wanted number.
func (r *remaker) fork() error {
	t, q := r.t, r.parent
	by := &q.tasks[0]
	mem := q.scratch()
	const argsAt, tidAt = 0, 256
	args := uapi.CloneArgs{ExitSignal: sigChld, SetTid: q.scratchAddr(tidAt), SetTidSize: 1}
	size := uint64(len(uapi.Bytes(&args)))
	clone := func() (int64, error) {
		uapi.View[uapi.CloneArgs](mem[argsAt:], 1)[0] = args
		uapi.View[int32](mem[tidAt:], 1)[0] = int32(r.st.pid)
		return t.one(q, by, uapi.SysClone3, q.scratchAddr(argsAt), size)
	}
	got, err := t.cloneAs(r.st.pid, by, uapi.PtraceOTraceFork, clone, func() (int64, error) {
		args.SetTid, args.SetTidSize = 0, 0
		return clone()
	})
	if err != nil {
		return err
	}
	if got != r.st.pid {
		_ = t.killAndWait(got)
		return fail(ReasonProcess, "its number is taken")
	}
	return r.adopt()
}

const sigChld = 17

// adopt takes the new child under the old one's record, whose saved pages are still needed.
func (r *remaker) adopt() error {
	t := r.t
	fresh, err := openProcess(r.st.pid)
	if err != nil {
		return err
	}
	p := t.procs[r.st.pid]
	if p == nil {
		fresh.close()
		return fail(ReasonProcess, "its saved pages are gone")
	}
	p.closeHandles()
	p.pidfd, p.pagemap, p.mem, p.maps, p.taskDir, p.fdDir, p.timers = fresh.pidfd, fresh.pagemap, fresh.mem, fresh.maps, fresh.taskDir, fresh.fdDir, fresh.timers
	p.tasks = append(p.tasks[:0], task{tid: p.pid, saved: r.leader})
	r.p = p
	tk := &p.tasks[0]
	if err := t.awaitStop(p, tk, dropSignals, time.Now().Add(t.opt.StopTimeout)); err != nil {
		return err
	}
	if !tk.stopped {
		return fail(ReasonProcess, "the new process did not start")
	}
	_ = uapi.Ptrace(uapi.PtraceSetOptions, p.pid, t.seizeOptions)
	t.live = append(t.live, p)
	return nil
}

// infest gives the child a parasite of its own, with the help of the one it has inherited.
func (r *remaker) infest() error {
	t, p, q := r.t, r.p, r.parent
	tk := &p.tasks[0]
	proxy := &process{pid: p.pid, pidfd: p.pidfd, mem: p.mem, code: q.code, data: q.data, shared: q.shared, channel: q.channel, remoteChannel: q.remoteChannel}
	remote, err := t.sendFd(proxy, tk, p.parasite)
	if err != nil {
		return err
	}
	b := proxy.batch()
	b.add(uapi.SysMmap, p.data, parasiteData, protRead|protWrite, mapShared|mapFixed, uint64(remote), pageSize)
	b.add(uapi.SysMmap, p.code, pageSize, protRead|protExec, mapShared|mapFixed, uint64(remote), 0)
	b.add(uapi.SysClose, uint64(remote))
	if err := t.flush(tk, b); err != nil {
		return err
	}
	if err := t.equip(p, tk); err != nil {
		return err
	}
	return t.mapArena(p, tk)
}

// identity sets what the kernel keeps about the process itself.
func (r *remaker) identity() error {
	t, p, st, tk := r.t, r.p, r.st, &r.p.tasks[0]
	b := p.batch()
	b.add(uapi.SysSetTidAddress, r.leader.clearTID)
	b.add(uapi.SysSetRobustList, r.leader.robust, r.leader.robustN)
	b.add(uapi.SysPrctl, uapi.PrSetPdeathsig, uint64(st.deathSignal))
	switch {
	case st.sid == st.pid:
		b.add(uapi.SysSetsid)
	case st.pgid == st.pid:
		b.add(uapi.SysSetpgid, 0, 0)
	}
	now, _ := uapi.GetRseq(p.pid)
	if now.Ptr != r.leader.rseq.Ptr {
		if now.Ptr != 0 {
			b.add(uapi.SysRseq, now.Ptr, uint64(now.Size), 1, uint64(now.Sig))
		}
		r.rseq = r.leader.rseq.Ptr != 0
	}
	return t.run(tk, b)
}

// layout moves the kernel's own areas to where a process that had replaced its program
// has them, and tells the kernel the borders of the address space.
func (r *remaker) layout() error {
	t, p, st, tk := r.t, r.p, r.st, &r.p.tasks[0]
	text, err := p.readMaps()
	if err != nil {
		return err
	}
	b := p.batch()
	const mayMoveFixed = 3
	for _, now := range parseMaps(text, nil) {
		if !now.kernelOwned() || now.name == "[vsyscall]" {
			continue
		}
		for i := range st.areas {
			if old := &st.areas[i]; old.name == now.name && old.start != now.start {
				b.add(uapi.SysMremap, now.start, now.end-now.start, now.end-now.start, mayMoveFixed, old.start)
			}
		}
	}
	if len(b.calls) == 0 {
		return nil
	}
	r.how = stranger
	n := len(b.calls)
	if err := t.run(tk, b); err != nil {
		return err
	}
	for _, c := range b.calls[:n] {
		if uint64(c.ret) != c.arg[4] {
			return fail(ReasonProcess, "move the vDSO: %v", uapi.Errno(-c.ret))
		}
	}
	const auxvAt = 4096
	mem := p.scratch()
	mm := st.mm
	mm.Auxv, mm.AuxvSize = p.scratchAddr(auxvAt), uint32(len(st.auxv))
	uapi.View[uapi.MMMap](mem, 1)[0] = mm
	copy(mem[auxvAt:], st.auxv)
	ret, err := t.one(p, tk, uapi.SysPrctl, uapi.PrSetMM, uapi.PrSetMMMap, p.scratchAddr(0), uint64(len(uapi.Bytes(&mm))), 0)
	if err != nil {
		return err
	}
	if ret != 0 {
		return fail(ReasonProcess, "set the borders of the address space: %v", uapi.Errno(-ret))
	}
	return nil
}

func (r *remaker) descriptors() error {
	t, p, st, tk := r.t, r.p, r.st, &r.p.tasks[0]
	b := p.batch()
	p.lookTimers()
	p.now.moved = identify("/proc/"+itoa(p.pid)+"/cwd") != st.cwd
	if err := t.undoTimers(p, tk, st, b); err != nil {
		return err
	}
	if err := t.undoCwd(p, tk, st, b); err != nil {
		return err
	}
	if err := t.flush(tk, b); err != nil {
		return err
	}
	if err := t.lookFiles(p, st); err != nil {
		return err
	}
	if err := t.undoFiles(p, tk, st, b); err != nil {
		return err
	}
	if err := t.flush(tk, b); err != nil {
		return err
	}
	return r.signalfds()
}

// signalfds takes signalfds out of the epoll sets and puts them in again: their entries
// hang on the handler table of the process that has died.
func (r *remaker) signalfds() error {
	b := r.p.batch()
	mem := r.p.scratch()
	for i := range r.st.files {
		d := &r.st.files[i]
		for _, it := range d.epoll {
			for k := range r.st.files {
				if f := &r.st.files[k]; f.fd != it.fd || f.kind != kindSignalfd {
					continue
				}
				putEpollEvent(mem, it.events, it.data)
				b.add(uapi.SysEpollCtl, uint64(d.fd), epollDel, uint64(it.fd), 0)
				b.add(uapi.SysEpollCtl, uint64(d.fd), epollAdd, uint64(it.fd), r.p.scratchAddr(0))
				if err := r.t.run(&r.p.tasks[0], b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// memory gives the child the areas and pages of the snapshot. What it has inherited is
// not tracked, so that every page counts as written.
func (r *remaker) memory() error {
	t, p, st := r.t, r.p, r.st
	p.job, p.diff = nil, nil
	p.writes.shared = p.writes.shared[:0]
	if err := p.lookAreas(st); err != nil {
		return err
	}
	b := p.batch()
	if err := t.undoAreas(p, &p.tasks[0], st, b, r.how); err != nil {
		return err
	}
	for _, th := range st.threads {
		if p.task(th.tid) == nil {
			if err := t.makeThread(p, &p.tasks[0], th); err != nil {
				return err
			}
		}
	}
	if err := t.startCopies(p, b); err != nil {
		return err
	}
	if err := t.finishCopies(p); err != nil {
		return err
	}
	for _, raw := range st.readOnly {
		if err := p.write(raw.addr, raw.data); err != nil {
			return err
		}
	}
	p.sinceArm = 0
	return p.rearmWritten()
}

func (r *remaker) finish() error {
	p := r.p
	p.ran = true
	leader := *r.leader
	if !r.rseq {
		leader.rseq = uapi.RseqConf{} // inherited in its place
	}
	p.tasks[0].saved = &leader
	err := r.t.dressThread(p, &p.tasks[0])
	p.tasks[0].saved = r.leader
	return err
}
