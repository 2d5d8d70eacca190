package rewind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	targetEnv = "REWIND_TEST_TARGET"
	insideEnv = "REWIND_TEST_INSIDE"
)

// TestMain is also the main function of the programs that are rewound (when targetEnv
// names one) and of process 1 in a test's own namespaces (when insideEnv is set).
func TestMain(m *testing.M) {
	if name := os.Getenv(targetEnv); name != "" {
		runTarget(name)
		os.Exit(0)
	}
	if os.Getenv(insideEnv) != "" {
		if err := setUpInside(); err != nil {
			fmt.Fprintln(os.Stderr, "set up namespaces:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func setUpInside() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777"); err != nil {
		return fmt.Errorf("mount shm: %w", err)
	}
	return unix.Mount("tmpfs", os.Getenv(insideEnv), "tmpfs", 0, "mode=755")
}

// inside runs the calling test in pid, mount and ipc namespaces of its own, in which the
// test is process 1: numbers of processes are its alone, and nothing can outlive it.
// It answers false in the outer process, which then has nothing more to do.
func inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		return true
	}
	t.Parallel()
	need(t)
	out, err := runInside(t, "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v=true", "-test.timeout="+testTimeout)
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "REPORT") || err != nil || os.Getenv("REWIND_TEST_VERBOSE") != "" {
			t.Log(strings.TrimSpace(line))
		}
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skip("skipped inside: " + string(out))
	}
	if err != nil {
		t.Fatalf("inside its namespaces the test failed: %v", err)
	}
	return false
}

// runInside runs this program once more, in namespaces of its own.
func runInside(t testing.TB, args ...string) ([]byte, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rewind-test-") // not t.TempDir: another user has to get through
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), insideEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.CombinedOutput()
}

const testTimeout = "1h"

// need skips only if a probe says that the kernel or our rights rule a rewind out.
func need(t testing.TB) {
	t.Helper()
	for _, f := range Probe() {
		if f.State != Yes && f.Required {
			t.Skipf("%s: %v: %s", f.Name, f.State, f.Reason)
		}
	}
}

// soak is how often heavy loops run: n, or more when POMMEL_SOAK says so.
func soak(n int) int {
	if k, err := strconv.Atoi(os.Getenv("POMMEL_SOAK")); err == nil && k > n {
		return k
	}
	return n
}

func workDir() string { return os.Getenv(insideEnv) }

// program is a target that is spoken to by lines.
type program struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	rd  *os.File
}

func startProgram(t testing.TB, cmd *exec.Cmd) *program {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	rd, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = wr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = wr.Close()
	p := &program{t: t, cmd: cmd, in: in, out: bufio.NewReader(rd), rd: rd}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
		_ = rd.Close()
	})
	return p
}

func startTarget(t testing.TB, name string, env ...string) *program {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(os.Environ(), targetEnv+"="+name), env...)
	p := startProgram(t, cmd)
	if got := p.line(); got != "ready" {
		t.Fatalf("target %s said %q", name, got)
	}
	return p
}

func (p *program) pid() int { return p.cmd.Process.Pid }

func (p *program) line() string {
	p.t.Helper()
	_ = p.rd.SetReadDeadline(time.Now().Add(30 * time.Second))
	l, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("read from the program: %v", err)
	}
	return strings.TrimSuffix(l, "\n")
}

func (p *program) ask(format string, args ...any) string {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatalf("write to the program: %v", err)
	}
	return p.line()
}

func attach(t testing.TB, opt Options) *Tree {
	t.Helper()
	opt.OwnNamespace = true
	tree, err := Attach(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

func snapshot(t testing.TB, tree *Tree) *Snapshot {
	t.Helper()
	s, err := tree.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("REPORT snapshot %+v", s.Stats())
	return s
}

func mustRewind(t testing.TB, tree *Tree, s *Snapshot) *Report {
	t.Helper()
	r, err := tree.Rewind(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustVerify(t testing.TB, tree *Tree, s *Snapshot) *Report {
	t.Helper()
	r, v, err := tree.Verify(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	if !v.OK() {
		t.Fatalf("%d differences after a rewind:\n%s", v.Count, strings.Join(v.Differences, "\n"))
	}
	if v.Pages == 0 || v.Threads == 0 {
		t.Fatalf("the proof compared nothing: %+v", v)
	}
	return r
}

// figures collects reports and prints their percentiles.
type figures struct{ all []*Report }

// rewind goes back with a proof in three rounds of four; the fourth has no proof, and its report is kept and answered.
func (f *figures) rewind(t *testing.T, tree *Tree, s *Snapshot, round int) *Report {
	t.Helper()
	if round%4 != 3 {
		mustVerify(t, tree, s)
		return nil
	}
	r := mustRewind(t, tree, s)
	f.add(r)
	return r
}

// rounds are as many as it takes to prove 300 rewinds.
const rounds = 400

func (f *figures) add(r *Report) { f.all = append(f.all, r) }

func (f *figures) print(t *testing.T, what string) {
	t.Helper()
	if len(f.all) == 0 {
		return
	}
	pick := func(get func(*Report) float64) (p10, p50, p99 float64) {
		v := make([]float64, len(f.all))
		for i, r := range f.all {
			v[i] = get(r)
		}
		sort.Float64s(v)
		at := func(q float64) float64 { return v[min(len(v)-1, int(q*float64(len(v))))] }
		return at(.1), at(.5), at(.99)
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	a, b, c := pick(func(r *Report) float64 { return us(r.Total) })
	var load [64]byte
	fd, _ := os.Open("/proc/loadavg")
	n, _ := fd.Read(load[:])
	_ = fd.Close()
	line := fmt.Sprintf("REPORT %s n=%d total us p10 %.0f p50 %.0f p99 %.0f load %s |", what, len(f.all), a, b, c, strings.Fields(string(load[:n]))[0])
	for _, part := range []struct {
		name string
		get  func(*Report) float64
	}{
		{"stop", func(r *Report) float64 { return us(r.Split.Stop) }},
		{"procs", func(r *Report) float64 { return us(r.Split.Processes) }},
		{"threads", func(r *Report) float64 { return us(r.Split.Threads) }},
		{"fds", func(r *Report) float64 { return us(r.Split.Descriptors) }},
		{"areas", func(r *Report) float64 { return us(r.Split.Areas) }},
		{"scan", func(r *Report) float64 { return us(r.Split.Scan) }},
		{"write", func(r *Report) float64 { return us(r.Split.Write) }},
		{"rearm", func(r *Report) float64 { return us(r.Split.Rearm) }},
		{"files", func(r *Report) float64 { return us(r.Split.Files) }},
		{"drain", func(r *Report) float64 { return us(r.Split.Drain) }},
		{"resume", func(r *Report) float64 { return us(r.Split.Resume) }},
		{"written", func(r *Report) float64 { return float64(r.PagesWritten) }},
		{"zeroed", func(r *Report) float64 { return float64(r.PagesZeroed) }},
		{"dropped", func(r *Report) float64 { return float64(r.PagesDropped) }},
		{"shared", func(r *Report) float64 { return float64(r.PagesShared) }},
		{"idle", func(r *Report) float64 { return float64(r.IdleProcesses) }},
		{"vmas", func(r *Report) float64 { return float64(r.Areas) }},
		{"compared", func(r *Report) float64 { return float64(r.ObjectsCompared) }},
		{"inj", func(r *Report) float64 { return float64(r.Injected) }},
	} {
		if _, m, hi := pick(part.get); hi > 0 {
			line += fmt.Sprintf(" %s %.0f", part.name, m)
		}
	}
	t.Log(line)
}

// tool finds a program that a test of the corpus needs, or skips with the reason.
func tool(t *testing.T, names ...string) string {
	t.Helper()
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	t.Skipf("inconclusive: none of %v is installed", names)
	return ""
}

// compileC builds a C program of testdata.
func compileC(t *testing.T, name string) string {
	t.Helper()
	cc := tool(t, "cc", "gcc", "clang")
	out := filepath.Join(t.TempDir(), name)
	if b, err := exec.Command(cc, "-O2", "-pthread", "-o", out, filepath.Join("testdata", name+".c"), "-lrt").CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", name, err, b)
	}
	return out
}

func isRespawn(err error) bool { return errors.Is(err, ErrNeedsRespawn) }
