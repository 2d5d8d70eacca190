package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm"
	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// machineName is the name of the driver whose services run in a machine.
const machineName = "microvm"

// MicroVM is Rewind for worlds whose services run in a machine of their own, with a kernel of
// their own. The machine's emulator and the browser are put back together, and with them
// whatever the services did to their kernel, their files and their clock.
func MicroVM() Rewind { return Rewind{machine: true} }

// machineAvailable says why this host has no machines of an engine.
func machineAvailable(e microvm.Engine) error {
	if runtime.GOARCH != "amd64" {
		return fault.New(fault.Unsupported, "the driver %s does not exist for %s", machineName, runtime.GOARCH)
	}
	return e.Available()
}

// machineDriver is the driver that suits the host: in place where machines are emulated, copies where
// the processor runs them.
func machineDriver() (Driver, error) {
	e, err := microvm.Chosen()
	if err != nil {
		return nil, err
	}
	if e.InPlace() {
		return MicroVM(), nil
	}
	return MicroVMClone(), nil
}

// worldBox is a world as the place where a machine runs.
type worldBox struct{ w *World }

func (b worldBox) Run(ctx context.Context, p sandbox.Process, extra ...*os.File) (*sandbox.Proc, error) {
	return b.w.run(ctx, p, extra...)
}

func (b worldBox) Path(inside string) string { return b.w.box.Path(inside) }

func (b worldBox) Listen(ctx context.Context, address string) (net.Listener, error) {
	return b.w.box.Listen(ctx, address)
}

// machine is a world's machine.
type machine struct {
	m     *microvm.Machine
	names map[string]bool // of services
	owner atomic.Pointer[World]
}

// templates are an image's machines, made at the first use.
type templates struct {
	mu sync.Mutex
	of map[microvm.Engine]*microvm.Template // guarded by mu
}

// BuildMachine makes the machine that worlds of an image start from, or takes it from the
// cache, and tells about it.
func BuildMachine(ctx context.Context, img *Image, progress func(stage string)) (MachineInfo, error) {
	e, err := microvm.Chosen()
	if err == nil {
		err = machineAvailable(e)
	}
	if err != nil {
		return MachineInfo{}, err
	}
	t, err := img.machine(ctx, e, progress)
	if err != nil {
		return MachineInfo{}, err
	}
	info := MachineInfo{
		World: img.Spec.Name, Image: img.id, Engine: e, Template: t.Key, Base: t.Base.Key, Digest: t.Base.Digest, Kernel: t.Base.Release,
		MemoryMB: t.Spec.MemoryBytes >> 20, Clocked: t.Clocked() == nil, Files: t.Files,
	}
	for _, p := range t.Base.Packages {
		info.Packages = append(info.Packages, p.Name+" "+p.Version)
	}
	return info, nil
}

// MachineInfo describes the machine of an image.
type MachineInfo struct {
	World    string         `json:"world"`
	Image    string         `json:"image"`
	Engine   microvm.Engine `json:"engine"`
	Template string         `json:"template"`
	Base     string         `json:"base"`
	// Digest names the bytes of kernel and root file system.
	Digest   string        `json:"digest"`
	Kernel   string        `json:"kernel"`
	MemoryMB int64         `json:"memory_mb"`
	Clocked  bool          `json:"clocked"`
	Packages []string      `json:"packages"`
	Files    microvm.Files `json:"files"`
}

// machine is the template that this image's machines are copied from.
func (i *Image) machine(ctx context.Context, e microvm.Engine, progress func(string)) (*microvm.Template, error) {
	if progress == nil {
		progress = func(string) {}
	}
	i.vm.mu.Lock()
	defer i.vm.mu.Unlock()
	if t := i.vm.of[e]; t != nil {
		return t, nil
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	spec, err := i.machineSpec()
	if err != nil {
		return nil, err
	}
	spec.Engine = e
	t, err := microvm.BuildTemplate(ctx, filepath.Join(cache, "machines"), spec, progress)
	if err != nil {
		return nil, fmt.Errorf("make the machine of world %s: %w", i.Spec.Name, err)
	}
	if i.vm.of == nil {
		i.vm.of = map[microvm.Engine]*microvm.Template{}
	}
	i.vm.of[e] = t
	return t, nil
}

// Names of an image's folders on its machine's disk.
const (
	diskWorld   = "world"
	diskCluster = "cluster"
)

// machineSpec says what the machine runs: the services as they would run in a sandbox of the
// host, in a sandbox of the guest.
func (i *Image) machineSpec() (microvm.Spec, error) {
	s := i.Spec
	cfg := sandboxConfig(i, 0)
	cfg.Binds = []sandbox.Bind{
		{From: filepath.Join(wire.DiskDir, diskWorld), To: outDir}, {From: filepath.Join(wire.DiskDir, diskCluster), To: goldenDir, Private: true},
	}
	cfg.Users = cfg.Users[:2] // the browser stays outside
	cfg.Folders = []sandbox.Folder{{Path: socketDir, Mode: 0o700, UID: uidDB}}
	cfg.FilesBytes, cfg.SharedNetwork = int64(s.Machine.Memory), true
	spec := microvm.Spec{
		MemoryBytes: int64(s.Machine.Memory),
		Packages:    append([]string{fmt.Sprintf("postgresql-%d", i.postgres.Major)}, s.Machine.Packages...),
		Folders:     map[string]string{diskWorld: i.out.Path, diskCluster: i.cluster.Path},
		Contents:    []string{filepath.Base(i.out.Path), filepath.Base(i.cluster.Path)},
		Plan:        wire.Plan{Sandbox: cfg, Processes: s.Limits.Processes, Database: fmt.Sprintf("%s/.s.PGSQL.%d", socketDir, postgres.Port)},
	}
	for _, o := range s.Browser.Allow {
		if port, err := originPort(o); err == nil {
			spec.Ports = append(spec.Ports, port)
		}
	}
	vars := map[string]string{"out": outDir}
	for _, svc := range s.Services {
		one, err := i.guestService(svc, vars)
		if err != nil {
			return spec, err
		}
		spec.Plan.Services = append(spec.Plan.Services, one)
	}
	return spec, nil
}

// slower is how many times longer than said a service may take to be ready.
const slower = 8

func (i *Image) guestService(svc Service, vars map[string]string) (wire.Service, error) {
	if svc.Postgres != nil {
		for k, v := range dbVariables(svc, dbPassword) {
			vars[k] = v
		}
		// Debian's, whatever the host has.
		in := i.postgres
		in.BinDir = fmt.Sprintf("/usr/lib/postgresql/%d/bin", in.Major)
		return wire.Service{Process: i.databaseProcess(svc, in), CopyFrom: goldenDir, CopyTo: dataDir, Cluster: dataDir}, nil
	}
	p, probe, err := i.commandProcess(svc, vars)
	if err != nil {
		return wire.Service{}, err
	}
	probe.Timeout *= slower
	return wire.Service{Process: p, Probe: &probe}, nil
}

// startMachine starts the copy of a machine whose services are ready.
func (w *World) startMachine(ctx context.Context, progress func(string), t *microvm.Template) error {
	progress("starting the machine")
	vm := &machine{names: map[string]bool{}}
	for _, s := range w.img.Spec.Services {
		vm.names[s.Name] = true
	}
	vm.owner.Store(w)
	m, err := microvm.Start(ctx, worldBox{w}, t, func(cause error) { vm.owner.Load().loseGuest(cause) })
	if err != nil {
		return w.blame(microvm.Name, err)
	}
	vm.m = m
	w.vm = vm
	return nil
}

// rehearse lets the services be used and then starts them again.
func (w *World) rehearse(ctx context.Context, progress func(string), use func(context.Context, *World) error) error {
	if err := w.connectJudge(ctx); err != nil {
		return err
	}
	if err := use(ctx, w); err != nil {
		return fmt.Errorf("rehearse: %w", err)
	}
	if err := w.Browser().ClearState(ctx); err != nil {
		return w.blame(browserName, err)
	}
	_, _ = w.judge.Close(ctx), w.setup.Close(ctx) // their other ends are ended anyway
	if err := w.vm.m.Restart(ctx, progress); err != nil {
		return w.blame(microvm.Name, err)
	}
	return w.box.SetClock(clockOf(w.img.Spec).Start)
}

// loseGuest notes that the services are of no use any more, which putting the machine back changes.
func (w *World) loseGuest(cause error) {
	w.mu.Lock()
	if w.cause == nil {
		w.inGuest = true
	}
	w.mu.Unlock()
	w.lose(fault.Wrap(fault.WorldLost, cause, "machine"))
}

// checkHost is Check for a world that is about to be put back: the guest may be in any state.
func (w *World) checkHost(ctx context.Context) error {
	err := w.box.Check(ctx)
	if cause := w.hostCause(); cause != nil {
		return cause
	}
	return err
}

// hostCause is why the world is lost, if the reason lies outside of the guest.
func (w *World) hostCause() error {
	w.mu.Lock()
	order, cause, inGuest := append([]string(nil), w.order...), w.cause, w.inGuest
	w.mu.Unlock()
	for _, name := range order {
		p := w.proc(name)
		select {
		case <-p.Ended():
			<-p.Done()
			return deathOf(p)
		default:
		}
	}
	if inGuest {
		return nil
	}
	return cause
}

// thawTimeout bounds what must be done even when the caller has gone.
const thawTimeout = 10 * time.Second

// freeze halts the machine, if the world has one, so that it can be saved, and answers what
// lets it go on.
func (w *World) freeze(ctx context.Context) (thaw func() error, err error) {
	if w.vm == nil {
		return func() error { return nil }, nil
	}
	if err := w.vm.m.Stop(ctx); err != nil {
		return nil, fault.Wrap(fault.WorldLost, err, "halt the machine")
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), thawTimeout)
		defer cancel()
		if err := w.vm.m.Continue(ctx); err != nil {
			return fault.Wrap(fault.WorldLost, err, "let the machine go on")
		}
		return nil
	}, nil
}

func (w *World) guestNow() time.Time {
	if w.vm == nil {
		return time.Time{}
	}
	return w.vm.m.Now()
}

// resumed lets a machine go on that was put back to a state in which it was halted.
func (w *World) resumed(ctx context.Context, c *Checkpoint) error {
	if err := w.vm.m.Resumed(ctx, c.guestNow); err != nil {
		return fmt.Errorf("let the machine go on: %w", err)
	}
	return nil
}

func (v *machine) clocked() error {
	if err := v.m.Clocked(); err != nil {
		return fault.New(fault.Unsupported, "the machine's services have no clock of the world's: %v", err)
	}
	return nil
}

// lookTimeout bounds small questions to a guest.
const lookTimeout = 5 * time.Second

func (v *machine) setClock(at time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	if err := v.m.SetClock(ctx, at); err != nil {
		return fault.Wrap(fault.WorldLost, err, "machine")
	}
	return nil
}

func (v *machine) runs(service string) bool { return v.names[service] }

func (v *machine) log(service string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	return v.m.Log(ctx, service)
}

// members are left out when the guest does not answer.
func (v *machine) members() []sandbox.Member {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	list, _ := v.m.Members(ctx)
	return list
}

// Exec runs a program as root of the world's machine, and answers its output and exit code.
// Worlds without a machine have no root.
func (w *World) Exec(ctx context.Context, argv ...string) (output string, code int, err error) {
	if w.vm == nil {
		return "", 0, fault.New(fault.Unsupported, "only worlds of driver %s run programs as root", machineName)
	}
	output, code, err = w.vm.m.Exec(ctx, argv...)
	if err != nil && w.Cause() != nil {
		err = errors.Join(w.Cause(), err)
	}
	return output, code, err
}

// sandbox is the configuration of a world's sandbox on the host.
func (o startOptions) sandbox(img *Image) sandbox.Config {
	cfg := sandboxConfig(img, o.room)
	t := o.template
	if t == nil {
		return cfg
	}
	cfg.Users = append(cfg.Users, microvm.User)
	cfg.Binds = append(cfg.Binds[2:], t.Binds()...) // application and database are in the machine
	cfg.Devices = t.Devices()
	// The guest's memory counts twice: once in the emulator, once in its saved state.
	cfg.Limits.MemoryBytes += 2*t.Spec.MemoryBytes + microvm.Overhead
	return cfg
}
