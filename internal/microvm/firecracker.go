package microvm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm/firecracker"
	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// fire runs machines by Firecracker.
type fire struct{ program string }

// Places in the sandbox. Sockets and what is saved are in the home of the machine's user: they are
// at the same place in every sandbox, which a snapshot relies on.
const (
	fireAt   = "/machine/firecracker"
	memoryAt = "/machine/memory"
	stateAt  = "/machine/state"
)

func fireHome(name string) string { return filepath.Join(User.Home, name) }

func (f *fire) version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, f.program, "--version").Output()
	if err != nil {
		return "", fault.New(fault.Unsupported, "%s --version: %v", f.program, err).WithHint("set %s to a Firecracker", FirecrackerVariable)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, recent(line)
}

// Oldest minor release of Firecracker 1 that serves: since 1.8 it describes its devices to the kernel by
// ACPI, as Debian's needs it, and since 1.10 a copy's guest is told that connections have ended.
const oldestMinor = 10

func recent(line string) error {
	var major, minor int
	if _, err := fmt.Sscanf(line, "Firecracker v%d.%d", &major, &minor); err != nil {
		return fault.New(fault.Unsupported, "%q is not how a Firecracker says its version", line).WithHint("set %s to a Firecracker", FirecrackerVariable)
	}
	if major < 1 || major == 1 && minor < oldestMinor {
		return fault.New(fault.Unsupported, "%s is too old", line).WithHint("1.%d or later is needed", oldestMinor)
	}
	return nil
}

func (f *fire) binds(t *Template) []sandbox.Bind {
	out := []sandbox.Bind{{From: f.program, To: fireAt}}
	if t.saved != "" {
		out = append(out, sandbox.Bind{From: filepath.Join(t.saved, memoryFile), To: memoryAt}, sandbox.Bind{From: filepath.Join(t.saved, stateFile), To: stateAt})
	}
	return out
}

// process is Firecracker's. It may make its sockets and what it saves in its home, and has no use for
// a port: the browser's are listened on from here.
func (f *fire) process() sandbox.Process {
	p := machineProcess([]string{fireAt, "--api-sock", fireHome("api"), "--id", "pommel", "--level", "Warning"})
	p.Landlock.Write = append(p.Landlock.Write, User.Home)
	lendKVM(&p)
	return p
}

// kernelArgs have a guest's reboot end the process, and spare it looking for what is not there.
func (f *fire) kernelArgs() string { return commonArgs + " reboot=k pci=off " + wire.VsockArg }

// start runs Firecracker and waits until it listens.
func (f *fire) start(ctx context.Context, t *Template, box Box) (*Machine, *firecracker.Client, error) {
	m := &Machine{t: t, link: &vsock{socket: box.Path(fireHome("vsock"))}}
	var err error
	if m.proc, err = box.Run(ctx, f.process()); err != nil {
		return nil, nil, err
	}
	c, err := firecracker.Connect(ctx, box.Path(fireHome("api")), m.proc.Done())
	if err != nil {
		return nil, nil, m.explain(err)
	}
	m.control = c
	return m, c, nil
}

func (f *fire) boot(ctx context.Context, t *Template, box Box) (*Machine, error) {
	m, c, err := f.start(ctx, t, box)
	if err != nil {
		return nil, err
	}
	err = c.Boot(ctx, firecracker.Machine{
		Kernel: kernelAt, Initramfs: initramfsAt, Args: f.kernelArgs(), MemoryMiB: t.Spec.MemoryBytes >> 20,
		Disks: []firecracker.Disk{{ID: "root", Path: rootAt}, {ID: "world", Path: worldAt}}, Vsock: fireHome("vsock"),
	})
	if err == nil {
		err = m.meet(ctx, box, nil)
	}
	var now wire.Message
	if err == nil {
		now, err = m.agent.call(ctx, wire.Request{Hello: true})
	}
	if err != nil {
		err = m.explain(err)
		m.Close()
		return nil, err
	}
	if st := now.State; st != nil && (st.Ready || st.Failed != "") {
		m.agent.events <- now // the event came before anybody was there to hear of it
	}
	return m, nil
}

// meet connects with the guest's agent, as soon as it is there.
func (m *Machine) meet(ctx context.Context, box Box, lost func(error)) error {
	ctx, cancel := m.proc.While(ctx, "its guest answered")
	defer cancel()
	conn, err := firecracker.DialAgain(ctx, box.Path(fireHome("vsock")), wire.AgentPort)
	if err != nil {
		return err
	}
	m.agent = newAgent(conn, lost)
	return nil
}

// meetings is how often a copy is greeted: its kernel ends the connections of the template when it
// gets to it, and may take one that was just made for one of those.
const meetings = 5

// copy loads the template in a process of its own.
func (f *fire) copy(ctx context.Context, t *Template, box Box, lost func(error)) (*Machine, error) {
	m, c, err := f.start(ctx, t, box)
	if err != nil {
		return nil, err
	}
	if err = c.Load(ctx, firecracker.Snapshot{Memory: memoryAt, State: stateAt}); err == nil {
		err = c.Continue(ctx)
	}
	if err == nil {
		err = m.greet(ctx, box, lost)
	}
	for _, p := range t.Spec.Ports {
		if err != nil {
			break
		}
		var fw *forward
		if fw, err = newForward(ctx, box, box.Path(fireHome("vsock")), p); err == nil {
			m.forwards = append(m.forwards, fw)
		}
	}
	if err != nil {
		err = m.explain(err)
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Machine) greet(ctx context.Context, box Box, lost func(error)) (err error) {
	for range meetings {
		if err = m.meet(ctx, box, lost); err != nil {
			return err
		}
		if err = m.hello(ctx); err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-m.agent.dead:
			m.agent.close()
		default:
			return err // it answered, and not well
		}
	}
	return err
}

// save has Firecracker write to its home, and takes it from there.
func (f *fire) save(ctx context.Context, t *Template, m *Machine, box Box, folder string) error {
	c, ok := m.control.(*firecracker.Client)
	if !ok {
		return fmt.Errorf("save the machine: it is controlled by a %T", m.control)
	}
	if err := c.Save(ctx, firecracker.Snapshot{Memory: fireHome(memoryFile), State: fireHome(stateFile)}); err != nil {
		return m.explain(err)
	}
	for _, name := range []string{memoryFile, stateFile} {
		if err := take(box.Path(fireHome(name)), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// take copies a file that somebody else has written.
func take(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("keep the machine: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("keep the machine: %w", err)
	}
	return keep(in, info.Size(), to)
}

// load leaves the files where they are: copies map them.
func (f *fire) load(t *Template, folder string) error {
	for _, name := range []string{memoryFile, stateFile} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	t.saved = folder
	return nil
}
