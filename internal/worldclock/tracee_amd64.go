package worldclock

import (
	"fmt"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// tracee is a thread that this thread traces and that is stopped.
type tracee struct {
	tid   int
	saved uapi.Regs
	mask  uint64
	insn  uint64 // where an instruction makes a system call
}

const (
	sigKill = 9
	sigTrap = 5

	noCall = ^uint64(0)
	// traceTimeout bounds what a stopped thread is waited for; it has microseconds of work.
	traceTimeout = 10 * time.Second
)

// await waits until one of the given threads reports something. Waiting is by asking
// again: the kernel has no wait with a deadline.
func await(tids ...int) (int, uapi.WaitStatus, error) {
	deadline := time.Now().Add(traceTimeout)
	for tries := 0; ; tries++ {
		gone := 0
		for _, tid := range tids {
			id, st, e := uapi.Wait(tid)
			switch {
			case e == uapi.EINTR:
			case e != 0:
				gone++
			case id != 0:
				return id, st, nil
			}
		}
		switch {
		case gone == len(tids):
			return 0, 0, errGone
		case tries < 200:
			uapi.Yield()
		case time.Now().After(deadline):
			return 0, 0, fmt.Errorf("thread %d did not stop within %v", tids[0], traceTimeout)
		default:
			uapi.Nap(20_000)
		}
	}
}

// begin saves what call changes and keeps signals away.
func (t *tracee) begin() error {
	if e := uapi.GetRegs(t.tid, &t.saved); e != 0 {
		return fmt.Errorf("read registers: %w", e)
	}
	var e uapi.Errno
	if t.mask, e = uapi.GetSigMask(t.tid); e != 0 {
		return fmt.Errorf("read signal mask: %w", e)
	}
	if e := uapi.SetSigMask(t.tid, ^uint64(1<<(sigTrap-1))); e != 0 {
		return fmt.Errorf("set signal mask: %w", e)
	}
	return nil
}

// end puts back what begin saved.
func (t *tracee) end() error {
	if e := uapi.SetRegs(t.tid, &t.saved); e != 0 {
		return fmt.Errorf("set registers: %w", e)
	}
	if e := uapi.SetSigMask(t.tid, t.mask); e != 0 {
		return fmt.Errorf("set signal mask: %w", e)
	}
	return nil
}

// call makes a system call in the process.
func (t *tracee) call(nr uint64, a ...uint64) (uint64, error) {
	var args [6]uint64
	copy(args[:], a)
	r := t.saved
	r.Rip, r.Rax, r.Orig_rax = t.insn, nr, noCall
	r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9 = args[0], args[1], args[2], args[3], args[4], args[5]
	if e := uapi.SetRegs(t.tid, &r); e != 0 {
		return 0, fmt.Errorf("set registers: %w", e)
	}
	for {
		if e := uapi.Ptrace(uapi.PtraceSinglestep, t.tid, 0); e != 0 {
			return 0, fmt.Errorf("step: %w", e)
		}
		_, st, err := await(t.tid)
		if err != nil {
			return 0, err
		}
		if !st.Stopped() {
			return 0, &goneError{status: int(st)}
		}
		if int(st)>>16 == 0 && int(st.StopSignal()) == sigTrap {
			break
		}
	}
	if e := uapi.GetRegs(t.tid, &r); e != 0 {
		return 0, fmt.Errorf("read registers: %w", e)
	}
	if v := int64(r.Rax); v < 0 && v > -4096 {
		return 0, fmt.Errorf("system call %d: %w", nr, uapi.Errno(-v))
	}
	return r.Rax, nil
}
