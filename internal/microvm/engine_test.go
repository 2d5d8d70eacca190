package microvm

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/fault"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	none := errors.New("no hardware")
	for _, c := range []struct {
		hardware          error
		firecracker, want string
		engine            Engine
	}{
		{none, "", "", Emulated},
		{none, "/opt/firecracker", "", Emulated},
		{nil, "", "", KVM},
		{nil, "/opt/firecracker", "", Firecracker},
		{nil, "/opt/firecracker", "qemu-tcg", Emulated},
		{nil, "/opt/firecracker", "qemu-kvm", KVM},
		{none, "", "firecracker", Firecracker}, // whose Available then says what is missing
	} {
		env := map[string]string{FirecrackerVariable: c.firecracker, EngineVariable: c.want}
		got, err := choose(func(k string) string { return env[k] }, func() error { return c.hardware })
		if err != nil || got != c.engine {
			t.Errorf("%+v: %s %v", c, got, err)
		}
		if inPlace := got.InPlace(); inPlace != (got == Emulated) {
			t.Errorf("%s is put back in place: %v", got, inPlace)
		}
	}
	_, err := choose(func(string) string { return "bochs" }, func() error { return nil })
	if fault.KindOf(err) != fault.InvalidArgument || !strings.Contains(fault.HintOf(err), "qemu-kvm") {
		t.Errorf("got %v", err)
	}
}

func TestSupplied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{"/bin/sh": true, "": false, dir: false, text: false, text + "2": false} {
		err := supplied(path)
		if ok != (err == nil) || err != nil && (fault.KindOf(err) != fault.Unsupported || !strings.Contains(fault.HintOf(err), FirecrackerVariable)) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// One machine for both: only how the guest is run differs, and what an emulated one is told of time.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	tmpl := &Template{Spec: Spec{MemoryBytes: 384 << 20, Ports: []uint16{8080}}, khz: 2_600_123}
	emulated, kvm := qemu{}.argv(tmpl, false), qemu{kvm: true}.argv(tmpl, false)
	after := func(argv []string, flag string) string {
		i := slices.Index(argv, flag)
		if i < 0 || i+1 == len(argv) {
			t.Fatalf("no %s among %q", flag, argv)
		}
		return argv[i+1]
	}
	if a, c := after(kvm, "-accel"), after(kvm, "-cpu"); a != "kvm" || c != "host" {
		t.Errorf("-accel %s -cpu %s", a, c)
	}
	if a, c := after(emulated, "-accel"), after(emulated, "-cpu"); a != "tcg,tb-size=128" || c != "max" {
		t.Errorf("-accel %s -cpu %s", a, c)
	}
	// Boot calibration: an emulated guest that measures the counter itself may hang on a busy host.
	if args := after(emulated, "-append"); !strings.Contains(args, "tsc_early_khz=2600123 lpj=4000000 no_timer_check") {
		t.Errorf("kernel: %s", args)
	}
	if args := after(kvm, "-append"); strings.Contains(args, "tsc_early_khz") || !strings.Contains(args, commonArgs) {
		t.Errorf("kernel: %s", args)
	}
	for i := range emulated {
		differs := i > 0 && slices.Contains([]string{"-accel", "-cpu", "-append"}, emulated[i-1])
		if emulated[i] != kvm[i] && !differs {
			t.Errorf("%s and %s differ", emulated[i], kvm[i])
		}
	}
	if p := (qemu{}).process(tmpl, false); slices.Contains(p.Landlock.Write, kvmDevice) || len(p.Groups) > 0 {
		t.Errorf("an emulator is lent %s", kvmDevice)
	}
	if p := (qemu{kvm: true}).process(tmpl, false); !slices.Contains(p.Landlock.Write, kvmDevice) {
		t.Errorf("QEMU is not lent %s", kvmDevice)
	}
}

// A processor's counter that is measured twice has one speed, on a busy host too: copies count their
// time by it.
func TestTicks(t *testing.T) {
	t.Parallel()
	a, b := ticksPerMillisecond(), ticksPerMillisecond()
	if a == 0 || max(a, b)-min(a, b) > a/100 {
		t.Errorf("%d and %d ticks a millisecond", a, b)
	}
}

func TestDeviceGroups(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(path, nil, 0o660); err != nil {
		t.Fatal(err)
	}
	if got := deviceGroups(path); !slices.Equal(got, []int{os.Getgid()}) {
		t.Errorf("groups %v", got)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := deviceGroups(path); got != nil {
		t.Errorf("groups %v", got)
	}
	if got := deviceGroups(path + "2"); got != nil {
		t.Errorf("groups %v", got)
	}
}
