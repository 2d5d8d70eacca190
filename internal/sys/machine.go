package sys

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// What process 1 of a machine needs of the kernel.

// MountNew mounts a file system. flags are none for it.
func MountNew(device, at, kind string, readOnly bool) error {
	var flags uintptr
	if readOnly {
		flags = unix.MS_RDONLY
	}
	if err := unix.Mount(device, at, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", device, at, err)
	}
	return nil
}

// SwitchRoot makes the mount at path the root, and takes the mounts at these folders along.
// The first root stays below it: it cannot be unmounted.
func SwitchRoot(path string, along ...string) error {
	for _, dir := range along {
		if err := unix.Mount(dir, path+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("take %s along: %w", dir, err)
		}
	}
	if err := unix.Chdir(path); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	return unix.Chdir("/")
}

// LoadModule puts a module into the kernel.
func LoadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("load module: %w", err)
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
		return fmt.Errorf("load module %s: %w", path, err)
	}
	return nil
}

// InterfaceUp gives a network interface its address and brings it up.
func InterfaceUp(name string, addr netip.Prefix) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	defer unix.Close(fd)
	set := func(op uint, fill func(*unix.Ifreq) error) error {
		req, err := unix.NewIfreq(name)
		if err == nil {
			err = fill(req)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, op, req)
		}
		if err != nil {
			return fmt.Errorf("bring up %s: %w", name, err)
		}
		return nil
	}
	mask := ^uint32(0) << (32 - addr.Bits())
	if err := set(unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(addr.Addr().AsSlice()) }); err != nil {
		return err
	}
	if err := set(unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error {
		return r.SetInet4Addr([]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)})
	}); err != nil {
		return err
	}
	return set(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil })
}

// PowerOff ends a machine at once.
func PowerOff() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) }

// MemoryFile makes a file in memory that children may open by their descriptor of it.
func MemoryFile(name string, size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(size); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("make file in memory: %w", err)
	}
	return f, nil
}

// Seal keeps everybody from changing a file in memory for good. Whoever maps it for
// themselves may still write to their own copy.
func Seal(f *os.File) error {
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("seal file in memory: %w", err)
	}
	return nil
}

// writeSparse leaves pages out that hold nothing but zeroes.
func writeSparse(to *os.File, b []byte, at int64) error {
	const page = 4096
	var zero [page]byte
	for len(b) > 0 {
		n := 0
		for n < len(b) && !bytes.Equal(b[n:min(n+page, len(b))], zero[:min(page, len(b)-n)]) {
			n = min(n+page, len(b))
		}
		if n > 0 {
			if _, err := to.WriteAt(b[:n], at); err != nil {
				return err
			}
		} else {
			n = min(page, len(b))
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// CopySparse copies a file and leaves out what is a hole in it, or nothing but zeroes.
func CopySparse(to, from *os.File, size int64) error {
	buf := make([]byte, 1<<20)
	for pos := int64(0); pos < size; {
		data, err := unix.Seek(int(from.Fd()), pos, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return nil // nothing but a hole from here on
		}
		if err != nil {
			return fmt.Errorf("copy file: %w", err)
		}
		hole, err := unix.Seek(int(from.Fd()), data, unix.SEEK_HOLE)
		if err != nil {
			return fmt.Errorf("copy file: %w", err)
		}
		for pos = data; pos < hole; {
			n, err := from.ReadAt(buf[:min(int64(len(buf)), hole-pos)], pos)
			if n == 0 && err != nil {
				return fmt.Errorf("copy file: %w", err)
			}
			if err := writeSparse(to, buf[:n], pos); err != nil {
				return fmt.Errorf("copy file: %w", err)
			}
			pos += int64(n)
		}
	}
	return nil
}
