package microvm

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
)

// kvmDevice is the kernel's door to the processor's own virtualisation.
const kvmDevice = "/dev/kvm"

// Hardware says why machines cannot run on the processor itself, or nil. That the device is
// there is not enough: in some virtual machines it is, and what is started on it never runs.
func Hardware() error { return hardware("/proc/cpuinfo", kvmDevice) }

func hardware(cpuinfo, device string) error {
	ok, err := virtualises(cpuinfo)
	if err != nil {
		return err
	}
	if !ok {
		return fault.New(fault.Unsupported, "the processor offers no virtualisation (vmx or svm in %s)", cpuinfo)
	}
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return fault.New(fault.Unsupported, "no hardware virtualisation: %v", err)
	}
	return f.Close()
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
