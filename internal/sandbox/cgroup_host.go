package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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
				// Where this process moved itself to make room for its sandboxes.
				h.v2 = strings.TrimSuffix(dir, "/"+serverLeaf)
			}
		case "cgroup":
			for _, c := range strings.Split(r[2], ",") {
				if dir, ok := below(l[4], l[3], own[c]); ok && wanted(c) {
					h.v1[c] = dir
				}
			}
		}
	}
	return h, nil
}

func wanted(controller string) bool {
	return controller == "memory" || controller == "pids" || controller == "cpu"
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
