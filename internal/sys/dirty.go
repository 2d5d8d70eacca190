package sys

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel needs to tell which pages a process has written since it was asked last.
// These are probed one by one: versions say little, kernels are configured.
const (
	ioctlPagemapScan = 0xC0606610
	ioctlUffdAPI     = 0xC018AA3F
	uffdUserModeOnly = 1
	uffdWPShared     = 1 << 12
	uffdWPUnmapped   = 1 << 13
	uffdWPAsync      = 1 << 15
)

type pmScanArg struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages   uint64
	categoryInverted, categoryMask, categoryAnyof, returnMask uint64
}

type uffdAPI struct {
	api, features, ioctls uint64
}

// ProbePagemapScan says why the kernel cannot list the pages that a process uses, or nil.
func ProbePagemapScan() error {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return fmt.Errorf("pagemap: %w", err)
	}
	defer f.Close()
	page := make([]byte, os.Getpagesize()*2)
	start := (uint64(uintptr(unsafe.Pointer(&page[0]))) + uint64(os.Getpagesize()) - 1) &^ uint64(os.Getpagesize()-1)
	const present = 1 << 3
	arg := pmScanArg{size: uint64(unsafe.Sizeof(pmScanArg{})), start: start, end: start + uint64(os.Getpagesize()), categoryMask: present, returnMask: present}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), ioctlPagemapScan, uintptr(unsafe.Pointer(&arg)))
	runtime.KeepAlive(page)
	if errno != 0 {
		return fmt.Errorf("ioctl PAGEMAP_SCAN: %w", errno)
	}
	return nil
}

// ProbeWriteTracking says why the kernel cannot note writes without stopping the writer, or nil.
func ProbeWriteTracking() error {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return fmt.Errorf("userfaultfd: %w", errno)
	}
	defer unix.Close(int(fd))
	arg := uffdAPI{api: 0xAA, features: uffdWPAsync | uffdWPUnmapped | uffdWPShared}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, ioctlUffdAPI, uintptr(unsafe.Pointer(&arg))); errno != 0 {
		return fmt.Errorf("userfaultfd write protection: %w", errno)
	}
	return nil
}
