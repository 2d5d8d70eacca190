package microvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm/qmp"
	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/sys"
)

// qemu runs machines by QEMU.
type qemu struct{ kvm bool }

// version is the first line that QEMU says of itself, and how it runs guests.
func (q qemu) version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, Emulator, "--version").Output()
	if err != nil {
		return "", fault.New(fault.Unsupported, "%s: %v", Emulator, err).WithHint("install QEMU (Debian: apt-get install qemu-system-x86)")
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line + " " + q.accelerator(), nil
}

func (q qemu) binds(*Template) []sandbox.Bind { return nil }

func (q qemu) boot(ctx context.Context, t *Template, box Box) (*Machine, error) {
	memory, err := sys.MemoryFile("pommel-machine", t.Spec.MemoryBytes)
	if err != nil {
		return nil, err
	}
	// QEMU runs as a user of its own.
	if err := memory.Chmod(0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("lend memory: %w", err), memory.Close())
	}
	m, _, err := q.start(ctx, t, box, memory, true, nil)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	m.memory = memory
	return m, nil
}

// copy starts a machine that waits for the template's state, and has it go on from there.
func (q qemu) copy(ctx context.Context, t *Template, box Box, lost func(error)) (*Machine, error) {
	m, c, err := q.start(ctx, t, box, t.memory, false, lost)
	if err != nil {
		return nil, err
	}
	if err = feed(ctx, c, t.state); err == nil {
		err = c.Continue(ctx)
	}
	if err == nil {
		err = m.hello(ctx)
	}
	if err != nil {
		err = m.explain(err)
		m.Close()
		return nil, err
	}
	return m, nil
}

// feed hands a machine that waits its state.
func feed(ctx context.Context, c *qmp.Client, state []byte) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the machine: %w", err)
	}
	defer r.Close()
	go func() {
		defer w.Close()
		_, _ = w.Write(state) // who does not read it says so
	}()
	return c.Load(ctx, int(r.Fd()))
}

// start runs QEMU on a file of memory.
func (q qemu) start(ctx context.Context, t *Template, box Box, memory *os.File, fresh bool, lost func(error)) (_ *Machine, _ *qmp.Client, err error) {
	m := &Machine{t: t}
	var ours, theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			for _, f := range ours {
				_ = f.Close()
			}
			m.Close()
		}
	}()
	for range wire.Streams + 2 { // QEMU's own, the agent's
		o, th, err := sys.Streampair()
		if err != nil {
			return nil, nil, err
		}
		ours, theirs = append(ours, o), append(theirs, th)
	}
	extra := append([]*os.File{theirs[0], memory}, theirs[1:]...)
	if m.proc, err = box.Run(ctx, q.process(t, fresh), extra...); err != nil {
		return nil, nil, err
	}
	conns := make([]*net.UnixConn, len(ours))
	for i, f := range ours {
		if conns[i], err = streamOf(f); err != nil {
			return nil, nil, err
		}
	}
	ours = nil
	m.agent = newAgent(conns[1], lost)
	m.link = &serial{agent: m.agent, ports: conns[2:]}
	c, err := qmp.New(ctx, conns[0], m.event)
	if err != nil {
		return nil, nil, m.explain(err)
	}
	m.control = c
	return m, c, nil
}

// event notices a guest that switched itself off.
func (m *Machine) event(e qmp.Event) {
	if e.Name == "SHUTDOWN" || e.Name == "GUEST_PANICKED" {
		m.agent.end(errors.New("the machine's guest ended: " + e.Name))
	}
}

func (q qemu) save(ctx context.Context, t *Template, m *Machine, _ Box, folder string) error {
	c, ok := m.control.(*qmp.Client)
	if !ok {
		return fmt.Errorf("save the machine: it is controlled by a %T", m.control)
	}
	state, err := stateOf(ctx, c)
	if err != nil {
		return err
	}
	if err := keep(m.memory, t.Spec.MemoryBytes, filepath.Join(folder, memoryFile)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, stateFile), state, 0o644)
}

// stateOf is the state of a stopped machine's devices.
func stateOf(ctx context.Context, c *qmp.Client) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("save the machine: %w", err)
	}
	defer r.Close()
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(r) // an end that comes too early is told by QEMU
		got <- b
	}()
	err = c.Save(ctx, int(w.Fd()))
	_ = w.Close()
	if err != nil {
		return nil, err
	}
	select {
	case b := <-got:
		return b, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// load reads a template into memory. The file that machines take their memory from is
// sealed: they share its pages and cannot change them.
func (q qemu) load(t *Template, folder string) (err error) {
	if t.state, err = os.ReadFile(filepath.Join(folder, stateFile)); err != nil {
		return err
	}
	from, err := os.Open(filepath.Join(folder, memoryFile))
	if err != nil {
		return err
	}
	defer from.Close()
	memory, err := sys.MemoryFile("pommel-machine", t.Spec.MemoryBytes)
	if err != nil {
		return err
	}
	if err := errors.Join(sys.CopySparse(memory, from, t.Spec.MemoryBytes), memory.Chmod(0o666), sys.Seal(memory)); err != nil {
		return errors.Join(err, memory.Close())
	}
	t.memory = memory
	return nil
}
