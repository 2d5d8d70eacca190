package rewind

import "github.com/pommelgym/pommel/internal/uapi"

// The results by which the kernel asks itself to start a system call again.
const (
	eRestartSys     = -512
	eRestartNoIntr  = -513
	eRestartNoHand  = -514
	eRestartBlock   = -516
	user64CodeSeg   = 0x33
	noSyscall       = ^uint64(0)
	syscallInsnSize = 2
)

// blockedIn says whether a stopped thread was waiting in a system call that can be made again.
func blockedIn(r *uapi.Regs) bool {
	if int64(r.Orig_rax) < 0 {
		return false
	}
	switch int64(r.Rax) {
	case eRestartSys, eRestartNoIntr, eRestartNoHand, eRestartBlock:
		return true
	case -int64(uapi.EINTR):
		return uapi.Restartable(r.Orig_rax)
	}
	return false
}

// normalise makes a thread that was stopped in a system call make the call again when it
// goes on. Leaving it to the kernel's own restart would use the state of whatever call
// was interrupted last.
func normalise(r *uapi.Regs) {
	if int64(r.Orig_rax) < 0 {
		return
	}
	if blockedIn(r) {
		if r.Orig_rax == uapi.SysRestartSyscall {
			eintr := int64(uapi.EINTR)
			r.Rax = uint64(-eintr)
		} else {
			r.Rax = r.Orig_rax
			r.Rip -= syscallInsnSize
		}
	}
	r.Orig_rax = noSyscall
}

// native says whether a thread runs code of this architecture's 64-bit mode.
func native(r *uapi.Regs) bool { return r.Cs == user64CodeSeg }

// threadPointer is the address of thread-local storage.
func threadPointer(r *uapi.Regs) uint64 { return r.Fs_base }

func stackPointer(r *uapi.Regs) uint64 { return r.Rsp }

// waitsOnly says whether the call that a thread waits in writes nothing into its memory while
// it waits, nor when it is interrupted (others write down how much of their time was left).
func waitsOnly(r *uapi.Regs) bool { return uapi.WaitsOnly(r.Orig_rax, r.Rsi) }
