package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sys"
	"github.com/pommelgym/pommel/rewind"
)

// Finding is one thing that was looked at on this host.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Remedy says what to do when it is not well.
	Remedy string `json:"remedy,omitempty"`
	// Required says that worlds cannot run without it.
	Required bool `json:"required"`
}

// Doctor tries what sandboxes need on this host. It makes a real one.
func Doctor(ctx context.Context) []Finding {
	out := []Finding{rootFinding()}
	box, report, clock, err := tryOut(ctx)
	out = append(out, box)
	if err == nil {
		out = append(out, clock)
		out = append(out, limitFinding("memory limit", report.Memory, report), limitFinding("process limit", report.Processes, report))
	}
	return append(append(out, landlockFinding()), rewindFindings()...)
}

func rootFinding() Finding {
	f := Finding{Name: "root", OK: os.Geteuid() == 0, Required: true, Detail: fmt.Sprintf("user id %d", os.Geteuid())}
	if !f.OK {
		f.Remedy = "run as root: worlds are namespaces and mounts, and their processes other users"
	}
	return f
}

// tryOut starts a sandbox and a process in it.
func tryOut(ctx context.Context) (box Finding, limits LimitsReport, clock Finding, err error) {
	f := Finding{Name: "sandbox", Required: true}
	fail := func(err error) (Finding, LimitsReport, Finding, error) {
		f.Detail, f.Remedy = err.Error(), fault.HintOf(err)
		if f.Remedy == "" {
			f.Remedy = "a container needs CAP_SYS_ADMIN and may not filter mount and namespace calls (docker run --privileged)"
		}
		return f, LimitsReport{}, Finding{}, err
	}
	s, err := Start(ctx, Config{
		Hostname: "doctor", FilesBytes: 16 << 20, Users: []User{{Name: "app", UID: 62002, Home: "/home/app"}},
		Limits: Limits{MemoryBytes: 128 << 20, Processes: 64},
		Clock:  &Clock{Start: time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC), Label: "doctor"},
	})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = s.Close() }()
	p, err := s.Run(ctx, Process{Name: "true", Argv: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", UID: 62002})
	if err != nil {
		return fail(err)
	}
	select {
	case <-p.Done():
	case <-s.Done():
		return fail(s.Err())
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	if p.Exit() != (Exit{}) {
		return fail(fmt.Errorf("a process inside %v", p.Exit()))
	}
	f.OK, f.Detail = true, "namespaces, mounts, users and a file system in memory work"
	return f, s.Report(), clockFinding(s.Clocked()), nil
}

func clockFinding(err error) Finding {
	if err != nil {
		return Finding{
			Name: "world clock", Detail: err.Error(),
			Remedy: "needs amd64, seccomp user notification and CAP_SYS_PTRACE; without it application and database live by the real clock with the kernel's random numbers, and episodes are not reproducible where they show",
		}
	}
	return Finding{Name: "world clock", OK: true, Detail: "programs live by the world's clock and the episode's seed"}
}

func limitFinding(name string, ok bool, r LimitsReport) Finding {
	f := Finding{Name: name, OK: ok, Detail: "kept by the kernel"}
	if ok {
		return f
	}
	f.Remedy = "run the server in a control group of its own with the memory and pids controllers (systemd: Delegate=yes)"
	for _, m := range r.Missing {
		if rest, found := strings.CutPrefix(m, name+": "); found {
			f.Detail = rest
		}
	}
	return f
}

func landlockFinding() Finding {
	abi := sys.LandlockABI()
	f := Finding{Name: "landlock", OK: abi >= 4, Detail: fmt.Sprintf("ABI version %d", abi)}
	if !f.OK {
		f.Remedy = "a kernel from 6.7 with landlock in its lsm= list keeps the browser from files and ports by itself; without it users and namespaces do"
	}
	return f
}

// rewindRemedies say what helps where a host lacks what resets in place need.
var rewindRemedies = map[string]string{
	"pagemap_scan":           "a kernel from 6.7 (PAGEMAP_SCAN)",
	"wp_async":               "a kernel from 6.7 with CONFIG_USERFAULTFD and CONFIG_PTE_MARKER_UFFD_WP",
	"pidfd_getfd":            "a kernel from 5.6, and a container that does not filter pidfd_getfd",
	"ptrace":                 "CAP_SYS_PTRACE, and kernel.yama.ptrace_scope below 3",
	"ptrace_suspend_seccomp": "CAP_SYS_ADMIN and a kernel with CONFIG_CHECKPOINT_RESTORE",
	"set_tid":                "CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN",
	"fanotify_dfid_name":     "a kernel from 5.9 with CONFIG_FANOTIFY, and CAP_SYS_ADMIN",
}

// rewindFindings are about what resets in place need; worlds run without, and are
// respawned after each episode.
func rewindFindings() []Finding {
	var out []Finding
	for _, f := range rewind.Probe() {
		one := Finding{Name: "rewind: " + f.Name, OK: f.State != rewind.No, Detail: "works"}
		switch f.State {
		case rewind.Inconclusive:
			one.Detail = "could not be tried: " + f.Reason
		case rewind.No:
			one.Detail = f.Reason
			one.Remedy = "worlds are respawned without it"
			if r := rewindRemedies[f.Name]; r != "" {
				one.Remedy = r + "; " + one.Remedy
			}
		}
		out = append(out, one)
	}
	return out
}
