package microvm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/internal/microvm/image"
	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/sys"
)

// format is raised when templates are made differently.
const format = 2

// keepTemplates is how many the cache keeps: some hundred MB each.
const keepTemplates = 4

// Spec is what a machine is made from.
type Spec struct {
	// Engine runs it; "" is Emulated.
	Engine Engine
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

	engine engine
	memory *os.File   // QEMU's, sealed
	state  []byte     // and the state of its devices
	entry  *sys.Entry // kept in use while machines read files of it
	saved  string     // its folder, then
	wire   wire.State
	khz    uint64
}

// Files are what machines boot from, on the host.
type Files struct{ Kernel, Initramfs, Root, World string }

// BuildTemplate makes a template, or takes it from the cache.
func BuildTemplate(ctx context.Context, cache string, s Spec, progress func(string)) (*Template, error) {
	t := &Template{Spec: s, khz: ticksPerMillisecond(), engine: s.Engine.make()}
	version, err := t.engine.version(ctx)
	if err != nil {
		return nil, err
	}
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
	t.entry = entry
	if err := t.load(entry.Path); err != nil {
		return nil, errors.Join(fmt.Errorf("read the machine's template: %w", err), t.Close())
	}
	if t.saved == "" {
		t.entry = nil
		return t, entry.Close() // it was read into memory
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
	t.Spec.Plan.Ports = t.Spec.Ports
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
		format, t.Spec.Engine, version, t.Files, t.Base.Digest, t.Spec.MemoryBytes, t.Spec.Ports,
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

// boot starts a machine from nothing, in a sandbox of its own that ends with it, waits until its
// services are ready and keeps what it is then.
func (t *Template) boot(ctx context.Context, folder string, progress func(string)) error {
	box, err := sandbox.Start(ctx, sandbox.Config{
		Hostname: "machine", Users: []sandbox.User{User}, Binds: t.Binds(), Devices: t.Devices(),
		// Some write the machine's memory to where they are.
		FilesBytes: t.Spec.MemoryBytes + 64<<20,
		Limits:     sandbox.Limits{MemoryBytes: 2*t.Spec.MemoryBytes + Overhead},
	})
	if err != nil {
		return err
	}
	defer box.Close()
	m, err := t.engine.boot(ctx, t, box)
	if err != nil {
		return err
	}
	defer m.Close()
	about, err := m.ready(ctx, progress)
	if err != nil {
		return err
	}
	if err := m.Stop(ctx); err != nil {
		return err
	}
	if err := t.engine.save(ctx, t, m, box, folder); err != nil {
		return err
	}
	text, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	return os.WriteFile(filepath.Join(folder, aboutFile), text, 0o644)
}

// keep writes what a machine has left into a new file. Most of its memory was never touched.
func keep(from *os.File, size int64, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("keep the machine: %w", err)
	}
	defer out.Close()
	if err := errors.Join(out.Truncate(size), sys.CopySparse(out, from, size), out.Close()); err != nil {
		return fmt.Errorf("keep the machine: %w", err)
	}
	return nil
}

func (t *Template) load(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, aboutFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &t.wire); err != nil {
		return err
	}
	return t.engine.load(t, folder)
}

// Binds are what a sandbox shows its machine.
func (t *Template) Binds() []sandbox.Bind {
	return append([]sandbox.Bind{
		{From: t.Files.Kernel, To: kernelAt}, {From: t.Files.Initramfs, To: initramfsAt},
		{From: t.Files.Root, To: rootAt}, {From: t.Files.World, To: worldAt},
	}, t.engine.binds(t)...)
}

// Devices are what a sandbox lends its machine.
func (t *Template) Devices() []string {
	if t.Spec.Engine.InPlace() {
		return nil
	}
	if _, err := os.Stat(kvmDevice); err != nil {
		return nil // which whoever opens it says best
	}
	return []string{filepath.Base(kvmDevice)}
}

// Close frees the memory of a template that no machine will be started from any more.
func (t *Template) Close() error {
	var errs []error
	if t.memory != nil {
		errs = append(errs, t.memory.Close())
	}
	if t.entry != nil {
		errs = append(errs, t.entry.Close())
	}
	return errors.Join(errs...)
}

// Clocked is nil when services of machines of this template live by the world's clock.
func (t *Template) Clocked() error {
	if t.wire.NoClock != "" {
		return errors.New(t.wire.NoClock)
	}
	return nil
}
