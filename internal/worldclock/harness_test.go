//go:build amd64

package worldclock_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pommelgym/pommel/internal/sys"
	"github.com/pommelgym/pommel/internal/worldclock"
)

// t0 is the instant that the worlds of these tests start at; it lies far from the real one.
var t0 = time.Date(2023, 11, 14, 22, 13, 20, 123456789, time.UTC)

// clocked is a clock and what runs under it.
type clocked struct {
	t      *testing.T
	page   *worldclock.Page
	sup    *worldclock.Supervisor
	source *worldclock.Source
	failed chan error
}

func newClock(t *testing.T) *clocked {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("unsupported: needs root")
	}
	dir := t.TempDir()
	for d := dir; d != "/tmp"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "page")
	f, err := worldclock.CreatePage(path, t0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, err := worldclock.OpenPage(f, true)
	if err != nil {
		t.Fatal(err)
	}
	c := &clocked{t: t, page: page, source: worldclock.NewSource("test"), failed: make(chan error, 16)}
	c.sup = worldclock.New(worldclock.Options{Page: page, Path: path, Source: c.source, Report: func(err error) { c.failed <- err }})
	t.Cleanup(func() {
		c.sup.Wait()
		select {
		case err := <-c.failed:
			t.Error(err)
		default:
		}
		_ = page.Close()
	})
	return c
}

func (c *clocked) set(at time.Time) {
	c.t.Helper()
	if err := c.page.Set(at); err != nil {
		c.t.Fatal(err)
	}
}

// process is a running program.
type process struct {
	pid   int
	stdin io.WriteCloser
	out   *os.File
	pidfd int
}

func (c *clocked) start(argv ...string) *process {
	c.t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		c.t.Fatal(err)
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	defer inR.Close()
	defer outW.Close()
	pid, err := sys.ForkConfined(sys.Confinement{Notify: func(fd int) { c.sup.Serve(fd, "test") }}, path, argv, &syscall.ProcAttr{
		Env: []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "HOME=/nonexistent", "LANG=C.UTF-8"}, Dir: "/", Files: []uintptr{inR.Fd(), outW.Fd(), 2},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	p := &process{pid: pid, stdin: inW, out: outR}
	if p.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { p.end() })
	return p
}

// end kills what is left of the process's session and takes its end.
func (p *process) end() {
	if p.pidfd < 0 {
		return
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	_ = p.stdin.Close()
	p.wait()
	_ = p.out.Close()
}

// wait waits for the end by a handle: a wait for the process could take stops of a trace.
func (p *process) wait() unix.WaitStatus {
	poll := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	for {
		if n, err := unix.Poll(poll, 60_000); err != unix.EINTR {
			_ = n
			break
		}
	}
	var st unix.WaitStatus
	_, _ = unix.Wait4(p.pid, &st, unix.WNOHANG, nil)
	_ = unix.Close(p.pidfd)
	p.pidfd = -1
	return st
}

// run runs a program to its end and gives what it wrote.
func (c *clocked) run(argv ...string) string {
	c.t.Helper()
	p := c.start(argv...)
	_ = p.stdin.Close()
	var out bytes.Buffer
	_ = p.out.SetReadDeadline(time.Now().Add(15 * time.Second))
	if _, err := io.Copy(&out, p.out); err != nil {
		c.t.Fatalf("%q: %v after %s", argv, err, out.String())
	}
	if st := p.wait(); st.ExitStatus() != 0 {
		c.t.Fatalf("%q ended with %#x: %s", argv, int(st), out.String())
	}
	_ = p.out.Close()
	return strings.TrimSpace(out.String())
}

// build compiles a C program; static ones have no loader that could be asked for another clock.
func build(t *testing.T, source string, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("unsupported: there is no C compiler")
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "program")
	file := filepath.Join(dir, "program.c")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if text, err := exec.CommandContext(ctx, cc, append([]string{"-O1", "-pthread", "-o", out, file}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}
