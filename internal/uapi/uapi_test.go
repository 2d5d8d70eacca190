package uapi

import (
	"testing"
	"unsafe"
)

// TestSizes holds the structures against the kernel's, which the ioctl numbers repeat.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"pm_scan_arg", unsafe.Sizeof(PmScanArg{}), 96},
		{"page_region", unsafe.Sizeof(PageRegion{}), 24},
		{"uffdio_api", unsafe.Sizeof(UffdioAPIArg{}), 24},
		{"uffdio_register", unsafe.Sizeof(UffdioRegisterArg{}), 32},
		{"uffdio_range", unsafe.Sizeof(UffdioRange{}), 16},
		{"ptrace_rseq_configuration", unsafe.Sizeof(RseqConf{}), 24},
		{"ptrace_peeksiginfo_args", unsafe.Sizeof(PeekSigInfoArg{}), 16},
		{"siginfo", unsafe.Sizeof(SigInfo{}), 128},
		{"sigaction", unsafe.Sizeof(Sigaction{}), 32},
		{"itimerval", unsafe.Sizeof(Itimerval{}), 32},
		{"stack_t", unsafe.Sizeof(StackT{}), 24},
		{"sigevent", unsafe.Sizeof(Sigevent{}), 64},
		{"clone_args", unsafe.Sizeof(CloneArgs{}), 88},
		{"prctl_mm_map", unsafe.Sizeof(MMMap{}), 104},
		{"msghdr", unsafe.Sizeof(Msghdr{}), 56},
		{"user_regs_struct", unsafe.Sizeof(Regs{}), 216},
		{"seccomp_notif", unsafe.Sizeof(SeccompNotif{}), 80},
		{"seccomp_notif_resp", unsafe.Sizeof(SeccompResp{}), 24},
	} {
		if c.got != c.want {
			t.Errorf("%s has %d bytes, the kernel's has %d", c.name, c.got, c.want)
		}
	}
}

// TestIoctlNumbers: a number of _IOWR('x', n, size) holds direction, size, letter and n.
func TestIoctlNumbers(t *testing.T) {
	t.Parallel()
	num := func(dir, typ, nr, size uintptr) uintptr { return dir<<30 | size<<16 | typ<<8 | nr }
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"PAGEMAP_SCAN", PagemapScan, num(3, 'f', 16, unsafe.Sizeof(PmScanArg{}))},
		{"UFFDIO_API", UffdioAPI, num(3, 0xAA, 0x3F, unsafe.Sizeof(UffdioAPIArg{}))},
		{"UFFDIO_REGISTER", UffdioRegister, num(3, 0xAA, 0, unsafe.Sizeof(UffdioRegisterArg{}))},
		{"UFFDIO_UNREGISTER", UffdioUnregister, num(2, 0xAA, 1, unsafe.Sizeof(UffdioRange{}))},
		{"TFD_IOC_SET_TICKS", TimerfdIocSetTicks, num(1, 'T', 0, 8)},
	} {
		if c.got != c.want {
			t.Errorf("%s is %#x, want %#x", c.name, c.got, c.want)
		}
	}
}

// TestFanotifyNext never reads past what it was given.
func FuzzFanotifyNext(f *testing.F) {
	f.Add(make([]byte, 24))
	f.Add([]byte{56, 0, 0, 0, 3, 0, 24, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 'a', 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for i := 0; ; i++ {
			ev, rest, ok := FanotifyNext(b)
			if !ok {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("no progress")
			}
			if ev.Parsed && len(ev.Dir)+len(ev.Name) > len(b) {
				t.Fatal("event is longer than its buffer")
			}
			b = rest
		}
	})
}
