package uapi

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Scan runs PAGEMAP_SCAN on an open /proc/PID/pagemap. Regions found go to vec (nil: none wanted).
func Scan(pagemap int, a *PmScanArg, vec []PageRegion) (int, Errno) {
	a.Size = uint64(unsafe.Sizeof(*a))
	if len(vec) > 0 {
		a.Vec, a.VecLen = uint64(uintptr(unsafe.Pointer(&vec[0]))), uint64(len(vec))
	} else {
		a.Vec, a.VecLen, a.ReturnMask = 0, 0, 0
	}
	n, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(pagemap), PagemapScan, uintptr(unsafe.Pointer(a)))
	return int(n), e
}

// QueryMap asks an open /proc/PID/maps for the first area that ends above addr. With name
// given, the area's name goes there, ended by a zero; without, the kernel is spared finding it.
func QueryMap(maps int, a *ProcmapArg, addr uint64, name []byte) Errno {
	*a = ProcmapArg{Size: uint64(unsafe.Sizeof(*a)), Flags: ProcmapCoveringOrNext, Addr: addr}
	if len(name) > 0 {
		a.NameAddr, a.NameSize = uint64(uintptr(unsafe.Pointer(&name[0]))), uint32(len(name))
	}
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(maps), ProcmapQuery, uintptr(unsafe.Pointer(a)))
	runtime.KeepAlive(name)
	return e
}

// UffdInit agrees on the features of a userfaultfd.
func UffdInit(fd int, features uint64) Errno {
	a := UffdioAPIArg{API: UffdAPI, Features: features}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), UffdioAPI, uintptr(unsafe.Pointer(&a)))
	return e
}

// UffdRegister puts a range under write protection tracking.
func UffdRegister(fd int, start, end uint64) Errno {
	a := UffdioRegisterArg{Start: start, Len: end - start, Mode: UffdRegisterModeWP}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), UffdioRegister, uintptr(unsafe.Pointer(&a)))
	return e
}

// Userfaultfd opens one for the calling process (used for probing).
func Userfaultfd(flags int) (int, Errno) {
	r, _, e := unix.RawSyscall(unix.SYS_USERFAULTFD, uintptr(flags), 0, 0)
	return int(r), e
}

// WriteVM is process_vm_writev; remote addresses are those of process pid.
func WriteVM(pid int, local, remote []Iovec) (int, Errno) {
	n, _, e := unix.Syscall6(unix.SYS_PROCESS_VM_WRITEV, uintptr(pid),
		uintptr(unsafe.Pointer(&local[0])), uintptr(len(local)),
		uintptr(unsafe.Pointer(&remote[0])), uintptr(len(remote)), 0)
	return int(n), e
}

// Addr is the address of a byte slice that lies in memory outside the Go heap.
func Addr(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// MapShared maps length bytes of fd for reading and, if asked, writing.
func MapShared(fd int, length int, write bool) ([]byte, error) {
	prot := unix.PROT_READ
	if write {
		prot |= unix.PROT_WRITE
	}
	return unix.Mmap(fd, 0, length, prot, unix.MAP_SHARED|unix.MAP_NORESERVE)
}

// MapAnon maps private anonymous memory.
func MapAnon(length int) ([]byte, error) {
	return unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

// Unmap ends a mapping made by this package.
func Unmap(b []byte) error { return unix.Munmap(b) }

// Bytes is the memory of a value of fixed layout (one of this package's structures).
func Bytes[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// View lays a slice of n structures over memory; b must be aligned and long enough.
func View[T any](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
