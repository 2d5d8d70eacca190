package uapi

import "golang.org/x/sys/unix"

// Regs are the general registers of a thread (struct user_regs_struct).
type Regs = unix.PtraceRegs

// NTXState is the register set of the floating point and vector state.
const NTXState = 0x202

// SysRestartSyscall is the call by which the kernel goes on with an interrupted wait.
const SysRestartSyscall = unix.SYS_RESTART_SYSCALL

// Restartable says whether a system call answers EINTR when a stop interrupts it,
// although no handler ran, and may then be made again with the same arguments.
func Restartable(nr uint64) bool {
	switch nr {
	case unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
		unix.SYS_IO_GETEVENTS, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_FUTEX_WAITV, unix.SYS_POLL, unix.SYS_PPOLL,
		unix.SYS_SELECT, unix.SYS_PSELECT6, unix.SYS_PAUSE, unix.SYS_RT_SIGSUSPEND, unix.SYS_MSGRCV,
		unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_READ:
		return true
	}
	return false
}

// WaitsOnly says whether a system call, given its second argument, leaves the caller's memory
// alone until what it waits for has come.
func WaitsOnly(nr, second uint64) bool {
	switch nr {
	case unix.SYS_FUTEX: // those that inherit priorities write down that somebody waits
		const options = 0x80 | 0x100 // private, real time
		op := second &^ options
		return op == futexWait || op == futexWaitBitset
	case unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_READ, unix.SYS_RECVFROM, unix.SYS_RECVMSG,
		unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_PAUSE, unix.SYS_RT_SIGSUSPEND:
		return true
	}
	return false
}

const (
	futexWait       = 0
	futexWaitBitset = 9
)
