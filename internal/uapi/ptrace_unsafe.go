package uapi

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func ptrace(req, tid int, addr, data uintptr) Errno {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(req), uintptr(tid), addr, data, 0, 0)
	return e
}

// Ptrace makes a request that carries no structure. It answers 0 when it worked.
func Ptrace(req, tid int, data uint64) Errno { return ptrace(req, tid, 0, uintptr(data)) }

// GetRegs reads the general registers of a stopped thread.
func GetRegs(tid int, r *Regs) Errno {
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(r)), Len: uint64(unsafe.Sizeof(*r))}
	return ptrace(PtraceGetRegSet, tid, NTPrStatus, uintptr(unsafe.Pointer(&iov)))
}

// SetRegs writes the general registers of a stopped thread.
func SetRegs(tid int, r *Regs) Errno {
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(r)), Len: uint64(unsafe.Sizeof(*r))}
	return ptrace(PtraceSetRegSet, tid, NTPrStatus, uintptr(unsafe.Pointer(&iov)))
}

// GetXState reads the vector state into b and says how long it is.
func GetXState(tid int, b []byte) (int, Errno) {
	iov := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	e := ptrace(PtraceGetRegSet, tid, NTXState, uintptr(unsafe.Pointer(&iov)))
	return int(iov.Len), e
}

// SetXState writes the vector state.
func SetXState(tid int, b []byte) Errno {
	iov := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	return ptrace(PtraceSetRegSet, tid, NTXState, uintptr(unsafe.Pointer(&iov)))
}

// GetSigMask reads the mask of blocked signals; inside ppoll and its like it is the mask that will be restored.
func GetSigMask(tid int) (mask uint64, e Errno) {
	e = ptrace(PtraceGetSigMask, tid, 8, uintptr(unsafe.Pointer(&mask)))
	return mask, e
}

// SetSigMask sets the mask of blocked signals.
func SetSigMask(tid int, mask uint64) Errno {
	return ptrace(PtraceSetSigMask, tid, 8, uintptr(unsafe.Pointer(&mask)))
}

// PeekSigInfo copies pending signals without taking them; it answers how many.
func PeekSigInfo(tid int, shared bool, out []SigInfo) int {
	a := PeekSigInfoArg{Nr: int32(len(out))}
	if shared {
		a.Flags = PtracePeekSigInfoShared
	}
	n, _, e := unix.RawSyscall6(unix.SYS_PTRACE, PtracePeekSigInfo, uintptr(tid),
		uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&out[0])), 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// GetRseq reads where a thread has registered its restartable sequence.
func GetRseq(tid int) (c RseqConf, e Errno) {
	_, _, e = unix.RawSyscall6(unix.SYS_PTRACE, PtraceGetRseqConf, uintptr(tid),
		unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)), 0, 0)
	return c, e
}

// Wait asks for the state of one thread without waiting. id 0 means that nothing has happened.
func Wait(tid int) (id int, status WaitStatus, e Errno) {
	var st uint32
	r, _, e := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(tid), uintptr(unsafe.Pointer(&st)), WAll|WNoHang, 0, 0, 0)
	return int(int32(r)), WaitStatus(st), e
}

// RobustList reads where a thread keeps its list of held robust futexes.
func RobustList(tid int) (head, length uint64, e Errno) {
	_, _, e = unix.RawSyscall(unix.SYS_GET_ROBUST_LIST, uintptr(tid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&length)))
	return head, length, e
}
