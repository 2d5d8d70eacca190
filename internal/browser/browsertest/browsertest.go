// Package browsertest runs a Chromium straight on the host, for tests. It is killed
// with everything it started when the test ends, and its profile is removed.
package browsertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/cdp"
)

// Process is a running browser and the pipe to it.
type Process struct {
	Conn *cdp.Conn
	// Pid is the browser's main process, which leads its own process group.
	Pid int
	// Dir is a folder of the test's own: it holds the profile.
	Dir string

	cmd    *exec.Cmd
	stderr *bytes.Buffer
}

// Launch starts a browser that may reach the given origins only.
func Launch(tb testing.TB, allow ...string) *Process {
	tb.Helper()
	return LaunchWith(tb, browser.FlagConfig{Allow: allow})
}

// LaunchWith starts a browser with settings of its own. The profile folder is the
// test's, whatever they say.
func LaunchWith(tb testing.TB, cfg browser.FlagConfig) *Process {
	tb.Helper()
	p, err := start(tb.TempDir(), cfg)
	if err != nil {
		tb.Fatalf("launch browser: %v", err)
	}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() && p.stderr.Len() > 0 {
			tb.Logf("browser says:\n%s", p.stderr)
		}
	})
	return p
}

func start(dir string, cfg browser.FlagConfig) (_ *Process, err error) {
	bin, err := browser.FindChromium()
	if err != nil {
		return nil, err
	}
	cfg.UserDataDir = filepath.Join(dir, "profile")
	if cfg.Width == 0 {
		cfg.Width, cfg.Height = 1280, 720
	}
	if cfg.Locale == "" {
		cfg.Locale = "en-US"
	}
	flags, err := browser.Flags(cfg)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
		}
	}()
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	files = append(files, inR, inW)
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	files = append(files, outR, outW)
	p := &Process{Dir: dir, stderr: &bytes.Buffer{}}
	p.cmd = exec.Command(bin, append(flags, "about:blank")...)
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "TZ=UTC", "DBUS_SESSION_BUS_ADDRESS=disabled:")
	p.cmd.ExtraFiles = []*os.File{inR, outW}
	p.cmd.Stderr = p.stderr
	// The group is killed at the end; a renderer that outlives its browser holds stderr open.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	inR.Close()
	outW.Close()
	p.Pid = p.cmd.Process.Pid
	p.Conn = cdp.New(inW, outR)
	return p, nil
}

// Kill ends the browser with its children and waits until they are gone. It may be
// called more than once.
func (p *Process) Kill() {
	p.Conn.Close()
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return
	}
	_ = p.cmd.Wait() // it was killed: the error says only that
}

// Renderers are the process ids of the browser's renderers.
func (p *Process) Renderers() []int {
	var pids []int
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, d := range dirs {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(d), "%d", &pid); err != nil {
			continue
		}
		if g, err := syscall.Getpgid(pid); err != nil || g != p.Pid {
			continue
		}
		if cmd, err := os.ReadFile(filepath.Join(d, "cmdline")); err == nil && strings.Contains(string(cmd), "--type=renderer") {
			pids = append(pids, pid)
		}
	}
	return pids
}
