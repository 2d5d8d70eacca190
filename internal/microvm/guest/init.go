package guest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"github.com/pommelgym/pommel/internal/microvm/image"
	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sys"
)

// MaybeInit does not return in process 1 of a machine; in any other process it does nothing.
func MaybeInit() {
	if os.Getpid() != 1 || os.Args[0] != image.Init {
		return
	}
	if _, err := os.Stat(image.Marker); err != nil {
		return
	}
	if err := boot(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
	}
	// A machine without its agent is of no use: its end is how the host learns of that.
	_ = sys.PowerOff()
	os.Exit(1)
}

// address is the machine's own on the network that its emulator plays to it. The host is .2.
var address = netip.MustParsePrefix("10.0.2.15/24")

func boot() error {
	if err := mountFirst(); err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	if err := enterRoot(); err != nil {
		return err
	}
	vsock, err := onVsock()
	if err != nil {
		return err
	}
	if err := network(vsock); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(wire.DiskDir, wire.PlanFile))
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	var plan wire.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	// The machine's own clock is the world's too, for whoever lives outside of the sandbox.
	if c := plan.Sandbox.Clock; c != nil {
		tv := syscall.NsecToTimeval(c.Start.UnixNano())
		if err := syscall.Settimeofday(&tv); err != nil {
			return fmt.Errorf("set the clock: %w", err)
		}
	}
	// Programs are looked for by this process before they are started.
	if err := os.Setenv("PATH", path); err != nil {
		return fmt.Errorf("set PATH: %w", err)
	}
	a := newAgent(plan)
	if vsock {
		return a.serveConnections(listenVsock)
	}
	return a.serveSerial()
}

// path is where the machine's programs are.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// mountFirst mounts what every program relies on: without /dev/null none can be started.
func mountFirst() error {
	for _, m := range []struct{ kind, at string }{{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}} {
		if err := sys.MountNew(m.kind, m.at, m.kind, false); err != nil {
			return err
		}
	}
	return nil
}

func loadModules() error {
	files, err := filepath.Glob(image.ModulesDir + "/*.ko")
	if err != nil {
		return fmt.Errorf("find modules: %w", err)
	}
	sort.Strings(files)
	for _, f := range files {
		if err := sys.LoadModule(f); err != nil {
			return err
		}
	}
	return nil
}

// Where an EROFS has its identifier: the superblock is the second kilobyte.
const (
	idAt  = 1024 + 48
	idLen = 16
)

// disk finds a disk by the identifier of the file system on it: in which order disks are found is the
// kernel's affair, and not every emulator lets them have names.
func disk(id string) (string, error) {
	want := strings.ReplaceAll(id, "-", "")
	found, err := os.ReadDir("/sys/block")
	if err != nil {
		return "", fmt.Errorf("find disk: %w", err)
	}
	for _, d := range found {
		dev := filepath.Join("/dev", d.Name())
		if got, err := idOf(dev); err == nil && got == want {
			return dev, nil
		}
	}
	return "", fmt.Errorf("find disk: none of %d has the file system %s", len(found), id)
}

func idOf(dev string) (string, error) {
	f, err := os.Open(dev)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var id [idLen]byte
	if _, err := f.ReadAt(id[:], idAt); err != nil {
		return "", err
	}
	return hex.EncodeToString(id[:]), nil
}

// enterRoot mounts the base and the world's disk, and memory where something is written.
func enterRoot() error {
	for _, d := range []struct{ id, at string }{{image.RootID, "/root"}, {image.WorldID, "/root" + wire.DiskDir}} {
		dev, err := disk(d.id)
		if err != nil {
			return err
		}
		if err := sys.MountNew(dev, d.at, "erofs", true); err != nil {
			return err
		}
	}
	if err := sys.SwitchRoot("/root", "/dev", "/proc", "/sys"); err != nil {
		return err
	}
	for _, at := range []string{"/tmp", "/run"} {
		if err := sys.MountNew("tmpfs", at, "tmpfs", false); err != nil {
			return err
		}
	}
	// Limits of the services are kept by groups; a kernel without them has none.
	_ = sys.MountNew("cgroup2", "/sys/fs/cgroup", "cgroup2", false)
	return nil
}

// network brings up the loopback and, where the emulator plays a network, the interface. What the
// browser asks for comes from there and is meant for the machine's own loopback, where services
// listen: a kernel takes that from outside only when told to.
func network(vsock bool) error {
	if err := sys.LoopbackUp(); err != nil || vsock {
		return err
	}
	if err := sys.InterfaceUp("eth0", address); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/eth0/route_localnet", []byte("1"), 0); err != nil {
		return fmt.Errorf("open the loopback: %w", err)
	}
	return nil
}
