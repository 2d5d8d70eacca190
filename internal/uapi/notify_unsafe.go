package uapi

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// SeccompData is struct seccomp_data: a system call as a filter sees it.
type SeccompData struct {
	Nr   int32
	Arch uint32
	IP   uint64
	Args [6]uint64
}

// SeccompNotif is struct seccomp_notif: a system call that waits for an answer. Pid is the
// calling thread's number in the namespace of who receives it.
type SeccompNotif struct {
	ID    uint64
	Pid   uint32
	Flags uint32
	Data  SeccompData
}

// SeccompResp is struct seccomp_notif_resp: the answer.
type SeccompResp struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// Requests of a seccomp listener (linux/seccomp.h). The numbers hold the structures' sizes.
const (
	seccompNotifRecv     = 0xC0502100
	seccompNotifSend     = 0xC0182101
	seccompNotifIDValid  = 0x40082102
	seccompNotifSetFlags = 0x40082104

	// SeccompContinue lets the kernel carry the call out.
	SeccompContinue = 1

	// syncWakeUp hands the processor over at once instead of waking somebody on another one:
	// an answer takes 2.4 us with it and 45 us without.
	syncWakeUp = 1
)

// NotifyRecv takes the next call that waits. ENOENT says that it went away meanwhile.
func NotifyRecv(fd int, n *SeccompNotif) Errno {
	*n = SeccompNotif{}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), seccompNotifRecv, uintptr(unsafe.Pointer(n)))
	return e
}

// NotifySend answers a call.
func NotifySend(fd int, r *SeccompResp) Errno {
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), seccompNotifSend, uintptr(unsafe.Pointer(r)))
	return e
}

// NotifyValid says whether a call still waits.
func NotifyValid(fd int, id uint64) bool {
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), seccompNotifIDValid, uintptr(unsafe.Pointer(&id)))
	return e == 0
}

// NotifySync asks for quick answers; kernels before 6.6 do not know it.
func NotifySync(fd int) {
	_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), seccompNotifSetFlags, syncWakeUp)
}

// PollHup says that nobody is left on the other side.
const PollHup = unix.POLLHUP

// ReadVM is process_vm_readv.
func ReadVM(pid int, local, remote []Iovec) (int, Errno) {
	n, _, e := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid),
		uintptr(unsafe.Pointer(&local[0])), uintptr(len(local)),
		uintptr(unsafe.Pointer(&remote[0])), uintptr(len(remote)), 0)
	return int(n), e
}

// Peek copies memory of a process into b; Poke writes it. They answer how much was copied.
func Peek(pid int, addr uint64, b []byte) (int, Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	local := []Iovec{{Base: uint64(uintptr(unsafe.Pointer(&b[0]))), Len: uint64(len(b))}}
	return ReadVM(pid, local, []Iovec{{Base: addr, Len: uint64(len(b))}})
}

// Poke is the opposite of Peek.
func Poke(pid int, addr uint64, b []byte) (int, Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	local := []Iovec{{Base: uint64(uintptr(unsafe.Pointer(&b[0]))), Len: uint64(len(b))}}
	return WriteVM(pid, local, []Iovec{{Base: addr, Len: uint64(len(b))}})
}

// RealTime is the kernel's wall clock, asked for by a system call.
func RealTime() (sec, nsec int64) {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &ts)
	return ts.Sec, ts.Nsec
}

// TimerfdSetAbs arms a timerfd at an instant of its clock and gives what it had left.
func TimerfdSetAbs(fd, flags int, v *ItimerSpec, old *ItimerSpec) error {
	return unix.TimerfdSettime(fd, flags, v, old)
}

// Names of ptrace that only the supervisor of an exec needs.
const (
	PtraceOTraceExec = 1 << 4
	PtraceEventExec  = 4
)

// Numbers of the system calls that a world's clock has to see.
const (
	SysOpenat         = unix.SYS_OPENAT
	SysExecve         = unix.SYS_EXECVE
	SysExecveat       = unix.SYS_EXECVEAT
	SysClockGettime   = unix.SYS_CLOCK_GETTIME
	SysGettimeofday   = unix.SYS_GETTIMEOFDAY
	SysFutex          = unix.SYS_FUTEX
	SysClockNanosleep = unix.SYS_CLOCK_NANOSLEEP
	SysTimerfdSettime = unix.SYS_TIMERFD_SETTIME
	SysGetrandom      = unix.SYS_GETRANDOM
)

// NotifySizes says whether filters can pass calls on, in the structures that are used here.
func NotifySizes() error {
	const getNotifSizes = 3
	var sizes struct{ notif, resp, data uint16 }
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, getNotifSizes, 0, uintptr(unsafe.Pointer(&sizes)))
	if e != 0 {
		return e
	}
	if sizes.notif != uint16(unsafe.Sizeof(SeccompNotif{})) || sizes.resp != uint16(unsafe.Sizeof(SeccompResp{})) {
		return unix.E2BIG
	}
	return nil
}
