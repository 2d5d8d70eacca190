package rewind

import (
	"errors"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

const (
	sigKill = 9
	sigIll  = 4
	sigTrap = 5
	sigBus  = 7
	sigSegv = 11
	sigCont = 18
	sigStop = 19
)

// stopMode says what becomes of a signal that was about to be delivered.
type stopMode int

const (
	keepSignals stopMode = iota // before a snapshot: the program gets it
	dropSignals                 // before a rewind: it belongs to the past that is undone
)

// stopAll stops every thread of the given processes. Attaching and interrupting all of
// them first and waiting afterwards lets them stop side by side.
func (t *Tree) stopAll(procs []*process, mode stopMode) error {
	deadline := time.Now().Add(t.opt.StopTimeout)
	known := mode == dropSignals && t.nothingMade()
	uapi.NoStopSignals()
	for _, p := range procs {
		p.tasks = p.tasks[:0]
		var err error
		if known && t.base.process(p.pid) != nil {
			err = t.seizeKnown(p, t.base.process(p.pid))
		} else {
			_, err = t.seizeNew(p)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range procs {
		for waited := 0; ; {
			for ; waited < len(p.tasks); waited++ {
				if err := t.awaitStop(p, &p.tasks[waited], mode, deadline); err != nil {
					return err
				}
			}
			if known && p.countThreads() == len(p.tasks) {
				break
			}
			n, err := t.seizeNew(p)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
		p.keepStopped()
	}
	return nil
}

// nothingMade says that no thread and no process was made since the tree was let go: so the
// number of a thread that was there then is nobody else's.
func (t *Tree) nothingMade() bool {
	return t.opt.OwnNamespace && t.base != nil && !t.tainted && lastPid() == t.lastPid
}

// countThreads is how many threads a process has, or -1.
func (p *process) countThreads() int {
	var st uapi.Stat_t
	if uapi.Fstat(p.taskDir, &st) != nil {
		return -1
	}
	return int(st.Nlink) - 2
}

func (p *process) keepStopped() {
	k := 0
	for _, tk := range p.tasks {
		if tk.stopped {
			p.tasks[k] = tk
			k++
		}
	}
	p.tasks = p.tasks[:k]
}

// seizeNew attaches to the threads of p that it does not know yet and says how many there were.
func (t *Tree) seizeNew(p *process) (int, error) {
	tids, err := numbers(p.taskDir, t.tids[:0])
	t.tids = tids
	if err != nil {
		return 0, nil // the process is gone; who called will see that it has no threads
	}
	before := len(p.tasks)
	for _, tid := range tids {
		if p.task(tid) == nil {
			if err := t.seize(p, tid); err != nil {
				return 0, err
			}
		}
	}
	return len(p.tasks) - before, nil
}

// seizeKnown attaches to the threads that p had. To list them would take longer.
func (t *Tree) seizeKnown(p *process, st *processState) error {
	for _, th := range st.threads {
		if err := t.seize(p, th.tid); err != nil {
			return err
		}
	}
	return nil
}

// seize attaches to a thread of p, unless it has ended, and tells it to stop.
func (t *Tree) seize(p *process, tid int) error {
	e := uapi.Ptrace(uapi.PtraceSeize, tid, t.seizeOptions)
	if e == uapi.EPERM && t.seizeOptions != 0 && uapi.Ptrace(uapi.PtraceSeize, tid, 0) == 0 {
		t.seizeOptions, e = 0, 0 // only filters of system calls may not be suspended with these rights
	}
	switch e {
	case 0:
	case uapi.ESRCH:
		return nil
	default:
		if s := taskState(p.pid, tid); s == 'Z' || s == 'X' || s == 0 {
			return nil
		}
		return t.whyNotTraced(p.pid, tid, e)
	}
	if e := uapi.Ptrace(uapi.PtraceInterrupt, tid, 0); e != 0 && e != uapi.ESRCH {
		return fail(ReasonUnexpected, "interrupt thread %d: %v", tid, e)
	}
	p.tasks = append(p.tasks, task{tid: tid})
	return nil
}

func (p *process) task(tid int) *task {
	for i := range p.tasks {
		if p.tasks[i].tid == tid {
			return &p.tasks[i]
		}
	}
	return nil
}

func (t *Tree) whyNotTraced(pid, tid int, e uapi.Errno) error {
	var b [4096]byte
	status := readSmall(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid), b[:])
	name := statusField(status, "Name")
	if len(name) > 4 && name[:4] == "iou-" {
		return fail(ReasonIOUring, "process %d has the kernel thread %s", pid, name)
	}
	if by := statusField(status, "TracerPid"); by != "0" && by != "" {
		return fail(ReasonTraced, "thread %d (%s) is traced by process %s", tid, name, by)
	}
	return fail(ReasonTraced, "attach to thread %d (%s) of process %d: %v", tid, name, pid, e)
}

// awaitStop waits until a thread is stopped, or gone (then it stays marked as not stopped).
func (t *Tree) awaitStop(p *process, tk *task, mode stopMode, deadline time.Time) error {
	for {
		st, err := await(tk.tid, deadline)
		if errors.Is(err, errTimeout) {
			return t.whyStalled(p.pid, tk.tid)
		}
		if err != nil {
			return nil // ECHILD: somebody else has seen its end
		}
		if st.Exited() || st.Signaled() {
			if tk.tid == p.pid {
				t.opt.OnExit(p.pid, int(st))
			}
			return nil
		}
		if !st.Stopped() {
			continue
		}
		event, sig := int(st)>>16, int(st.StopSignal())
		if event == uapi.PtraceEventStop {
			tk.stopped, tk.group = true, sig != sigTrap
			return nil
		}
		pass := uint64(0)
		if event == 0 {
			if mode == keepSignals {
				pass = uint64(sig)
			} else {
				t.report.SignalsDropped++
			}
		}
		if e := uapi.Ptrace(uapi.PtraceCont, tk.tid, pass); e != 0 && e != uapi.ESRCH {
			return fail(ReasonUnexpected, "let thread %d go on to its stop: %v", tk.tid, e)
		}
	}
}

func (t *Tree) whyStalled(pid, tid int) error {
	var b [4096]byte
	dir := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
	name := statusField(readSmall(dir+"status", b[:]), "Name")
	if len(name) > 4 && name[:4] == "iou-" {
		return fail(ReasonIOUring, "process %d has the kernel thread %s, which does not stop", pid, name)
	}
	where := string(readSmall(dir+"wchan", b[:]))
	return fail(ReasonStall, "thread %d (%s) of process %d did not stop within %v: state %c in %s",
		tid, name, pid, t.opt.StopTimeout, taskState(pid, tid), where)
}

// resume gives each thread its saved registers and lets everything go. vector says
// whether the vector state has to be set as well (after a snapshot it has not changed).
func (t *Tree) resume(procs []*process, vector bool) error {
	for _, p := range procs {
		for i := range p.tasks {
			if err := p.tasks[i].restore(vector); err != nil {
				return err
			}
		}
	}
	for _, p := range procs {
		for i := range p.tasks {
			if e := uapi.Ptrace(uapi.PtraceDetach, p.tasks[i].tid, 0); e != 0 {
				return fail(ReasonUnexpected, "let thread %d of process %d go: %v", p.tasks[i].tid, p.pid, e)
			}
		}
		p.tasks = p.tasks[:0]
	}
	return nil
}

func (tk *task) restore(vector bool) error {
	th := tk.saved
	if th == nil {
		return nil
	}
	if e := uapi.SetRegs(tk.tid, &th.regs); e != 0 {
		return fail(ReasonUnexpected, "set registers of thread %d: %v", tk.tid, e)
	}
	if vector {
		if e := uapi.SetXState(tk.tid, th.xstate); e != 0 {
			return fail(ReasonUnexpected, "set vector state of thread %d: %v", tk.tid, e)
		}
	}
	if e := uapi.SetSigMask(tk.tid, th.mask); e != 0 {
		return fail(ReasonUnexpected, "set signal mask of thread %d: %v", tk.tid, e)
	}
	return nil
}

// letGo lets everything go on as it was found: threads that were waiting in a call make it again.
func (t *Tree) letGo(procs []*process) {
	for _, p := range procs {
		for i := range p.tasks {
			tk := &p.tasks[i]
			if !tk.stopped {
				continue
			}
			if tk.saved != nil {
				_ = tk.restore(false)
			} else if !tk.masked {
				var r uapi.Regs
				if uapi.GetRegs(tk.tid, &r) == 0 && blockedIn(&r) {
					normalise(&r)
					_ = uapi.SetRegs(tk.tid, &r)
				}
			}
			_ = uapi.Ptrace(uapi.PtraceDetach, tk.tid, 0)
		}
		p.tasks = p.tasks[:0]
	}
}
