package sandbox

import (
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
	// Only groups of version 2 have this part.
	if err := removeGroup(filepath.Join(dir, leafChildren), 2*time.Second); err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	if err := removeGroup(dir, 2*time.Second); err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	return nil
}
