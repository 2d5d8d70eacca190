package rewind

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/pommelgym/pommel/internal/uapi"
)

// State is the outcome of a probe.
type State int

// A probe answers yes or no only when it could find out.
const (
	Inconclusive State = iota
	Yes
	No
)

func (s State) String() string { return [...]string{"inconclusive", "yes", "no"}[s] }

// Feature is one thing that the kernel must be able to do, found out by trying.
type Feature struct {
	Name     string
	State    State
	Reason   string // why it is not yes
	Required bool   // without it no tree can be rewound
}

// Probe tries every kernel interface that this package needs. It compares no versions.
func Probe() []Feature {
	if !supported {
		return []Feature{{Name: "architecture", State: No, Required: true, Reason: "there is no machine code for " + runtime.GOARCH}}
	}
	return []Feature{
		probeScan(), probeWriteProtect(), probePidfdGetfd(), probePtrace(), probeSuspendSeccomp(), probeSetTid(), probeFanotify(),
	}
}

// verdict turns the outcome of a call into that of a probe.
func verdict(name string, required bool, err error) Feature {
	f := Feature{Name: name, Required: required}
	if err == nil {
		f.State = Yes
		return f
	}
	var e uapi.Errno
	errors.As(err, &e)
	f.Reason = err.Error()
	switch e {
	case uapi.EPERM, uapi.EACCES:
		f.State, f.Reason = No, "not permitted: "+err.Error()
	case uapi.ENOSYS, uapi.EINVAL, uapi.ENOTTY, uapi.ENOTSUP, uapi.ENOENT:
		f.State = No
	default:
		f.State = Inconclusive
	}
	return f
}

func errno(e uapi.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// withPages gives f two mapped pages, of which the first was written to.
func withPages(f func(start, end uint64) error) error {
	b, err := uapi.MapAnon(2 * pageSize)
	if err != nil {
		return err
	}
	defer uapi.Unmap(b)
	b[0] = 1
	at := uapi.Addr(b)
	return f(at, at+2*pageSize)
}

func probeScan() Feature {
	return verdict("pagemap_scan", true, withPages(func(start, end uint64) error {
		pm, err := uapi.Open("/proc/self/pagemap", uapi.ORdonly)
		if err != nil {
			return err
		}
		defer uapi.Close(pm)
		var vec [4]uapi.PageRegion
		n, e := uapi.Scan(pm, &uapi.PmScanArg{Start: start, End: end, CategoryMask: uapi.PageIsPresent, ReturnMask: uapi.PageIsPresent}, vec[:])
		if e != 0 {
			return e
		}
		if n != 1 || vec[0].Start != start {
			return fmt.Errorf("a scan of one present page found %d regions", n)
		}
		return nil
	}))
}

// probeWriteProtect protects a page, writes to it and looks whether that shows.
func probeWriteProtect() Feature {
	return verdict("wp_async", true, withPages(func(start, end uint64) error {
		fd, e := uapi.Userfaultfd(uapi.OCloexec | uapi.ONonblock | uapi.UffdUserModeOnly)
		if e != 0 {
			return e
		}
		defer uapi.Close(fd)
		if e := uapi.UffdInit(fd, uapi.UffdFeatureWPAsync|uapi.UffdFeatureWPUnpopulated|uapi.UffdFeaturePagefaultFlagWP|uapi.UffdFeatureWPHugetlbfsShmem); e != 0 {
			return e
		}
		return errno(uapi.UffdRegister(fd, start, end))
	}))
}

func probePidfdGetfd() Feature {
	return verdict("pidfd_getfd", true, func() error {
		self, err := uapi.PidfdOpen(os.Getpid())
		if err != nil {
			return err
		}
		defer uapi.Close(self)
		fd, e := uapi.PidfdGetfd(self, self)
		if e != 0 {
			return e
		}
		uapi.Close(fd)
		return nil
	}())
}

// probeChild runs f on a process of our own that waits to be told to end.
func probeChild(f func(pid int) error) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	p, err := os.StartProcess("/bin/cat", []string{"cat"}, &os.ProcAttr{Files: []*os.File{r, w, w}})
	if err != nil {
		return err
	}
	t := startTracer()
	err = t.do(func() error { return f(p.Pid) })
	t.stop()
	_ = p.Kill()
	_, _ = p.Wait()
	return err
}

func probePtrace() Feature {
	return verdict("ptrace", true, probeChild(func(pid int) error {
		return errno(uapi.Ptrace(uapi.PtraceSeize, pid, 0))
	}))
}

func probeSuspendSeccomp() Feature {
	return verdict("ptrace_suspend_seccomp", false, probeChild(func(pid int) error {
		return errno(uapi.Ptrace(uapi.PtraceSeize, pid, uapi.PtraceOSuspendSeccomp))
	}))
}

// probeSetTid looks whether numbers of new tasks can be chosen. Nothing is written that was not there.
func probeSetTid() Feature {
	fd, err := uapi.Open(lastPidFile, uapi.OWronly)
	if err == nil {
		uapi.Close(fd)
	}
	return verdict("set_tid", false, err)
}

func probeFanotify() Feature {
	return verdict("fanotify_dfid_name", false, func() error {
		dir := "/dev/shm"
		if m, err := uapi.FsMagic(dir); err != nil || m != uapi.TmpfsMagic {
			return fmt.Errorf("%s is no tmpfs to try it on", dir)
		}
		fd, err := uapi.FanotifyOpen(dir)
		if err == nil {
			uapi.Close(fd)
		}
		return err
	}())
}
