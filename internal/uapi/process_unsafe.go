package uapi

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Kcmp compares descriptor a of process pidA with descriptor b of process pidB; 0 means the same open file.
func Kcmp(pidA, pidB, a, b int) (int, Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_KCMP, uintptr(pidA), uintptr(pidB), KcmpFile, uintptr(a), uintptr(b), 0)
	return int(r), e
}

// PidfdGetfd copies a descriptor out of another process.
func PidfdGetfd(pidfd, fd int) (int, Errno) {
	r, _, e := unix.RawSyscall(unix.SYS_PIDFD_GETFD, uintptr(pidfd), uintptr(fd), 0)
	return int(r), e
}

// TimerfdSet arms (or, with a zero value, disarms) a timerfd.
func TimerfdSet(fd int, v ItimerSpec) error { return unix.TimerfdSettime(fd, 0, &v, nil) }

// TimerfdTicks sets the number of expirations that have not been read.
func TimerfdTicks(fd int, n uint64) Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), TimerfdIocSetTicks, uintptr(unsafe.Pointer(&n)))
	return e
}

// Nap sleeps the calling thread itself, which the tracer does between looks at a thread that is on its way to its stop.
func Nap(ns int64) {
	ts := unix.NsecToTimespec(ns)
	_ = unix.Nanosleep(&ts, nil)
}

// Nice reads a thread's nice value.
func Nice(tid int) int {
	r, _, e := unix.RawSyscall(unix.SYS_GETPRIORITY, unix.PRIO_PROCESS, uintptr(tid), 0)
	if e != 0 {
		return 0
	}
	return 20 - int(r)
}

// SetNice sets a thread's nice value.
func SetNice(tid, nice int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, nice) }

// NameToHandle gives the handle of a path, without following a last symbolic link.
func NameToHandle(path string) (FileHandle, error) {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		return FileHandle{}, err
	}
	return FileHandle{Type: h.Type(), Bytes: string(h.Bytes())}, nil
}

// Gettid is the number of the calling thread.
func Gettid() int { return unix.Gettid() }

// ExactTimers makes the sleeps of the calling thread as short as they were asked for; by
// default the kernel adds up to 50 us to each.
func ExactTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// Yield lets another thread run. It must stay a call: without its entry, at which the runtime
// can stop a goroutine, a loop that does nothing else keeps a garbage collection from beginning, and
// everybody waiting who allocates, for seconds.
//
//go:noinline
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// NoStopSignals keeps the program from getting a SIGCHLD for each thread that stops for its
// tracer. Ends of children are still told.
func NoStopSignals() {
	const noCldStop, size = 1, 8
	var a Sigaction
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), 0, uintptr(unsafe.Pointer(&a)), size, 0, 0)
	if e != 0 || a.Flags&noCldStop != 0 || a.Handler <= 1 { // 0 and 1: nobody is told anyway
		return
	}
	a.Flags |= noCldStop
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), uintptr(unsafe.Pointer(&a)), 0, size, 0, 0)
}

// AvoidCPU keeps a thread off the processor that the calling thread runs on. It says whether there is another.
func AvoidCPU(tid int) bool {
	var here uint32
	if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&here)), 0, 0); e != 0 {
		return false
	}
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return false
	}
	set.Clear(int(here))
	return set.Count() > 0 && unix.SchedSetaffinity(tid, &set) == nil
}

const (
	futexWaitPrivate = 128
	futexWakePrivate = 129
)

// FutexWait sleeps while a word has a value, until FutexWake.
func FutexWait(word *atomic.Uint32, while uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitPrivate, uintptr(while), 0, 0, 0)
}

// FutexWake wakes who sleeps for a word.
func FutexWake(word *atomic.Uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakePrivate, 1, 0, 0, 0)
}
