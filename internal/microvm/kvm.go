package microvm

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sys"
)

// kvmDevice is the kernel's door to the processor's own virtualisation.
const kvmDevice = "/dev/kvm"

// Hardware says why machines cannot run on the processor itself, or nil. That the device is
// there is not enough: in some virtual machines it is, and what is started on it is emulated.
// A host is tried once: each world that starts asks, and where the loop is emulated it takes seconds.
func Hardware() error { return triedHardware() }

var triedHardware = sync.OnceValue(func() error { return hardware("/proc/cpuinfo", kvmDevice, sys.TryKVM) })

// hardwareLimit is for a loop of milliseconds, on a host that may be busy.
const hardwareLimit = 3 * time.Second

func hardware(cpuinfo, device string, try func(device string, limit time.Duration) error) error {
	ok, err := virtualises(cpuinfo)
	if err != nil {
		return err
	}
	if !ok {
		return fault.New(fault.Unsupported, "the processor offers no virtualisation (vmx or svm in %s)", cpuinfo)
	}
	if err := try(device, hardwareLimit); err != nil {
		return fault.New(fault.Unsupported, "no hardware virtualisation: %s: %v", device, err)
	}
	return nil
}

// deviceGroups are the groups that a process needs to be in to use a device.
func deviceGroups(device string) []int {
	info, err := os.Stat(device)
	if err != nil {
		return nil // who opens it is told
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().Perm()&0o006 != 0o006 {
		return []int{int(st.Gid)}
	}
	return nil
}

func virtualises(cpuinfo string) (bool, error) {
	f, err := os.Open(cpuinfo)
	if err != nil {
		return false, fmt.Errorf("look at the processor: %w", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if name, flags, ok := strings.Cut(sc.Text(), ":"); ok && strings.TrimSpace(name) == "flags" {
			list := strings.Fields(flags)
			return slices.Contains(list, "vmx") || slices.Contains(list, "svm"), nil
		}
	}
	return false, sc.Err()
}
