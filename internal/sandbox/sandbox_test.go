package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/sys"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	if os.Getenv(actAsOwner) != "" {
		os.Exit(ownUntilKilled())
	}
	os.Exit(m.Run())
}

// actAsOwner makes the test binary start a sandbox, name its keeper and wait.
const actAsOwner = "POMMEL_TEST_OWNER"

func ownUntilKilled() int {
	s, err := sandbox.Start(context.Background(), config())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if _, err := s.Run(context.Background(), shell(appUID, "setsid sleep 1000 & sleep 1000")); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.KeeperPid())
	<-s.Done()
	return 1
}

const (
	appUID   = 62002
	otherUID = 62003
)

func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func config() sandbox.Config {
	return sandbox.Config{
		Hostname:   "shop",
		Users:      []sandbox.User{{Name: "app", UID: appUID, Home: "/home/app"}, {Name: "other", UID: otherUID, Home: "/home/other"}},
		FilesBytes: 64 << 20,
		Limits:     sandbox.Limits{MemoryBytes: 256 << 20, Processes: 64},
	}
}

func start(tb testing.TB, cfg sandbox.Config) *sandbox.Sandbox {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("unsupported: needs root")
	}
	s, err := sandbox.Start(testContext(tb), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

func shell(uid int, script string) sandbox.Process {
	return sandbox.Process{Name: "sh", Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", UID: uid}
}

// run runs a script to its end and returns its output and exit.
func run(tb testing.TB, s *sandbox.Sandbox, p sandbox.Process) (string, sandbox.Exit) {
	tb.Helper()
	proc, err := s.Run(testContext(tb), p)
	if err != nil {
		tb.Fatal(err)
	}
	select {
	case <-proc.Done():
	case <-s.Done():
		tb.Fatalf("the sandbox ended: %v", s.Err())
	}
	return proc.Log(), proc.Exit()
}

func TestRunAndExit(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	for script, want := range map[string]string{
		"exit 7":      "exited with code 7",
		"kill -9 $$":  "killed by signal: killed",
		"true":        "exited with code 0",
		"kill -15 $$": "killed by signal: terminated",
	} {
		if _, exit := run(t, s, shell(appUID, script)); exit.String() != want {
			t.Errorf("%s: %v, want %s", script, exit, want)
		}
	}
	if out, _ := run(t, s, shell(appUID, "id -un; hostname; pwd; cat /proc/self/oom_score_adj; ulimit -c")); out != "app\nshop\n/\n0\n0" {
		t.Errorf("got %q", out)
	}
	if _, err := s.Run(testContext(t), sandbox.Process{Name: "x", Argv: []string{"nonsense"}, Env: []string{"PATH=/bin"}, Dir: "/", UID: appUID}); err == nil || !strings.Contains(err.Error(), `no program named "nonsense"`) {
		t.Errorf("unknown program: %v", err)
	}
}

// Nothing of the host or of other users is within reach.
func TestWalls(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	for name, c := range map[string]struct{ script, want string }{
		"no host files":      {"ls -d /root/* /work /mnt /sys /srv 2>/dev/null; ls /home", "app\nother"},
		"no keeper in proc":  {"ls -d /proc/1 2>&1", "ls: cannot access '/proc/1': No such file or directory"},
		"no other home":      {"ls /home/other 2>&1", "ls: cannot open directory '/home/other': Permission denied"},
		"no private folder":  {"ls /.keeper 2>&1", "ls: cannot open directory '/.keeper': Permission denied"},
		"programs are fixed": {"touch /usr/x 2>&1; touch /etc/x 2>&1", "touch: cannot touch '/usr/x': Read-only file system\ntouch: cannot touch '/etc/x': Permission denied"},
		"no network":         {"cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '", "lo"},
		"no capabilities":    {"grep -E 'Cap(Eff|Prm|Bnd|Amb)|NoNewPrivs|Seccomp:' /proc/self/status | tr -s '\\t' ' ' | sort", "CapAmb: 0000000000000000\nCapBnd: 0000000000000000\nCapEff: 0000000000000000\nCapPrm: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2"},
		"no open descriptor": {"ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3"},
		"no namespaces":      {"unshare -U true 2>&1 | sed 's/.*: //'", "Function not implemented"},
		"devices":            {"echo x > /dev/null && head -c 2 /dev/zero | wc -c; ls /dev | tr '\\n' ' '", "2\nfd full null random shm stderr stdin stdout urandom zero"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, _ := run(t, s, shell(appUID, c.script)); out != c.want {
				t.Errorf("got %q\nwant %q", out, c.want)
			}
		})
	}
}

func TestLandlockLimitsFilesAndPorts(t *testing.T) {
	t.Parallel()
	if sys.LandlockABI() < 4 {
		t.Skip("unsupported: the kernel's Landlock knows no ports")
	}
	s := start(t, config())
	server, err := s.Run(testContext(t), sandbox.Process{Name: "py", Argv: []string{"python3", "-c", `
import socket,time
a=socket.create_server(("127.0.0.1",80)); b=socket.create_server(("127.0.0.1",5432))
print("up",flush=True); time.sleep(1000)`}, Env: []string{"PATH=/usr/bin"}, Dir: "/", UID: otherUID})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(testContext(t), sandbox.Probe{TCP: "127.0.0.1:5432", Timeout: 10 * time.Second}); err != nil {
		t.Fatalf("%v\n%s", err, server.Log())
	}
	p := shell(appUID, `python3 -c '
import socket,os
for port in (80,5432):
  try: socket.create_connection(("127.0.0.1",port)); print("open",port)
  except OSError as e: print(e.strerror,port)
for f in ("/etc/passwd","/tmp/x","/home/app/x"):
  try: open(f,"a+"); print("wrote",f)
  except OSError as e: print(e.strerror,f)
try: os.listdir("/var"); print("listed")
except OSError as e: print(e.strerror,"/var")
'`)
	p.Landlock = &sys.Landlock{Read: []string{"/usr", "/lib", "/lib64", "/bin", "/etc"}, Write: []string{"/home/app", "/dev/null"}, ConnectTCP: []uint16{80}}
	want := "open 80\nPermission denied 5432\nPermission denied /etc/passwd\nPermission denied /tmp/x\nwrote /home/app/x\nPermission denied /var"
	if out, _ := run(t, s, p); out != want {
		t.Errorf("got %q\nwant %q", out, want)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	srv := shell(appUID, "cd /home/app && echo hi > index.html && exec python3 -m http.server 8080 --bind 127.0.0.1")
	if _, err := s.Run(testContext(t), srv); err != nil {
		t.Fatal(err)
	}
	yes, no := shell(appUID, "test -f /home/app/index.html"), shell(appUID, "exit 3")
	for _, p := range []sandbox.Probe{
		{HTTP: "http://127.0.0.1:8080/", Timeout: 20 * time.Second},
		{TCP: "127.0.0.1:8080", Timeout: 20 * time.Second},
		{Command: &yes, Timeout: 20 * time.Second},
	} {
		if err := s.Probe(testContext(t), p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for want, p := range map[string]sandbox.Probe{
		"404":                {HTTP: "http://127.0.0.1:8080/none", Timeout: 50 * time.Millisecond},
		"connection refused": {TCP: "127.0.0.1:9", Timeout: 50 * time.Millisecond},
		"exit code 3":        {Command: &no, Timeout: 50 * time.Millisecond},
	} {
		if err := s.Probe(testContext(t), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

func TestOwnerReachesFilesAndSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config()
	cfg.Binds = []sandbox.Bind{{From: dir, To: "/golden", Private: true}, {From: dir, To: "/world"}}
	cfg.Folders = []sandbox.Folder{{Path: "/var/lib/x", Mode: 0o700, UID: appUID}}
	s := start(t, cfg)
	if err := s.Copy(testContext(t), "/golden", "/var/lib/x/data", appUID); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(t, s, shell(appUID, "cat /var/lib/x/data/f && echo more >> /var/lib/x/data/f; echo y > /world/z")); !strings.HasPrefix(out, "x/bin/sh") || !strings.Contains(out, "Read-only") {
		t.Errorf("got %q", out)
	}
	data, err := os.ReadFile(s.Path("/var/lib/x/data/f"))
	if err != nil || string(data) != "xmore\n" {
		t.Errorf("read from outside: %q %v", data, err)
	}
}

// A signal reaches the children of a service too, and a death is an event.
func TestSignal(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	p, err := s.Run(testContext(t), shell(appUID, "sleep 1000 & wait"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(testContext(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if p.Exit().Signal != "killed" {
		t.Errorf("got %v", p.Exit())
	}
	if err := p.Signal(testContext(t), syscall.SIGKILL); err != nil {
		t.Errorf("signal to the dead: %v", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	for range 3 {
		if _, err := s.Run(testContext(t), shell(appUID, "setsid sleep 1000 & sleep 1000")); err != nil {
			t.Fatal(err)
		}
	}
	keeper := s.KeeperPid()
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", keeper))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := countInNamespace(ns); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, err := s.Run(testContext(t), shell(appUID, "true")); err == nil {
		t.Error("a closed sandbox ran something")
	}
}

func countInNamespace(ns string) int {
	n := 0
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == ns {
			n++
		}
	}
	return n
}

func TestKeeperDeathEndsAllAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	if _, err := s.Run(testContext(t), shell(appUID, "sleep 1000")); err != nil {
		t.Fatal(err)
	}
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", s.KeeperPid()))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.KeeperPid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-testContext(t).Done():
		t.Fatal("not noticed")
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("cause: %v", err)
	}
	if n := countInNamespace(ns); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if err := s.Probe(testContext(t), sandbox.Probe{TCP: "127.0.0.1:1", Timeout: time.Minute}); err == nil {
		t.Error("a dead sandbox answered")
	}
}

// When the owner is killed, everything goes with it, and the next owner clears its groups.
func TestOwnerDeathEndsAll(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("unsupported: needs root")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), actAsOwner+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	var keeper int
	if _, err := fmt.Fscanln(out, &keeper); err != nil {
		t.Fatal(err)
	}
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", keeper))
	if err != nil {
		t.Fatal(err)
	}
	watch, err := os.FindProcess(keeper)
	if err != nil {
		t.Fatal(err)
	}
	if countInNamespace(ns) < 2 {
		t.Error("the sandbox was not running")
	}
	owner := cmd.Process.Pid
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The keeper is not our child; that it has gone is seen by asking.
	for deadline := testContext(t); watch.Signal(syscall.Signal(0)) == nil; {
		if deadline.Err() != nil {
			t.Fatal("the keeper lives on")
		}
		time.Sleep(time.Millisecond)
	}
	if n := countInNamespace(ns); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if err := sandbox.Sweep(); err != nil {
		t.Error(err)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*/pommel-*-%d-*", "/sys/fs/cgroup/*/*/pommel-*-%d-*", "/sys/fs/cgroup/*/*/*/pommel-*-%d-*"} {
		if left, _ := filepath.Glob(fmt.Sprintf(pattern, owner)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// Too many processes are refused to the one that makes them; the keeper goes on.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	if !s.Report().Processes {
		t.Skipf("unsupported: %v", s.Report().Missing)
	}
	bomb, err := s.Run(testContext(t), shell(appUID, "f() { sleep 1000 & f; }; f"))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := s.Check(testContext(t)); err != nil {
			t.Fatalf("the keeper: %v", err)
		}
		_, err := s.Run(testContext(t), shell(otherUID, "true")) // may be refused, not more
		if s.Err() != nil {
			t.Fatalf("after %v: %v", err, s.Err())
		}
	}
	if err := bomb.Signal(testContext(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// A process that eats all memory dies; the keeper lives to tell of it.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	if !s.Report().Memory {
		t.Skipf("unsupported: %v", s.Report().Missing)
	}
	out, exit := run(t, s, shell(appUID, "exec python3 -c 'x=[]\nwhile True: x.append(bytearray(8<<20))'"))
	if exit.Signal != "killed" && !strings.Contains(out, "MemoryError") {
		t.Errorf("got %v %s", exit, out)
	}
	if out, _ := run(t, s, shell(appUID, "echo alive")); out != "alive" {
		t.Errorf("after it: %q", out)
	}
}

func TestProcessLimit(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	if !s.Report().Processes {
		t.Skipf("unsupported: %v", s.Report().Missing)
	}
	out, _ := run(t, s, shell(appUID, "i=0; while [ $i -lt 200 ]; do sleep 100 & i=$((i+1)); done 2>&1; true"))
	if !strings.Contains(out, "fork") {
		t.Errorf("200 processes under a limit of 64: %q", out)
	}
}

func TestBadConfigSaysWhy(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("unsupported: needs root")
	}
	cfg := config()
	cfg.Binds = []sandbox.Bind{{From: "/does/not/exist", To: "/world"}}
	if _, err := sandbox.Start(testContext(t), cfg); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkStartClose(b *testing.B) {
	for b.Loop() {
		s, err := sandbox.Start(testContext(b), config())
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	for _, f := range sandbox.Doctor(testContext(t)) {
		t.Logf("%+v", f)
		if f.Detail == "" || f.OK == (f.Remedy != "") {
			t.Errorf("unclear: %+v", f)
		}
		if f.Required && !f.OK && os.Geteuid() == 0 {
			t.Errorf("required: %+v", f)
		}
	}
}
