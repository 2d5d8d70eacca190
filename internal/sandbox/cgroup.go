package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/sys"
)

// LimitsReport says which limits the kernel enforces and, where not, why.
type LimitsReport struct {
	Memory    bool     `json:"memory"`
	Processes bool     `json:"processes"`
	Landlock  int      `json:"landlock"` // ABI version, 0 without
	Missing   []string `json:"missing,omitempty"`
}

// cgroup is the group of one sandbox: one folder under version 2, one a controller under
// version 1. Memory and processor count for all of it, the number of processes for what
// the keeper starts: the keeper needs a thread of its own to report that there are too many.
type cgroup struct {
	dirs  map[string]string // by controller
	rep   LimitsReport
	cpuV2 bool
	v2    string // the folder under version 2, if any
}

// cgroupHost is where this process's groups are.
type cgroupHost struct {
	v2 string            // "" where version 2 has not what is needed
	v1 map[string]string // by controller
}

// leafChildren is the part of a version 2 group that holds what the keeper starts. It is
// threaded: the thread that forks moves into it alone, which is how version 1 works too.
const leafChildren = "processes"

// groupPrefix begins the names of all groups: pommel-<pid namespace>-<pid>-<start time>-<number>.
const groupPrefix = "pommel-"

func groupOwner() (string, error) {
	ns, err := sys.PidNamespace()
	if err != nil {
		return "", err
	}
	pid := os.Getpid()
	return fmt.Sprintf("%s%d-%d-%d-", groupPrefix, ns, pid, sys.StartTime(pid)), nil
}

// newCgroup makes the group, with as many limits as the host allows.
func newCgroup(l Limits) (*cgroup, error) {
	g := &cgroup{dirs: map[string]string{}, rep: LimitsReport{Landlock: sys.LandlockABI()}}
	if g.rep.Landlock == 0 {
		g.rep.Missing = append(g.rep.Missing, "landlock: the kernel has none; the browser is held by its user and its network alone")
	}
	host, err := findCgroups("/proc/self/cgroup", "/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	name, err := freeName()
	if err != nil {
		return nil, err
	}
	g.memory(host, name, l)
	g.processes(host, name, l)
	if _, v2, err := g.dir(host, "cpu", name); err == nil {
		g.cpuV2 = v2
	}
	return g, nil
}

func freeName() (string, error) {
	owner, err := groupOwner()
	if err != nil {
		return "", err
	}
	return owner + strings.ToLower(rand.Text()[:12]), nil
}

func (g *cgroup) memory(h cgroupHost, name string, l Limits) {
	dir, v2, err := g.dir(h, "memory", name)
	if err == nil && l.MemoryBytes > 0 {
		file := "memory.limit_in_bytes"
		if v2 {
			file = "memory.max"
			_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0)
		}
		err = writeControl(dir, file, l.MemoryBytes)
	}
	g.rep.Memory = err == nil
	if err != nil {
		g.rep.Missing = append(g.rep.Missing, "memory limit: "+err.Error())
	}
}

func (g *cgroup) processes(h cgroupHost, name string, l Limits) {
	dir, v2, err := g.dir(h, "pids", name)
	if err == nil && v2 {
		err = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+pids"), 0)
		dir = filepath.Join(dir, leafChildren)
	}
	if err == nil && l.Processes > 0 {
		err = writeControl(dir, "pids.max", int64(l.Processes))
	}
	g.rep.Processes = err == nil
	if err != nil {
		g.rep.Missing = append(g.rep.Missing, "process limit: "+err.Error())
	}
}

func writeControl(dir, file string, v int64) error {
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(v, 10)), 0); err != nil {
		return fmt.Errorf("set %s: %w", file, err)
	}
	return nil
}

// dir makes the group of one controller.
func (g *cgroup) dir(h cgroupHost, controller, name string) (dir string, v2 bool, err error) {
	parent, ok := h.v1[controller]
	if !ok {
		if h.v2 == "" {
			return "", false, fmt.Errorf("the host offers no %s controller to this process", controller)
		}
		if err := enableV2(h.v2, controller); err != nil {
			return "", true, err
		}
		parent, v2 = h.v2, true
	}
	dir = filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return "", v2, fmt.Errorf("make group: %w", err)
	}
	g.dirs[controller] = dir
	if v2 && g.v2 == "" {
		g.v2 = dir
		return dir, v2, makeLeaf(dir)
	}
	return dir, v2, nil
}

func makeLeaf(dir string) error {
	leaf := filepath.Join(dir, leafChildren)
	if err := os.Mkdir(leaf, 0o755); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make group: %w", err)
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.type"), []byte("threaded"), 0); err != nil {
		return fmt.Errorf("make group threaded: %w", err)
	}
	return nil
}

// enableV2 hands a controller down to the groups below dir. Version 2 refuses that while
// the group holds processes, so this one moves into a leaf.
func enableV2(dir, controller string) error {
	if hasWord(filepath.Join(dir, "cgroup.subtree_control"), controller) {
		return nil
	}
	if !hasWord(filepath.Join(dir, "cgroup.controllers"), controller) {
		return fmt.Errorf("the group %s has no %s controller (systemd: Delegate=yes)", dir, controller)
	}
	on := func() error {
		return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
	err := on()
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	leaf := filepath.Join(dir, serverLeaf)
	if err := os.Mkdir(leaf, 0o755); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make group: %w", err)
	}
	pid := []byte(strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), pid, 0); err != nil {
		return fmt.Errorf("move into %s: %w", leaf, err)
	}
	if err := on(); err != nil {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.procs"), pid, 0)
		return fmt.Errorf("other processes share the group %s (start the server in a group of its own): %w", dir, err)
	}
	return nil
}

// serverLeaf is where this process goes when its group must be free of processes.
const serverLeaf = "pommel-server"

func hasWord(file, word string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for _, w := range strings.Fields(string(data)) {
		if w == word {
			return true
		}
	}
	return false
}

// add puts the keeper into the group.
func (g *cgroup) add(pid int) error {
	for controller, dir := range g.dirs {
		if controller == "pids" && dir != g.v2 {
			continue // of version 1: only for what the keeper starts
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("put keeper into its group: %w", err)
		}
	}
	// When memory runs out one of the world's processes is to die, not what reports it.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("-900"), 0)
	return nil
}

// entry is a file into which a thread writes itself so that its children are born in the
// group; nil where there is none.
func (g *cgroup) entry() (f *os.File, err error) {
	switch {
	case g.v2 != "":
		f, err = os.OpenFile(filepath.Join(g.v2, leafChildren, "cgroup.threads"), os.O_WRONLY, 0)
	case g.dirs["pids"] != "":
		f, err = os.OpenFile(filepath.Join(g.dirs["pids"], "tasks"), os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open group: %w", err)
	}
	return f, nil
}

func (g *cgroup) report() LimitsReport { return g.rep }

// setBackground gives the group a quarter of the ordinary share of the processor.
func (g *cgroup) setBackground(on bool) {
	dir, ok := g.dirs["cpu"]
	if !ok {
		return
	}
	file, share := "cpu.shares", int64(1024)
	if g.cpuV2 {
		file, share = "cpu.weight", 100
	}
	if on {
		share /= 4
	}
	_ = writeControl(dir, file, share)
}

// remove deletes the group. The kernel lets go of it a moment after the last process.
func (g *cgroup) remove() error {
	if g == nil {
		return nil
	}
	var errs []error
	if g.v2 != "" {
		errs = append(errs, removeGroup(filepath.Join(g.v2, leafChildren), 2*time.Second))
	}
	for controller, dir := range g.dirs {
		if err := removeGroup(dir, 2*time.Second); err != nil {
			errs = append(errs, fmt.Errorf("remove %s group: %w", controller, err))
		}
	}
	return errors.Join(errs...)
}

func removeGroup(dir string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause *= 2 {
		err := syscall.Rmdir(dir)
		if err == nil || err == syscall.ENOENT {
			return nil
		}
		if err != syscall.EBUSY || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}
