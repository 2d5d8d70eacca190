package uapi

import "golang.org/x/sys/unix"

// Errno is the kernel's error number.
type Errno = unix.Errno

// WaitStatus is what wait4 tells about a process.
type WaitStatus = unix.WaitStatus

// Stat_t is the kernel's struct stat.
type Stat_t = unix.Stat_t

// Timespec and Itimerspec are the kernel's time structures.
type (
	Timespec   = unix.Timespec
	ItimerSpec = unix.ItimerSpec
)

// The error numbers that callers act on.
const (
	EPERM   = unix.EPERM
	ESRCH   = unix.ESRCH
	EINTR   = unix.EINTR
	ENOENT  = unix.ENOENT
	EAGAIN  = unix.EAGAIN
	EEXIST  = unix.EEXIST
	ECHILD  = unix.ECHILD
	EINVAL  = unix.EINVAL
	ENODEV  = unix.ENODEV
	EBADF   = unix.EBADF
	ENOSYS  = unix.ENOSYS
	EFAULT  = unix.EFAULT
	ENOTSUP = unix.ENOTSUP
	EACCES  = unix.EACCES
	ENOTTY  = unix.ENOTTY
)

// ptrace requests and options that are used here.
const (
	PtraceCont        = 7
	PtraceSinglestep  = 9
	PtraceDetach      = 17
	PtraceSetOptions  = 0x4200
	PtraceGetSigInfo  = 0x4202
	PtraceGetRegSet   = 0x4204
	PtraceSetRegSet   = 0x4205
	PtraceSeize       = 0x4206
	PtraceInterrupt   = 0x4207
	PtracePeekSigInfo = 0x4209
	PtraceGetSigMask  = 0x420a
	PtraceSetSigMask  = 0x420b
	PtraceGetRseqConf = 0x420f

	PtraceOTraceFork      = 1 << 1
	PtraceOTraceClone     = 1 << 3
	PtraceOSuspendSeccomp = 1 << 21

	PtraceEventFork  = 1
	PtraceEventClone = 3
	PtraceEventStop  = 128

	// PtracePeekSigInfoShared asks for the signals of the whole process.
	PtracePeekSigInfoShared = 1
)

// Register sets for PtraceGetRegSet.
const (
	NTPrStatus = 1
)

// PAGEMAP_SCAN (linux/fs.h): one ioctl that finds pages by category and, if asked,
// write-protects them again. The number holds the structure's size, so it is the
// same on every 64-bit architecture.
const (
	PagemapScan = 0xC0606610

	PageIsWPAllowed = 1 << 0
	PageIsWritten   = 1 << 1
	PageIsFile      = 1 << 2
	PageIsPresent   = 1 << 3
	PageIsSwapped   = 1 << 4
	PageIsPfnZero   = 1 << 5
	PageIsHuge      = 1 << 6

	PmScanWPMatching   = 1 << 0
	PmScanCheckWPAsync = 1 << 1
)

// PROCMAP_QUERY (linux/fs.h): one area of an open /proc/PID/maps, without the text.
const (
	ProcmapQuery = 0xC0686611

	ProcmapShared         = 0x08
	ProcmapCoveringOrNext = 0x10
)

// userfaultfd (linux/userfaultfd.h).
const (
	UffdAPI            = 0xAA
	UffdUserModeOnly   = 1
	UffdioAPI          = 0xC018AA3F
	UffdioRegister     = 0xC020AA00
	UffdioUnregister   = 0x8010AA01
	UffdRegisterModeWP = 1 << 1

	UffdFeaturePagefaultFlagWP  = 1 << 0
	UffdFeatureWPHugetlbfsShmem = 1 << 12
	UffdFeatureWPUnpopulated    = 1 << 13
	UffdFeatureWPAsync          = 1 << 15
)

// Numbers of system calls that are injected into a traced process, and prctl options.
const (
	SysRead             = unix.SYS_READ
	SysClose            = unix.SYS_CLOSE
	SysMmap             = unix.SYS_MMAP
	SysMprotect         = unix.SYS_MPROTECT
	SysMunmap           = unix.SYS_MUNMAP
	SysMremap           = unix.SYS_MREMAP
	SysMadvise          = unix.SYS_MADVISE
	SysMseal            = unix.SYS_MSEAL
	SysBrk              = unix.SYS_BRK
	SysRtSigaction      = unix.SYS_RT_SIGACTION
	SysRtSigtimedwait   = unix.SYS_RT_SIGTIMEDWAIT
	SysRtSigqueueinfo   = unix.SYS_RT_SIGQUEUEINFO
	SysRtTgsigqueueinfo = unix.SYS_RT_TGSIGQUEUEINFO
	SysGetitimer        = unix.SYS_GETITIMER
	SysSetitimer        = unix.SYS_SETITIMER
	SysTimerCreate      = unix.SYS_TIMER_CREATE
	SysTimerGettime     = unix.SYS_TIMER_GETTIME
	SysTimerSettime     = unix.SYS_TIMER_SETTIME
	SysTimerDelete      = unix.SYS_TIMER_DELETE
	SysFcntl            = unix.SYS_FCNTL
	SysDup3             = unix.SYS_DUP3
	SysSocketpair       = unix.SYS_SOCKETPAIR
	SysRecvmsg          = unix.SYS_RECVMSG
	SysMemfdCreate      = unix.SYS_MEMFD_CREATE
	SysUserfaultfd      = unix.SYS_USERFAULTFD
	SysEpollCtl         = unix.SYS_EPOLL_CTL
	SysSignalfd4        = unix.SYS_SIGNALFD4
	SysInotifyRmWatch   = unix.SYS_INOTIFY_RM_WATCH
	SysPrctl            = unix.SYS_PRCTL
	SysGetsid           = unix.SYS_GETSID
	SysGetpgid          = unix.SYS_GETPGID
	SysSetsid           = unix.SYS_SETSID
	SysSetpgid          = unix.SYS_SETPGID
	SysSigaltstack      = unix.SYS_SIGALTSTACK
	SysSetTidAddress    = unix.SYS_SET_TID_ADDRESS
	SysSetRobustList    = unix.SYS_SET_ROBUST_LIST
	SysRseq             = unix.SYS_RSEQ
	SysClone            = unix.SYS_CLONE
	SysClone3           = unix.SYS_CLONE3
	SysExit             = unix.SYS_EXIT
	SysWait4            = unix.SYS_WAIT4
	SysFchdir           = unix.SYS_FCHDIR
	SysUmask            = unix.SYS_UMASK

	PrSetPdeathsig          = 1
	PrGetPdeathsig          = 2
	PrSetName               = 15
	PrSetMM                 = 35
	PrSetMMMap              = 14
	PrGetTidAddress         = 40
	PrTimerCreateRestoreIDs = 77

	MadvDontneed = 4
)

// KcmpFile compares two descriptors for being the same open file.
const KcmpFile = 0

// TimerfdIocSetTicks sets the number of expirations a timerfd holds.
const TimerfdIocSetTicks = 0x40085400

// Wait options.
const (
	WAll     = 0x40000000
	WNoHang  = 1
	WNoReap  = 0x01000000
	WExited  = 4
	PidfdAll = 3
)

// fionread asks for the number of unread bytes; x/sys/unix has it under another name on each system.
const fionread = 0x541B
