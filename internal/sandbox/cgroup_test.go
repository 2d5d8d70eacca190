package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pommelgym/pommel/internal/sys"
)

// A host with version 2 alone, as the kernel shows it to a service of systemd and to a container.
func TestFindCgroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		self, mounts, exist string
		v2                  string
		v1                  map[string]string
	}{
		"unified": {
			self: "0::/system.slice/pommel.service\n", exist: "cg/system.slice/pommel.service",
			mounts: "30 24 0:26 / DIR/cg rw,nosuid - cgroup2 cgroup2 rw\n", v2: "cg/system.slice/pommel.service",
		},
		"unified, moved aside": {
			self: "0::/system.slice/pommel.service/pommel-server\n", exist: "cg/system.slice/pommel.service/pommel-server",
			mounts: "30 24 0:26 / DIR/cg rw,nosuid - cgroup2 cgroup2 rw\n", v2: "cg/system.slice/pommel.service",
		},
		"container": {
			self: "0::/\n", exist: "cg", mounts: "30 24 0:26 / DIR/cg rw - cgroup2 cgroup2 rw\n", v2: "cg",
		},
		"version 1": {
			self: "8:pids:/a\n4:memory:/b/c\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n", exist: "pids/a,mem/b/c,cpu",
			mounts: "1 2 0:1 / DIR/pids rw - cgroup cgroup rw,pids\n1 2 0:1 / DIR/mem rw - cgroup cgroup rw,memory\n1 2 0:1 / DIR/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
			v1:     map[string]string{"pids": "pids/a", "memory": "mem/b/c", "cpu": "cpu"},
		},
		"version 1 in a container": {
			self: "4:memory:/docker/1234\n", exist: "mem",
			mounts: "1 2 0:1 /docker/1234 DIR/mem rw - cgroup cgroup rw,memory\n", v1: map[string]string{"memory": "mem"},
		},
		"none": {self: "", mounts: "", exist: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, e := range strings.Split(c.exist, ",") {
				if err := os.MkdirAll(filepath.Join(dir, e), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			h, err := findCgroups(write("self", c.self), write("mounts", c.mounts))
			if err != nil {
				t.Fatal(err)
			}
			want := c.v2
			if want != "" {
				want = filepath.Join(dir, want)
			}
			if h.v2 != want || len(h.v1) != len(c.v1) {
				t.Errorf("got %+v", h)
			}
			for k, v := range c.v1 {
				if h.v1[k] != filepath.Join(dir, v) {
					t.Errorf("%s: %s", k, h.v1[k])
				}
			}
		})
	}
}

// The threaded part of a version 2 group takes what a thread of another process forks.
func TestChildrenAreBornInTheirPartOfAGroup(t *testing.T) {
	// Not parallel: it moves this process, and with it whatever other tests start meanwhile.
	host, err := findCgroups("/proc/self/cgroup", "/proc/self/mountinfo")
	if err != nil || host.v2 == "" || os.Geteuid() != 0 {
		t.Skipf("unsupported: no control groups of version 2 for this user (%v)", err)
	}
	name, err := freeName()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(host.v2, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	g := &cgroup{dirs: map[string]string{"memory": dir}, v2: dir}
	defer func() {
		if err := g.remove(); err != nil {
			t.Error(err)
		}
	}()
	if err := makeLeaf(dir); err != nil {
		t.Fatal(err)
	}
	// A keeper stands in for by a process that only waits; its threads are not ours to move.
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := moveSelf(dir); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := moveSelf(host.v2); err != nil {
			t.Error(err)
		}
	}()
	entry, err := g.entry()
	if err != nil {
		t.Fatal(err)
	}
	defer entry.Close()
	pid, err := sys.ForkConfined(sys.Confinement{Tasks: entry}, "/bin/cat", []string{"cat", "/proc/self/cgroup"}, &syscall.ProcAttr{Files: []uintptr{0, out.Fd(), 2}, Sys: &syscall.SysProcAttr{}})
	_ = out.Close()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, _ := in.Read(buf)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(buf[:n]), name+"/"+leafChildren) {
		t.Errorf("born in %s", buf[:n])
	}
}

func moveSelf(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0)
}

func TestOwnerGone(t *testing.T) {
	t.Parallel()
	own, err := groupOwner()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		own + "abc": false, "pommel-1-999999999-5-abc": true, "pommel-server": false, "pommel-1-x-5-abc": false,
	} {
		if got := ownerGone(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
