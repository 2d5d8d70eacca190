package rewind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFamily: processes that share memory and sockets, that end and that come, and every kind of descriptor.
func TestFamily(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startProgram(t, exec.Command(compileC(t, "family")))
	p.line()
	p.ask("a")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	want := p.ask("q")
	answer := p.ask("a")
	mustVerify(t, tree, s)
	var f figures
	made, ended, open := 0, 0, 0
	for i := range soak(300) {
		if i == 20 {
			open = openFiles(t)
		}
		switch i % 7 {
		case 5:
			p.ask("y%d", i%3)
		case 1:
			p.ask("k%d", i%3)
		case 2:
			p.ask("s")
		case 3:
			p.ask("d")
		case 4:
			p.ask("k0")
			p.ask("s")
			p.ask("d")
		default:
			p.ask("a")
		}
		r := mustVerify(t, tree, s)
		made += r.ProcessesMade
		ended += r.ProcessesEnded
		if got := p.ask("q"); got != want {
			t.Fatalf("round %d: state %q, was %q", i, got, want)
		}
		if got := p.ask("a"); got != answer {
			t.Fatalf("round %d: the children answer %q, answered %q", i, got, answer)
		}
		if got := p.ask("e"); !strings.HasPrefix(got, "1 of") {
			t.Fatalf("round %d: the epoll set does not work: %s", i, got)
		}
		f.add(mustRewind(t, tree, s))
	}
	if n := openFiles(t); n > open+2 {
		t.Errorf("%d descriptors are open in the tracer, %d were after 20 rounds", n, open)
	}
	if made == 0 || ended == 0 {
		t.Fatalf("%d processes were made again, %d ended: the test tests nothing", made, ended)
	}
	f.print(t, "family")
}

func openFiles(t *testing.T) int {
	t.Helper()
	l, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(l)
}

// TestFiles: contents and names on the tree's tmpfs.
func TestFiles(t *testing.T) {
	if !inside(t) {
		return
	}
	dir := filepath.Join(workDir(), "state")
	for _, d := range []string{dir, dir + "/sub", dir + "/sub/deep"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a", strings.Repeat("0123456789", 5000))
	write("sub/b", "b")
	write("sub/deep/c", "c")
	write("empty", "")
	if err := os.Symlink("a", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, exec.Command("/bin/sh", "-c", "echo ready; while read -r l; do eval \"$l\"; echo done; done"))
	p.line()
	p.ask("cd %s; exec 7<a; read -r x <&7 || true", dir)
	tree := attach(t, Options{Roots: []int{p.pid()}, Dirs: []string{dir}})
	s := snapshot(t, tree)
	ops := []string{
		"echo x >> a", "rm a; echo new > a", "mv a z; echo y > z", "rm -r sub", "mv sub other", "mkdir -p n/m; echo 1 > n/m/f",
		"chmod 600 a; touch -d 2001-01-01 sub/b", "ln a hard; echo q >> hard", "rm link; ln -s sub/b link", "mv sub/deep/c sub/b",
		"truncate -s 3 a", ": > a", "mkfifo ff; rm empty", "mv sub/deep up; rm up/c; echo c2 > up/c", "rm -r sub; mkdir sub; echo n > sub/b",
	}
	for i := range soak(20 * len(ops)) {
		p.ask("%s", ops[i%len(ops)])
		if i%7 == 0 {
			p.ask("%s", ops[(i*5+3)%len(ops)])
		}
		mustVerify(t, tree, s)
		b, err := os.ReadFile(dir + "/sub/deep/c")
		if err != nil || string(b) != "c" {
			t.Fatalf("after %q: sub/deep/c holds %q, %v", ops[i%len(ops)], b, err)
		}
	}
}

// TestOutsidePeers: a connection to the outside that the program closes in the episode is
// seen to end by its peer at once, and by the program after the rewind.
func TestOutsidePeers(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startProgram(t, exec.Command(tool(t, "/usr/bin/python3", "python3"), "-u", "-c", `
import socket, sys
l = socket.create_server(("127.0.0.1", 0)); print("ready"); print(l.getsockname()[1])
c, _ = l.accept(); c.sendall(b"hello\n")
for line in sys.stdin:
    w = line.strip()
    if w == "close": c.close(); print("closed")
    if w == "say": c.sendall(b"again\n"); print("said")
    if w == "read": print(repr(c.recv(10)))
`))
	p.line()
	conn, err := net.Dial("tcp", "127.0.0.1:"+p.line())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReader(conn)
	if l, err := in.ReadString('\n'); err != nil || l != "hello\n" {
		t.Fatal(l, err)
	}
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	for range 20 {
		p.ask("say")
		if l, err := in.ReadString('\n'); err != nil || l != "again\n" {
			t.Fatal(l, err)
		}
		mustVerify(t, tree, s)
	}
	p.ask("close")
	if _, err := in.ReadByte(); err == nil {
		t.Fatal("the peer of a closed connection still reads")
	}
	if r := mustVerify(t, tree, s); r.ConnectionsEnded != 1 {
		t.Fatalf("%d connections ended, want 1", r.ConnectionsEnded)
	}
	if got := p.ask("read"); got != "b''" {
		t.Fatalf("the program reads %s from a connection whose peer is gone", got)
	}
	mustVerify(t, tree, s)
}

func odd(t *testing.T, args ...string) *program {
	t.Helper()
	p := startProgram(t, exec.Command(compileC(t, "odd"), args...))
	if l := p.line(); l == "none" {
		t.Skip("inconclusive: this kernel makes no io_uring")
	}
	return p
}

func refused(t *testing.T, err error, want Reason) {
	t.Helper()
	var r *RefusedError
	if !errors.As(err, &r) || !errors.Is(err, ErrRefused) || r.Reason != want {
		t.Fatalf("got %v, want a refusal for %s", err, want)
	}
}

func respawn(t *testing.T, err error, want Reason, ended bool) {
	t.Helper()
	var r *NeedsRespawnError
	if !errors.As(err, &r) || !errors.Is(err, ErrNeedsRespawn) || r.Reason != want || r.Ended != ended {
		t.Fatalf("got %v, want a respawn for %s, ended %v", err, want, ended)
	}
}

// TestRefusals: what cannot be rewound is refused before anything is done, and the program goes on.
func TestRefusals(t *testing.T) {
	if !inside(t) {
		return
	}
	for _, c := range []struct {
		args []string
		want Reason
	}{
		{[]string{"uring"}, ReasonIOUring},
		{[]string{"trap"}, ReasonSignal},
		{[]string{"foreign", filepath.Join(t.TempDir(), "f")}, ReasonFile},
	} {
		p := odd(t, c.args...)
		tree := attach(t, Options{Roots: []int{p.pid()}})
		_, err := tree.Snapshot(context.Background())
		refused(t, err, c.want)
		if got := p.ask("q"); got != "here" {
			t.Fatalf("%s: the program does not go on: %s", c.args[0], got)
		}
		_ = tree.Close()
	}
	p := odd(t)
	tree := attach(t, Options{Roots: []int{p.pid()}, QuietTimeout: 300 * time.Millisecond})
	p.ask("s")
	_, err := tree.Snapshot(context.Background())
	refused(t, err, ReasonBusy)
}

// TestSeccomp: a program that may make three system calls only is rewound by calls made inside it.
func TestSeccomp(t *testing.T) {
	if !inside(t) {
		return
	}
	p := odd(t, "filter")
	p.ask("n")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	for i := range 50 {
		if got := p.ask("n"); got != "1" {
			t.Fatalf("round %d: %s", i, got)
		}
		p.ask("n")
		mustVerify(t, tree, s)
	}
}

// TestStall: a thread that does not stop is noticed in time, and the tree is left as it is.
func TestStall(t *testing.T) {
	if !inside(t) {
		return
	}
	p := odd(t)
	tree := attach(t, Options{Roots: []int{p.pid()}, StopTimeout: 300 * time.Millisecond})
	s := snapshot(t, tree)
	p.ask("q")
	mustVerify(t, tree, s)
	p.ask("v")
	waitFor(t, func() bool { return len(children(p.pid(), nil)) > 0 })
	begin := time.Now()
	_, err := tree.Rewind(context.Background(), s)
	respawn(t, err, ReasonStall, false)
	if d := time.Since(begin); d > 10*time.Second {
		t.Fatalf("it took %v to notice", d)
	}
	if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid())); !strings.Contains(string(b), "TracerPid:\t0") {
		t.Fatal("the program is still traced")
	}
}

// TestRootGone: a root that has replaced its program or ended cannot be rewound.
func TestRootGone(t *testing.T) {
	if !inside(t) {
		return
	}
	for _, c := range []string{"x", "e"} {
		p := odd(t)
		tree := attach(t, Options{Roots: []int{p.pid()}})
		s := snapshot(t, tree)
		if _, err := fmt.Fprintln(p.in, c); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool {
			exe := readLink(fmt.Sprintf("/proc/%d/exe", p.pid()))
			return !strings.HasSuffix(exe, "odd")
		})
		_, err := tree.Rewind(context.Background(), s)
		respawn(t, err, ReasonRootGone, false)
		_ = tree.Close()
	}
}

// TestSavedPagesGoWhereTheyWere: a process that is made again inherits all that its parent has
// mapped, also where its own saved pages lay.
func TestSavedPagesGoWhereTheyWere(t *testing.T) {
	if !inside(t) {
		return
	}
	const secondArena = firstArena + arenaSize
	p := startProgram(t, exec.Command(compileC(t, "beside"), fmt.Sprintf("%#x", uint64(secondArena))))
	child, err := strconv.Atoi(p.line())
	if err != nil {
		t.Fatal(err)
	}
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	if got := tree.procs[child].arena.at; got != secondArena {
		t.Fatalf("the saved pages of the child lie at %#x, and so this tests nothing", got)
	}
	for range 20 {
		if err := unix.Kill(child, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return taskState(child, child) == 'Z' })
		if r := mustVerify(t, tree, s); r.ProcessesMade != 1 {
			t.Fatalf("%d processes were made again", r.ProcessesMade)
		}
		p.ask("")
	}
}

// TestURingLater: rings that are made in the episode rule the rewind out.
func TestURingLater(t *testing.T) {
	if !inside(t) {
		return
	}
	p := odd(t)
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	if p.ask("u") == "none" {
		t.Skip("inconclusive: this kernel makes no io_uring")
	}
	mustVerify(t, tree, s) // an idle ring is only a descriptor and closed like any other
	if got := p.ask("q"); got != "here" {
		t.Fatal(got)
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}
