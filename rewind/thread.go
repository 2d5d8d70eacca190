package rewind

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// thread is what a snapshot keeps of one thread.
type thread struct {
	tid             int
	regs            uapi.Regs
	xstate          []byte
	mask            uint64
	nice            int
	robust, robustN uint64
	rseq            uapi.RseqConf
	clearTID        uint64
	altStack        uapi.StackT
	name            string
	pending         []uapi.SigInfo
}

const maxXState = 16 << 10

// captureThread reads what ptrace shows of a stopped thread. The registers are kept in
// the form in which the thread will be let go.
func captureThread(tid int) (*thread, error) {
	th := &thread{tid: tid}
	if e := uapi.GetRegs(tid, &th.regs); e != 0 {
		return nil, fail(ReasonUnexpected, "read registers of thread %d: %v", tid, e)
	}
	if !native(&th.regs) {
		return nil, fail(ReasonArch, "thread %d runs 32-bit code", tid)
	}
	normalise(&th.regs)
	buf := make([]byte, maxXState)
	n, e := uapi.GetXState(tid, buf)
	if e != 0 {
		return nil, fail(ReasonUnexpected, "read vector state of thread %d: %v", tid, e)
	}
	th.xstate = bytes.Clone(buf[:n])
	if th.mask, e = uapi.GetSigMask(tid); e != 0 {
		return nil, fail(ReasonUnexpected, "read signal mask of thread %d: %v", tid, e)
	}
	th.nice = uapi.Nice(tid)
	th.robust, th.robustN, _ = uapi.RobustList(tid)
	th.rseq, _ = uapi.GetRseq(tid)
	th.pending = pendingSignals(tid, false)
	return th, nil
}

func pendingSignals(tid int, shared bool) []uapi.SigInfo {
	var b [64]uapi.SigInfo
	n := uapi.PeekSigInfo(tid, shared, b[:])
	if n <= 0 {
		return nil
	}
	return append([]uapi.SigInfo(nil), b[:n]...)
}

// captureInside reads what only the thread itself can tell, and its name.
func (t *Tree) captureInside(p *process, tk *task) error {
	b := p.batch()
	b.add(uapi.SysSigaltstack, 0, p.scratchAddr(0))
	c := b.add(uapi.SysPrctl, uapi.PrGetTidAddress, p.scratchAddr(64))
	if err := t.run(tk, b); err != nil {
		return err
	}
	th := tk.saved
	th.altStack = uapi.View[uapi.StackT](p.scratch(), 1)[0]
	if b.calls[:2][c].ret == 0 {
		th.clearTID = uapi.View[uint64](p.scratch()[64:], 1)[0]
	}
	var buf [32]byte
	th.name = strings.TrimSuffix(string(readSmall(fmt.Sprintf("/proc/%d/task/%d/comm", p.pid, tk.tid), buf[:])), "\n")
	return nil
}

// endThread lets a thread that the snapshot does not know leave the process.
func (t *Tree) endThread(p *process, tk *task) error {
	var r uapi.Regs
	if e := uapi.GetRegs(tk.tid, &r); e != 0 {
		return fail(ReasonThread, "read registers of new thread %d: %v", tk.tid, e)
	}
	enterSyscall(&r, p.code+callSyscallAt, uapi.SysExit, [6]uint64{})
	if e := uapi.SetRegs(tk.tid, &r); e != 0 {
		return fail(ReasonThread, "set registers of new thread %d: %v", tk.tid, e)
	}
	_ = uapi.SetSigMask(tk.tid, ^uint64(0))
	_ = uapi.Ptrace(uapi.PtraceCont, tk.tid, 0)
	deadline := time.Now().Add(t.opt.StopTimeout)
	for {
		st, err := await(tk.tid, deadline)
		if errors.Is(err, errTimeout) {
			return t.whyStalled(p.pid, tk.tid)
		}
		if err != nil || !st.Stopped() {
			t.report.ThreadsEnded++
			return nil
		}
		_ = uapi.Ptrace(uapi.PtraceCont, tk.tid, 0)
	}
}

const (
	cloneVM            = 0x100
	cloneFS            = 0x200
	cloneFiles         = 0x400
	cloneSighand       = 0x800
	cloneThread        = 0x10000
	cloneSysvsem       = 0x40000
	cloneSettls        = 0x80000
	cloneChildCleartid = 0x200000
)

// makeThread makes a thread again that has ended, under its old number.
func (t *Tree) makeThread(p *process, by *task, th *thread) error {
	const argsAt, tidAt, clearAt, stackAt = 0, 256, 512, 4096
	mem := p.scratch()
	clearTID := th.clearTID
	if clearTID == 0 {
		clearTID = p.scratchAddr(clearAt)
	}
	args := uapi.CloneArgs{
		Flags:    cloneVM | cloneFS | cloneFiles | cloneSighand | cloneThread | cloneSysvsem | cloneSettls | cloneChildCleartid,
		ChildTid: clearTID, TLS: threadPointer(&th.regs), Stack: p.scratchAddr(stackAt), StackSize: 2 * pageSize,
		SetTid: p.scratchAddr(tidAt), SetTidSize: 1,
	}
	uapi.View[uapi.CloneArgs](mem[argsAt:], 1)[0] = args
	uapi.View[int32](mem[tidAt:], 1)[0] = int32(th.tid)
	got, err := t.cloneAs(th.tid, by, uapi.PtraceOTraceClone, func() (int64, error) {
		return t.one(p, by, uapi.SysClone3, p.scratchAddr(argsAt), uint64(len(uapi.Bytes(&args))))
	}, func() (int64, error) {
		uapi.View[uapi.CloneArgs](mem[argsAt:], 1)[0].SetTidSize = 0
		uapi.View[uapi.CloneArgs](mem[argsAt:], 1)[0].SetTid = 0
		return t.one(p, by, uapi.SysClone3, p.scratchAddr(argsAt), uint64(len(uapi.Bytes(&args))))
	})
	if err != nil {
		return err
	}
	if got != th.tid {
		return fail(ReasonThread, "thread %d (%s) of process %d: its number is taken", th.tid, th.name, p.pid)
	}
	p.tasks = append(p.tasks, task{tid: th.tid, saved: th})
	tk := &p.tasks[len(p.tasks)-1]
	if err := t.awaitStop(p, tk, dropSignals, time.Now().Add(t.opt.StopTimeout)); err != nil {
		return err
	}
	if !tk.stopped {
		return fail(ReasonThread, "thread %d did not start", th.tid)
	}
	_ = uapi.Ptrace(uapi.PtraceSetOptions, th.tid, t.seizeOptions)
	t.report.ThreadsCreated++
	return t.dressThread(p, tk)
}

// dressThread gives a new thread what its predecessor had told the kernel about itself.
func (t *Tree) dressThread(p *process, tk *task) error {
	th, mem := tk.saved, p.scratch()
	const nameAt, stackAt = 64, 0
	copy(mem[nameAt:nameAt+16], append([]byte(th.name), 0))
	b := p.batch()
	b.add(uapi.SysPrctl, uapi.PrSetName, p.scratchAddr(nameAt))
	if th.robust != 0 {
		b.add(uapi.SysSetRobustList, th.robust, th.robustN)
	}
	const ssDisable = 2
	if th.altStack.SP != 0 && th.altStack.Flags&ssDisable == 0 {
		uapi.View[uapi.StackT](mem[stackAt:], 1)[0] = th.altStack
		b.add(uapi.SysSigaltstack, p.scratchAddr(stackAt), 0)
	}
	rs := -1
	if th.rseq.Ptr != 0 {
		rs = b.add(uapi.SysRseq, th.rseq.Ptr, uint64(th.rseq.Size), 0, uint64(th.rseq.Sig))
	}
	n := len(b.calls)
	if err := t.run(tk, b); err != nil {
		return err
	}
	if rs >= 0 && b.calls[:n][rs].ret != 0 {
		return fail(ReasonThread, "register the restartable sequence of thread %d: %v", th.tid, uapi.Errno(-b.calls[:n][rs].ret))
	}
	if th.nice != 0 {
		_ = uapi.SetNice(th.tid, th.nice)
	}
	return nil
}
