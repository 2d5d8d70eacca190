package sandbox

import (
	"bufio"
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
// version 1. A nil cgroup limits nothing.
type cgroup struct {
	dirs     map[string]string // by controller
	rep      LimitsReport
	memoryV2 bool
}

// host is where this process's groups are.
type cgroupHost struct {
	v2 string            // "" where version 2 has not what is needed
	v1 map[string]string // by controller
}

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
	g.memoryV2 = v2
	g.rep.Memory = err == nil
	if err != nil {
		g.rep.Missing = append(g.rep.Missing, "memory limit: "+err.Error())
	}
}

func (g *cgroup) processes(h cgroupHost, name string, l Limits) {
	dir, _, err := g.dir(h, "pids", name)
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
	return dir, v2, nil
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
	leaf := filepath.Join(dir, "pommel-server")
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

func (g *cgroup) add(pid int) error {
	for controller, dir := range g.dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("put keeper into its %s group: %w", controller, err)
		}
	}
	// When memory runs out one of the world's processes is to die, not what reports it.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("-900"), 0)
	return nil
}

func (g *cgroup) report() LimitsReport { return g.rep }

// usedBytes is the memory that the sandbox uses, its files included; 0 where not known.
func (g *cgroup) usedBytes() int64 {
	dir, ok := g.dirs["memory"]
	if !ok {
		return 0
	}
	file := "memory.usage_in_bytes"
	if g.memoryV2 {
		file = "memory.current"
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// remove deletes the group. The kernel lets go of it a moment after the last process.
func (g *cgroup) remove() error {
	if g == nil {
		return nil
	}
	var errs []error
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

// findCgroups says where this process's own groups are mounted. Both files are the kernel's.
func findCgroups(selfFile, mountsFile string) (cgroupHost, error) {
	h := cgroupHost{v1: map[string]string{}}
	own, err := ownGroups(selfFile)
	if err != nil {
		return h, err
	}
	f, err := os.Open(mountsFile)
	if err != nil {
		return h, fmt.Errorf("find cgroups: %w", err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		// id parent dev root mountpoint options ... - type source superoptions
		left, right, ok := strings.Cut(sc.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 {
			continue
		}
		switch r[0] {
		case "cgroup2":
			if dir, ok := below(l[4], l[3], own[""]); ok {
				h.v2 = dir
			}
		case "cgroup":
			for _, c := range strings.Split(r[2], ",") {
				if dir, ok := below(l[4], l[3], own[c]); ok && (c == "memory" || c == "pids") {
					h.v1[c] = dir
				}
			}
		}
	}
	return h, nil
}

// ownGroups reads which group this process is in, by controller; "" is version 2.
func ownGroups(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	own := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, c := range strings.Split(parts[1], ",") {
			own[c] = parts[2]
		}
	}
	return own, nil
}

// below is the folder of a group in a mount that may show only a part of the hierarchy.
func below(mountpoint, root, group string) (string, bool) {
	if group == "" {
		return "", false
	}
	rel, err := filepath.Rel(root, group)
	if err != nil || strings.HasPrefix(rel, "..") {
		// A container sees the whole hierarchy's names but only its own part of the mount.
		rel = "."
	}
	dir := filepath.Join(mountpoint, rel)
	if _, err := os.Stat(dir); err != nil {
		return "", false
	}
	return dir, true
}

// Sweep removes the groups of servers that ended without removing them. Only groups named
// by a process of this pid namespace that no longer runs are touched.
func Sweep() error {
	host, err := findCgroups("/proc/self/cgroup", "/proc/self/mountinfo")
	if err != nil {
		return err
	}
	ns, err := sys.PidNamespace()
	if err != nil {
		return err
	}
	parents := map[string]bool{}
	if host.v2 != "" {
		parents[host.v2] = true
	}
	for _, dir := range host.v1 {
		parents[dir] = true
	}
	var errs []error
	for parent := range parents {
		groups, _ := filepath.Glob(filepath.Join(parent, fmt.Sprintf("%s%d-*", groupPrefix, ns)))
		for _, g := range groups {
			if ownerGone(filepath.Base(g)) {
				errs = append(errs, sweepGroup(g))
			}
		}
	}
	return errors.Join(errs...)
}

func ownerGone(name string) bool {
	parts := strings.Split(strings.TrimPrefix(name, groupPrefix), "-")
	if len(parts) != 4 {
		return false
	}
	pid, err1 := strconv.Atoi(parts[1])
	start, err2 := strconv.ParseUint(parts[2], 10, 64)
	return err1 == nil && err2 == nil && sys.StartTime(pid) != start
}

// sweepGroup ends what may still be dying in a group and removes it.
func sweepGroup(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	for _, line := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err := removeGroup(dir, 2*time.Second); err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	return nil
}
