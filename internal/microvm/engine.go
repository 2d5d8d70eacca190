package microvm

import (
	"context"
	"net"
	"os"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// Engine is what runs machines. All run the same images.
type Engine string

// Engines.
const (
	// Emulated is QEMU as an ordinary process: all of a machine is in its memory, so it can be put
	// back in place. It needs nothing of the host.
	Emulated Engine = "qemu-tcg"
	// KVM is QEMU with the processor running the guest itself. Part of a machine lies in the host's
	// kernel, so a reset is another copy.
	KVM Engine = "qemu-kvm"
	// Firecracker is a program that the operator supplies; like KVM, with less around the guest.
	Firecracker Engine = "firecracker"
)

// FirecrackerVariable names the program, EngineVariable an engine that is to be used in the place of
// the one that suits the host.
const (
	FirecrackerVariable = "POMMEL_FIRECRACKER"
	EngineVariable      = "POMMEL_ENGINE"
)

// InPlace says whether machines of this engine can be put back in place.
func (e Engine) InPlace() bool { return e == Emulated || e == "" }

// Chosen is the engine that runs guests fastest on this host, or the one that the operator wants.
func Chosen() (Engine, error) { return choose(os.Getenv, Hardware) }

func choose(getenv func(string) string, hardware func() error) (Engine, error) {
	switch e := Engine(getenv(EngineVariable)); e {
	case Emulated, KVM, Firecracker:
		return e, nil
	case "":
	default:
		return "", fault.New(fault.InvalidArgument, "%s=%s is no engine", EngineVariable, e).WithHint("engines: %s, %s, %s", Emulated, KVM, Firecracker)
	}
	switch {
	case hardware() != nil:
		return Emulated, nil
	case getenv(FirecrackerVariable) != "":
		return Firecracker, nil
	}
	return KVM, nil
}

// Available says why this host cannot use the engine, or nil.
func (e Engine) Available() error {
	if !e.InPlace() {
		if err := Hardware(); err != nil {
			return err
		}
	}
	if e == Firecracker {
		return supplied(os.Getenv(FirecrackerVariable))
	}
	if _, err := os.Stat(Emulator); err != nil {
		return fault.New(fault.Unsupported, "there is no emulator of machines: %v", err).WithHint("install QEMU (Debian: apt-get install qemu-system-x86)")
	}
	return nil
}

func supplied(path string) error {
	if path == "" {
		return fault.New(fault.Unsupported, "no Firecracker was supplied").WithHint("set %s to the program", FirecrackerVariable)
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return fault.New(fault.Unsupported, "%s=%s is no program", FirecrackerVariable, path).WithHint("set %s to the path of a Firecracker, 1.10 or later", FirecrackerVariable)
	}
	return nil
}

// Box is where a machine runs: a sandbox with the template's Binds and Devices, and with User.
type Box interface {
	// Run starts a process with descriptors from 3 on.
	Run(ctx context.Context, p sandbox.Process, extra ...*os.File) (*sandbox.Proc, error)
	// Path is where a path of the inside is reachable from here.
	Path(inside string) string
	// Listen listens on a TCP address of the inside.
	Listen(ctx context.Context, address string) (net.Listener, error)
}

// engine does the work of an Engine for one template.
type engine interface {
	// version names the program and which it is.
	version(ctx context.Context) (string, error)
	// boot starts a machine from nothing.
	boot(ctx context.Context, t *Template, box Box) (*Machine, error)
	// save writes a stopped machine to memoryFile and stateFile of a folder.
	save(ctx context.Context, t *Template, m *Machine, box Box, folder string) error
	// load makes what save wrote ready for copies.
	load(t *Template, folder string) error
	// copy starts a machine that goes on where the template was.
	copy(ctx context.Context, t *Template, box Box, lost func(error)) (*Machine, error)
	// binds are what a sandbox shows its machine beside the kernel and the disks.
	binds(t *Template) []sandbox.Bind
}

func (e Engine) make() engine {
	switch e {
	case Firecracker:
		return &fire{program: os.Getenv(FirecrackerVariable)}
	case KVM:
		return qemu{kvm: true}
	}
	return qemu{}
}

// control halts a machine and lets it go on.
type control interface {
	Stop(ctx context.Context) error
	Continue(ctx context.Context) error
	Close()
}

// link is the way to the guest's database.
type link interface {
	// dial makes a connection with it.
	dial(ctx context.Context) (net.Conn, error)
	// release ends those that were dialled.
	release()
	// cleared is told when the guest has let go of its ends too.
	cleared() error
	// taken waits until the machine has read all that was said to it: what lies in between
	// belongs to no state of the machine.
	taken(ctx context.Context) error
	// putBack forgets what the guest has said, after its process was put back in place.
	putBack() error
	close()
}
