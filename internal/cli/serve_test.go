package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/client"
)

// served is a `pommel serve` in a process of its own.
type served struct {
	cmd     *exec.Cmd
	address string
	exited  chan struct{}
	log     bytes.Buffer // what it wrote to standard error; whole after its end
}

// serve starts the command that this test binary is when it is called pommel.
func serve(t *testing.T, args ...string) *served {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	s := &served{exited: make(chan struct{})}
	s.cmd = exec.Command(exe)
	s.cmd.Args = append([]string{"pommel", "serve", "--json", "--addr", "127.0.0.1:0", "--traces", t.TempDir()}, args...)
	s.cmd.Env = append(os.Environ(), "POMMEL_WORLDS="+filepath.Join(root, "worlds"))
	s.cmd.Stderr = io.MultiWriter(os.Stderr, &s.log)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	go func() { _ = s.cmd.Wait(); close(s.exited) }()
	t.Cleanup(func() { s.kill(t) })
	var ready struct{ Address string }
	if err != nil || json.Unmarshal(line, &ready) != nil || ready.Address == "" {
		t.Fatalf("serve printed %q, %v", line, err)
	}
	s.address = ready.Address
	return s
}

func (s *served) kill(t *testing.T) {
	t.Helper()
	_ = s.cmd.Process.Kill()
	<-s.exited
}

func (s *served) session(t *testing.T) *client.Session {
	t.Helper()
	c, err := client.Dial(s.address, client.Options{Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	sess, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sess.Close() })
	return sess
}

// descendants are the processes below pid, with their command lines.
func descendants(pid int) map[int]string {
	out := map[int]string{}
	todo := []int{pid}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p))
		for _, f := range tasks {
			b, _ := os.ReadFile(f)
			for _, field := range strings.Fields(string(b)) {
				child, _ := strconv.Atoi(field)
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
				out[child] = strings.ReplaceAll(string(line), "\x00", " ")
				todo = append(todo, child)
			}
		}
	}
	return out
}

// find is a descendant of the server whose command line holds all words and none of the others.
func (s *served) find(t *testing.T, has, hasNot string) int {
	t.Helper()
	for pid, line := range descendants(s.cmd.Process.Pid) {
		if strings.Contains(line, has) && (hasNot == "" || !strings.Contains(line, hasNot)) {
			return pid
		}
	}
	t.Fatalf("no process with %q", has)
	return 0
}

// gone waits until none of the processes is left but as a corpse that waits for its burial.
func gone(t *testing.T, pids map[int]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for pid, line := range pids {
		for alive(pid, line) {
			select {
			case <-time.After(20 * time.Millisecond): // no event tells of a stranger's death
			case <-ctx.Done():
				t.Errorf("process %d is left over: %.120s", pid, line)
				return
			}
		}
	}
}

func alive(pid int, line string) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	now, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty for a corpse; another's when the pid was used again
	return len(now) > 0 && strings.ReplaceAll(string(now), "\x00", " ") == line
}

// groups are the control groups of worlds.
func groups() []string {
	var out []string
	for _, pattern := range []string{"/sys/fs/cgroup/pommel*/*", "/sys/fs/cgroup/*/pommel*/*", "/sys/fs/cgroup/*/*/pommel*/*", "/sys/fs/cgroup/*/*/*/pommel*/*"} {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			if st, err := os.Stat(f); err == nil && st.IsDir() && strings.Contains(f, "pommel") {
				out = append(out, f)
			}
		}
	}
	return out
}

func reset(t *testing.T, s *client.Session, task string, seed int64) *client.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := s.Reset(ctx, client.Request{Task: task, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestKilledServerLeavesNothing: the kernel ends the worlds of a server that cannot do it itself.
func TestKilledServerLeavesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, "--worlds", "2")
	a, b := s.session(t), s.session(t)
	reset(t, a, "buy-item", 1)
	reset(t, b, "add-to-cart", 2)
	below := descendants(s.cmd.Process.Pid)
	if len(below) < 6 {
		t.Fatalf("only %d processes below the server: %v", len(below), below)
	}
	go func() { _, _ = a.Step(t.Context(), "noop(1000)") }() // killed in the middle of work
	s.kill(t)
	gone(t, below)
	next := serve(t, "--worlds", "1")
	reset(t, next.session(t), "add-to-cart", 1)
	below = descendants(next.cmd.Process.Pid)
	if err := next.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-next.exited:
	case <-time.After(60 * time.Second):
		t.Fatal("the server did not stop")
	}
	if code := next.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("a server that was told to stop exits with %d", code)
	}
	gone(t, below)
	for _, g := range groups() {
		procs, _ := os.ReadFile(filepath.Join(g, "cgroup.procs"))
		if strings.Contains(g, fmt.Sprint(s.cmd.Process.Pid)) && len(procs) == 0 {
			t.Errorf("control group %s is left over", g)
		}
	}
}

// TestOneLossSparesTheOthers: of three episodes, one loses its browser and one fails by its own fault.
func TestOneLossSparesTheOthers(t *testing.T) {
	t.Parallel()
	s := serve(t, "--worlds", "3")
	sessions := []*client.Session{s.session(t), s.session(t), s.session(t)}
	reset(t, sessions[0], "add-to-cart", 1)
	victim := s.find(t, "chromium", "--type=") // only this episode runs; spare worlds may have browsers too
	for i, sess := range sessions[1:] {
		reset(t, sess, "add-to-cart", int64(i+2))
	}
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var lost, zero int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, sess := range sessions {
		wg.Go(func() {
			r, err := sess.Step(t.Context(), "finish()")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case client.KindOf(err) == client.WorldLost:
				lost++
			case err != nil:
				t.Errorf("step: %v", err)
			case r.Reward == 0 && r.Terminated && !r.Info.GetSuccess():
				zero++
			}
		})
	}
	wg.Wait()
	// The victim may have been a spare; then nobody loses anything.
	if lost > 1 || lost+zero != 3 {
		t.Errorf("%d lost, %d honest zeros", lost, zero)
	}
	for _, sess := range sessions {
		reset(t, sess, "add-to-cart", 9)
	}
}

// TestVanishedClientFreesItsWorld: a caller that falls silent loses its lease and another gets the world.
func TestVanishedClientFreesItsWorld(t *testing.T) {
	t.Parallel()
	s := serve(t, "--worlds", "1", "--lease", "2s")
	silent, waiting := s.session(t), s.session(t)
	first := reset(t, silent, "add-to-cart", 1)
	second := reset(t, waiting, "add-to-cart", 2) // waits for the lease of the first to end
	if first.EpisodeID == second.EpisodeID {
		t.Error("two callers have one episode")
	}
	if _, err := silent.Step(t.Context(), "noop()"); client.KindOf(err) != client.LeaseExpired {
		t.Errorf("a step after the lease: %v", err)
	}
}

// TestJudgeWaitsForAStoppedDatabase: a database that stands still for a while is no reward of 0.
func TestJudgeWaitsForAStoppedDatabase(t *testing.T) {
	t.Parallel()
	s := serve(t, "--worlds", "1")
	sess := s.session(t)
	reset(t, sess, "add-to-cart", 1)
	var stopped []int
	for pid, line := range descendants(s.cmd.Process.Pid) {
		if strings.Contains(line, "postgres") {
			stopped = append(stopped, pid)
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	if len(stopped) == 0 {
		t.Fatal("no PostgreSQL to stop")
	}
	resume := time.AfterFunc(3*time.Second, func() {
		for _, pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	defer resume.Stop()
	r, err := sess.Step(t.Context(), "finish()")
	if err != nil && client.KindOf(err) != client.WorldLost {
		t.Errorf("step: %v", err)
	}
	if err == nil && (!r.Terminated || r.Info.GetSuccess()) {
		t.Errorf("result = %+v", r)
	}
}
