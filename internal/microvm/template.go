package microvm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm/image"
	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/sys"
)

// format is raised when templates are made differently.
const format = 1

// keepTemplates is how many the cache keeps: some hundred MB each.
const keepTemplates = 4

// Spec is what a machine is made from.
type Spec struct {
	// MemoryBytes is what the guest has.
	MemoryBytes int64
	// Packages are Debian's, beside those that all machines have.
	Packages []string
	Plan     wire.Plan
	// Folders are shown to the guest below wire.DiskDir; Contents name what is in them.
	Folders  map[string]string
	Contents []string
	// Ports are the TCP ports of the guest's loopback that the sandbox's own loopback leads to.
	Ports []uint16
}

// Template is a machine whose services are ready, to be copied.
type Template struct {
	Files Files
	Spec  Spec
	// Key names what it was made from.
	Key  string
	Base *image.Base

	memory *os.File // sealed
	state  []byte
	wire   wire.State
	khz    uint64
}

// Files are what an emulator reads, on the host.
type Files struct{ Kernel, Initramfs, Root, World string }

// BuildTemplate makes a template, or takes it from the cache.
func BuildTemplate(ctx context.Context, cache string, s Spec, progress func(string)) (*Template, error) {
	version, err := qemuVersion(ctx)
	if err != nil {
		return nil, err
	}
	t := &Template{Spec: s, khz: ticksPerMillisecond()}
	if err := t.files(ctx, cache, progress); err != nil {
		return nil, err
	}
	if t.Key, err = t.key(version); err != nil {
		return nil, err
	}
	store := sys.Store{Dir: filepath.Join(cache, "templates"), Keep: keepTemplates}
	entry, err := store.Get(ctx, t.Key, func(ctx context.Context, folder string) error {
		progress("booting the machine (once)")
		return t.boot(ctx, folder, progress)
	})
	if err != nil {
		return nil, fmt.Errorf("make the machine's template: %w", err)
	}
	defer entry.Close() // it is read into memory
	if err := t.load(entry.Path); err != nil {
		return nil, fmt.Errorf("read the machine's template: %w", err)
	}
	return t, nil
}

// files builds what the emulator reads.
func (t *Template) files(ctx context.Context, cache string, progress func(string)) error {
	var err error
	if t.Base, err = image.BuildBase(ctx, cache, t.Spec.Packages, progress); err != nil {
		return err
	}
	t.Files.Kernel, t.Files.Root = t.Base.Kernel, t.Base.Root
	if t.Files.Initramfs, err = image.BuildInitramfs(ctx, cache, t.Base, "/proc/self/exe"); err != nil {
		return err
	}
	plan, err := json.Marshal(t.Spec.Plan)
	if err != nil {
		return fmt.Errorf("write the machine's plan: %w", err)
	}
	t.Files.World, err = image.BuildDisk(ctx, cache, image.Disk{
		Key: t.Spec.Contents, Folders: t.Spec.Folders, Files: map[string][]byte{wire.PlanFile: plan},
	})
	return err
}

func (t *Template) key(version string) (string, error) {
	text, err := json.Marshal([]any{
		format, version, t.Files, t.Base.Digest, t.Spec.MemoryBytes, t.Spec.Ports,
		// Machines count their time in ticks of the processor that they were booted on.
		(t.khz + 500) / 1000,
	})
	if err != nil {
		return "", fmt.Errorf("name the machine's template: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// Names of a template's files.
const (
	memoryFile = "memory"
	stateFile  = "state"
	aboutFile  = "about.json"
)

// boot starts a machine from nothing, waits until its services are ready and keeps what it is then.
func (t *Template) boot(ctx context.Context, folder string, progress func(string)) error {
	memory, err := sys.MemoryFile("pommel-machine", t.Spec.MemoryBytes)
	if err != nil {
		return err
	}
	defer memory.Close()
	// The emulator runs as a user of its own.
	if err := memory.Chmod(0o666); err != nil {
		return fmt.Errorf("lend memory: %w", err)
	}
	state, about, err := t.bootIn(ctx, memory, progress)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(folder, memoryFile))
	if err != nil {
		return fmt.Errorf("keep memory: %w", err)
	}
	defer out.Close()
	if err := errors.Join(out.Truncate(t.Spec.MemoryBytes), sys.CopySparse(out, memory, t.Spec.MemoryBytes), out.Close()); err != nil {
		return fmt.Errorf("keep memory: %w", err)
	}
	text, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, stateFile), state, 0o644), os.WriteFile(filepath.Join(folder, aboutFile), text, 0o644))
}

// bootIn runs the machine in a sandbox of its own, which ends with it.
func (t *Template) bootIn(ctx context.Context, memory *os.File, progress func(string)) (state []byte, about wire.State, err error) {
	box, err := sandbox.Start(ctx, sandbox.Config{
		Hostname: "machine", Users: []sandbox.User{User}, Binds: t.Binds(), FilesBytes: 64 << 20,
		Limits: sandbox.Limits{MemoryBytes: t.Spec.MemoryBytes + Overhead},
	})
	if err != nil {
		return nil, about, err
	}
	defer box.Close()
	m, err := start(ctx, t, box.Run, memory, nil)
	if err != nil {
		return nil, about, err
	}
	defer m.Close()
	if about, err = m.ready(ctx, progress); err != nil {
		return nil, about, err
	}
	if err := m.Stop(ctx); err != nil {
		return nil, about, err
	}
	state, err = m.save(ctx)
	return state, about, err
}

// save takes the state of a stopped machine's devices.
func (m *Machine) save(ctx context.Context) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("save the machine: %w", err)
	}
	defer r.Close()
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(r) // an end that comes too early is told by the emulator
		got <- b
	}()
	err = m.qmp.Save(ctx, int(w.Fd()))
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
func (t *Template) load(folder string) (err error) {
	if t.state, err = os.ReadFile(filepath.Join(folder, stateFile)); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, aboutFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &t.wire); err != nil {
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

// Close frees the memory of a template that no machine will be started from any more.
func (t *Template) Close() error { return t.memory.Close() }

// qemuVersion is the first line that the emulator says of itself.
func qemuVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, Emulator, "--version").Output()
	if err != nil {
		return "", fault.New(fault.Unsupported, "%s: %v", Emulator, err).WithHint("install QEMU (Debian: apt-get install qemu-system-x86)")
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}

// Clocked is nil when services of machines of this template live by the world's clock.
func (t *Template) Clocked() error {
	if t.wire.NoClock != "" {
		return errors.New(t.wire.NoClock)
	}
	return nil
}

// Available says what is missing on this host.
func Available() error {
	if _, err := os.Stat(Emulator); err != nil {
		return fault.New(fault.Unsupported, "there is no emulator of machines: %v", err).WithHint("install QEMU (Debian: apt-get install qemu-system-x86)")
	}
	return nil
}
