package microvm

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/sys"
	"github.com/pommelgym/pommel/internal/uapi"
)

// Emulator is the program.
const Emulator = "/usr/bin/qemu-system-x86_64"

// User runs the emulator.
var User = sandbox.User{Name: "machine", UID: 62004, Home: "/home/machine"}

// Name is the emulator's among a world's processes.
const Name = "machine"

// Overhead is memory that an emulator takes beside the guest's: its code, devices, and the
// programs of the guest as it has translated them.
const Overhead = 320 << 20

// Places of the files in the sandbox.
const (
	kernelAt    = "/machine/vmlinux"
	initramfsAt = "/machine/initramfs"
	rootAt      = "/machine/root.erofs"
	worldAt     = "/machine/world.erofs"
)

// Descriptors that the emulator finds open.
const (
	qmpFd    = 3
	memoryFd = 4
	portFd   = 5 // and those after it
)

// argv is the emulator's command line. A machine that takes over the state of a template
// gets its memory as a copy, and waits.
func (q qemu) argv(t *Template, fresh bool) []string {
	share := "on"
	if !fresh {
		share = "off"
	}
	memory := strconv.FormatInt(t.Spec.MemoryBytes>>20, 10)
	a := []string{
		Emulator, "-M", "microvm,memory-backend=ram", "-accel", q.accelerator(), "-cpu", q.processor(), "-smp", "1", "-m", memory,
		"-object", fmt.Sprintf("memory-backend-file,id=ram,size=%sM,mem-path=/proc/self/fd/%d,share=%s", memory, memoryFd, share),
		"-nodefaults", "-no-user-config", "-display", "none",
		// A guest that ends, or brings its kernel down, leaves a machine that can be put back.
		"-no-reboot", "-action", "shutdown=pause,panic=pause",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-kernel", kernelAt, "-initrd", initramfsAt, "-append", q.kernelArgs(t),
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", fmt.Sprintf("socket,id=qmp,fd=%d", qmpFd), "-mon", "chardev=qmp,mode=control",
		"-device", "virtio-serial-device",
	}
	for i := range wire.Streams + 1 {
		a = append(a, "-chardev", fmt.Sprintf("socket,id=port%d,fd=%d", i, portFd+i),
			"-device", fmt.Sprintf("virtserialport,chardev=port%d,nr=%d,name=pommel%d", i, i+1, i))
	}
	// The guest is alone on its network; nothing but the forwarded ports leads into it, and
	// nothing out.
	net := "user,id=net,restrict=on,ipv6=off"
	for _, p := range t.Spec.Ports {
		net += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-127.0.0.1:%d", p, p)
	}
	a = append(a, "-netdev", net, "-device", "virtio-net-device,netdev=net,mac=52:54:00:12:34:56")
	for _, d := range []struct{ id, file string }{{"root", rootAt}, {"world", worldAt}} {
		a = append(a, "-drive", fmt.Sprintf("if=none,id=%s,file=%s,format=raw,readonly=on", d.id, d.file),
			"-device", fmt.Sprintf("virtio-blk-device,drive=%s", d.id))
	}
	if !fresh {
		a = append(a, "-incoming", "defer")
	}
	return a
}

// accelerator is how guests are run: translated, as far as there is room for it, or by the processor.
func (q qemu) accelerator() string {
	if q.kvm {
		return "kvm"
	}
	return "tcg,tb-size=128"
}

// processor is all that the emulator can do, or all that the host's processor can: copies run where
// their template did.
func (q qemu) processor() string {
	if q.kvm {
		return "host"
	}
	return "max"
}

// commonArgs are the kernel's in all machines.
const commonArgs = "console=ttyS0 quiet panic=-1 nokaslr random.trust_cpu=on mitigations=off"

// kernelArgs tell an emulated kernel how fast the processor's counter runs: what it measures itself
// while the host is busy can be so wrong that it never gets ready. On KVM the host tells it.
func (q qemu) kernelArgs(t *Template) string {
	if q.kvm {
		return commonArgs
	}
	return fmt.Sprintf("%s tsc_early_khz=%d lpj=4000000 no_timer_check", commonArgs, t.khz)
}

// process is QEMU's. It may read programs and its files, and listen where the browser knocks.
func (q qemu) process(t *Template, fresh bool) sandbox.Process {
	p := machineProcess(q.argv(t, fresh))
	p.Landlock.BindTCP = t.Spec.Ports
	if q.kvm {
		lendKVM(&p)
	}
	return p
}

// machineProcess is what those that run machines have in common.
func machineProcess(argv []string) sandbox.Process {
	return sandbox.Process{
		Name: Name, Argv: argv, UID: User.UID, Dir: User.Home, RealClock: true,
		Env: []string{"PATH=/usr/bin:/bin", "HOME=" + User.Home, "LANG=C.UTF-8", "TZ=UTC"},
		Landlock: &sys.Landlock{
			Read:  []string{"/usr", "/bin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/machine"},
			Write: []string{"/dev/null"},
		},
	}
}

func lendKVM(p *sandbox.Process) {
	p.Groups = deviceGroups(kvmDevice)
	p.Landlock.Write = append(p.Landlock.Write, kvmDevice)
}

// measureFor is how long the processor's counter is looked at.
const measureFor = 20 * time.Millisecond

// ticksPerMillisecond is how fast the processor's counter runs.
func ticksPerMillisecond() uint64 {
	began, first := moment()
	time.Sleep(measureFor)
	ended, last := moment()
	return (last - first) * uint64(time.Millisecond) / uint64(ended.Sub(began))
}

// moment reads both clocks close together: of several tries the quickest.
func moment() (at time.Time, ticks uint64) {
	best := time.Hour
	for range 20 {
		before := time.Now()
		n := uapi.Ticks()
		if took := time.Since(before); took < best {
			best, at, ticks = took, before, n
		}
	}
	return at, ticks
}
