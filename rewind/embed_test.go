package rewind

import (
	"context"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// TestUnrelated: the tracer is not the parent of the tree.
func TestUnrelated(t *testing.T) {
	if !inside(t) {
		return
	}
	bin := compileC(t, "family")
	sh := startProgram(t, exec.Command("/bin/sh", "-c", `exec 3<&0; "$0" <&3 & echo $!; wait`, bin))
	pid, err := strconv.Atoi(sh.line())
	if err != nil {
		t.Fatal(err)
	}
	if l := sh.line(); l != "ready" {
		t.Fatal(l)
	}
	sh.ask("a")
	tree, err := Attach(Options{Roots: []int{pid}})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	s := snapshot(t, tree)
	want := sh.ask("q")
	mustVerify(t, tree, s)
	for i := range soak(50) {
		sh.ask("a")
		if i%2 == 1 {
			sh.ask("k1")
		}
		mustVerify(t, tree, s)
		if got := sh.ask("q"); got != want {
			t.Fatalf("round %d: state %q, was %q", i, got, want)
		}
	}
}

// TestEmbedding: a program that reaps its own children holds the lock, and hears of ends that were noticed by the tree.
func TestEmbedding(t *testing.T) {
	if !inside(t) {
		return
	}
	var mu sync.Mutex
	held, ended := 0, 0
	lock := &countingLock{mu: &mu, held: &held}
	p := startProgram(t, exec.Command(compileC(t, "family")))
	p.line()
	tree := attach(t, Options{Roots: []int{p.pid()}, ReapLock: lock, OnExit: func(pid, status int) {
		if held == 0 {
			t.Error("an end is told outside the lock")
		}
		ended++
	}})
	s := snapshot(t, tree)
	for range 20 {
		p.ask("s") // leaves a grandchild to this process
		mustVerify(t, tree, s)
	}
	if ended < 20 {
		t.Fatalf("%d ends were told, want at least 20", ended)
	}
	var st syscall.WaitStatus
	if pid, err := syscall.Wait4(-1, &st, syscall.WNOHANG, nil); pid != 0 {
		t.Fatalf("there is a child left to reap: %d, %v, %v", pid, st, err)
	}
}

type countingLock struct {
	mu   *sync.Mutex
	held *int
}

func (l *countingLock) Lock()   { l.mu.Lock(); *l.held++ }
func (l *countingLock) Unlock() { *l.held--; l.mu.Unlock() }

// TestMisuse: wrong calls are answered with errors and do no harm.
func TestMisuse(t *testing.T) {
	if !inside(t) {
		return
	}
	if _, err := Attach(Options{}); err == nil {
		t.Error("a tree without roots was accepted")
	}
	if _, err := Attach(Options{Roots: []int{1 << 21}}); err == nil {
		t.Error("a root that does not exist was accepted")
	}
	p := startTarget(t, "memory")
	if _, err := Attach(Options{Roots: []int{p.pid()}, Dirs: []string{"/"}}); err == nil {
		t.Error("a folder on no tmpfs was accepted")
	}
	ctx := context.Background()
	tree := attach(t, Options{Roots: []int{p.pid()}})
	other := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	if _, err := other.Rewind(ctx, s); !isRespawn(err) {
		t.Errorf("another tree's snapshot: %v", err)
	}
	if err := s.Release(); err == nil {
		t.Error("the snapshot that the tree is at was released")
	}
	p.ask("mutate")
	s2 := checkpoint(t, tree, s)
	if _, err := tree.Checkpoint(ctx, s); err == nil {
		t.Error("a checkpoint above a state that the tree is not at was taken")
	}
	if err := s.Release(); err != nil {
		t.Error(err)
	}
	if err := s.Release(); err != nil {
		t.Errorf("a second release: %v", err)
	}
	if _, err := tree.Rewind(ctx, s); !isRespawn(err) {
		t.Errorf("a released snapshot: %v", err)
	}
	mustVerify(t, tree, s2)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := tree.Rewind(gone, s2); !isRespawn(err) {
		t.Errorf("a context that has ended: %v", err)
	}
	mustVerify(t, tree, s2)
	for range 2 {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := tree.Rewind(ctx, s2); err == nil {
		t.Error("a closed tree rewinds")
	}
	if got := p.ask("state"); got == "" {
		t.Error("the program does not go on after Close")
	}
}

// TestFailedCheckpoint: a checkpoint that fails half-way does not spoil the snapshots that are there.
func TestFailedCheckpoint(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startProgram(t, exec.Command(compileC(t, "family")))
	p.line()
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	want := p.ask("q")
	for i := range 10 {
		p.ask("a")
		p.ask("o /tmp/%d", i) // opens a file that nobody puts back, in the process that is saved first
		_, err := tree.Checkpoint(context.Background(), s)
		refused(t, err, ReasonFile)
		mustVerify(t, tree, s)
		if got := p.ask("q"); got != want {
			t.Fatalf("round %d: state %q, was %q", i, got, want)
		}
	}
}

// TestDamage: a rewind that fails after it has begun ends the tree; none is handed back half rewound.
func TestDamage(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startProgram(t, exec.Command(tool(t, "/usr/bin/python3", "python3"), "-u", "-c", `
import os, sys
r, w = os.pipe(); os.write(w, b"abc"); print("ready")
for line in sys.stdin: print(os.read(r, 1) if line.strip() == "read" else "here")
`))
	p.line()
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree) // bytes that nobody fetches are part of the state
	p.ask("look")
	mustVerify(t, tree, s)
	p.ask("read")
	for range 2 {
		_, err := tree.Rewind(context.Background(), s)
		respawn(t, err, ReasonDescriptor, true)
	}
	waitFor(t, func() bool { s := taskState(p.pid(), p.pid()); return s == 'Z' || s == 0 })
}
