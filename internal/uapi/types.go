package uapi

// PmScanArg is struct pm_scan_arg.
type PmScanArg struct {
	Size, Flags, Start, End, WalkEnd, Vec, VecLen, MaxPages   uint64
	CategoryInverted, CategoryMask, CategoryAnyof, ReturnMask uint64
}

// PageRegion is struct page_region: a run of pages with equal categories.
type PageRegion struct{ Start, End, Categories uint64 }

// ProcmapArg is struct procmap_query. The lowest bits of VMAFlags are those of a protection.
type ProcmapArg struct {
	Size, Flags, Addr                           uint64
	Start, End, VMAFlags, PageSize, Offset, Ino uint64
	Major, Minor, NameSize, BuildIDSize         uint32
	NameAddr, BuildIDAddr                       uint64
}

// UffdioAPIArg is struct uffdio_api.
type UffdioAPIArg struct{ API, Features, Ioctls uint64 }

// UffdioRegisterArg is struct uffdio_register.
type UffdioRegisterArg struct{ Start, Len, Mode, Ioctls uint64 }

// UffdioRange is struct uffdio_range.
type UffdioRange struct{ Start, Len uint64 }

// RseqConf is struct ptrace_rseq_configuration.
type RseqConf struct {
	Ptr            uint64
	Size, Sig      uint32
	Flags, padding uint32
}

// PeekSigInfoArg is struct ptrace_peeksiginfo_args.
type PeekSigInfoArg struct {
	Off   uint64
	Flags uint32
	Nr    int32
}

// SigInfo is siginfo_t, of which only the head is looked at.
type SigInfo struct {
	Signo, Errno, Code int32
	_                  int32
	Rest               [112]byte
}

// Sigaction is the kernel's struct sigaction (not the C library's).
type Sigaction struct{ Handler, Flags, Restorer, Mask uint64 }

// Itimerval is struct itimerval: interval and value, seconds and microseconds.
type Itimerval struct{ IntervalSec, IntervalUsec, ValueSec, ValueUsec int64 }

// StackT is stack_t of sigaltstack.
type StackT struct {
	SP    uint64
	Flags int32
	_     int32
	Size  uint64
}

// Sigevent is struct sigevent; Tid and the function pointers share one union.
type Sigevent struct {
	Value  uint64
	Signo  int32
	Notify int32
	Tid    int32
	_      [44]byte
}

// CloneArgs is struct clone_args, version 2 (88 bytes).
type CloneArgs struct {
	Flags, Pidfd, ChildTid, ParentTid, ExitSignal, Stack, StackSize, TLS, SetTid, SetTidSize, Cgroup uint64
}

// MMMap is struct prctl_mm_map.
type MMMap struct {
	StartCode, EndCode, StartData, EndData, StartBrk, Brk, StartStack uint64
	ArgStart, ArgEnd, EnvStart, EnvEnd, Auxv                          uint64
	AuxvSize                                                          uint32
	ExeFd                                                             int32
}

// Msghdr and Iovec are the kernel's, as 64-bit architectures lay them out.
type Msghdr struct {
	Name       uint64
	Namelen    uint32
	_          uint32
	Iov        uint64
	Iovlen     uint64
	Control    uint64
	Controllen uint64
	Flags      int32
	_          int32
}

// Iovec is struct iovec with addresses of another process.
type Iovec struct{ Base, Len uint64 }

// FileHandle is what name_to_handle_at gives: a name for an inode that survives renames.
type FileHandle struct {
	Type  int32
	Bytes string
}

// FanEvent is one fanotify event: the folder's handle and the name in it.
type FanEvent struct {
	Mask   uint64
	Dir    []byte
	Name   []byte
	Parsed bool
}
