package sys

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deniedCalls are system calls that no application, database or browser of a world needs
// and that are a way out (namespaces, tracing, keys, kernel modules) or state that a reset
// cannot put back (io_uring). They fail as on a kernel without them, so programs fall back.
var deniedCalls = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_QUOTACTL,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	// The flags of clone3 lie in memory where a filter cannot see them; programs then use clone.
	unix.SYS_CLONE3,
}

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Offsets in struct seccomp_data.
const (
	dataNr   = 0
	dataArch = 4
	dataArg0 = 16
)

// filterProgram denies deniedCalls, clone with new namespaces, and every system call of
// a foreign architecture (32-bit entry points have other numbers).
// With notify given, what a world's clock has to see is passed on to a listener.
func filterProgram(notify bool) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atMost = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		anyBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
		allow  = unix.SECCOMP_RET_ALLOW
		noSys  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		noPerm = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		x32    = 0x40000000
	)
	p := []unix.SockFilter{
		{Code: load, K: dataArch},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: ret, K: noSys},
		{Code: load, K: dataNr},
		{Code: atMost, K: x32, Jf: 1},
		{Code: ret, K: noSys},
	}
	for _, nr := range deniedCalls {
		p = append(p, unix.SockFilter{Code: equal, K: nr, Jf: 1}, unix.SockFilter{Code: ret, K: noSys})
	}
	if notify {
		p = append(p, clockRules()...)
	}
	return append(p,
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 3},
		unix.SockFilter{Code: load, K: dataArg0},
		unix.SockFilter{Code: anyBit, K: newNamespaces, Jf: 1},
		unix.SockFilter{Code: ret, K: noPerm},
		unix.SockFilter{Code: ret, K: allow},
	)
}

// filterThread puts this thread and its children under the filter. It needs no_new_privs.
// With notify given, the answer is a listener for the calls that are passed on.
func filterThread(notify bool) (listener int, err error) {
	p := filterProgram(notify)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	var flags uintptr
	if notify {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}
