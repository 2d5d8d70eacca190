package guest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	maybeServe()
	os.Exit(m.Run())
}

// listener takes the agent's messages.
type listener struct {
	t    *testing.T
	told func(wire.Message)

	mu   sync.Mutex
	last *wire.State // guarded by mu
	done chan struct{}
}

func (l *listener) Write(b []byte) (int, error) {
	var m wire.Message
	if err := json.Unmarshal(b, &m); err != nil {
		l.t.Errorf("%q: %v", b, err)
	}
	l.told(m)
	if m.State != nil {
		l.mu.Lock()
		l.last = m.State
		l.mu.Unlock()
		close(l.done)
	}
	return len(b), nil
}

const uid = 62002

// planOf is a service that comes up only where there is a file of the host's.
func planOf(folder string) wire.Plan {
	app := sandbox.Process{
		Name: "app", UID: uid, Dir: "/home/app", Env: []string{"PATH=/usr/bin:/bin"},
		Argv: []string{"sh", "-c", "test -e /flag/go || { echo nobody said go; exit 3; }; echo up > /tmp/up; exec sleep 1000"},
	}
	probe := app
	probe.Argv = []string{"test", "-e", "/tmp/up"}
	return wire.Plan{
		Sandbox: sandbox.Config{
			Hostname: "guest", Users: []sandbox.User{{Name: "app", UID: uid, Home: "/home/app"}}, FilesBytes: 16 << 20,
			Binds: []sandbox.Bind{{From: folder, To: "/flag"}},
		},
		Services: []wire.Service{{Process: app, Probe: &sandbox.Probe{Command: &probe, Timeout: time.Minute}}},
	}
}

// startOn starts the services and answers how it went and how often it was tried again.
func startOn(t *testing.T, again func(try int, folder string)) (*wire.State, int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("unsupported: sandboxes need root")
	}
	folder, tries := t.TempDir(), 0
	a := newAgent(planOf(folder))
	l := &listener{t: t, done: make(chan struct{})}
	l.told = func(m wire.Message) {
		if m.Ended != nil {
			t.Errorf("told of the end of what was not ready: %+v", m.Ended)
		}
		if strings.HasPrefix(m.Stage, "starting again") {
			tries++
			again(tries, folder)
		}
	}
	a.attach(l)
	t.Cleanup(func() {
		if err := a.end(); err != nil {
			t.Error(err)
		}
	})
	a.start()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, tries
}

// A service that was not ready in time is started afresh.
func TestStartsAgain(t *testing.T) {
	t.Parallel()
	st, tries := startOn(t, func(_ int, folder string) {
		if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o644); err != nil {
			t.Error(err)
		}
	})
	if !st.Ready || tries != 1 {
		t.Errorf("%+v after %d further tries", st, tries)
	}
}

// One that never comes up is given up, and named with its last words.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	st, tries := startOn(t, func(int, string) {})
	if st.Ready || st.Service != "app" || st.Log != "nobody said go" || !strings.Contains(st.Failed, "exited with code 3") || tries != startTries-1 {
		t.Errorf("%+v after %d further tries", st, tries)
	}
}

// A program that leaves a child behind, which keeps its output open, has ended all the same.
func TestExecute(t *testing.T) {
	t.Parallel()
	var m wire.Message
	err := execute(wire.Exec{Argv: []string{"sh", "-c", "sleep 100 & echo $!; exit 4"}, Timeout: time.Minute}, &m)
	if err != nil || m.Code != 4 {
		t.Errorf("%+v %v", m, err)
	}
	if out, err := killed(strings.TrimSpace(m.Text)); err != nil {
		t.Errorf("the child %q: %v", out, err)
	}
	if err := execute(wire.Exec{Timeout: time.Minute}, &m); err == nil {
		t.Error("nothing was run")
	}
}

// killed ends a process by its number.
func killed(pid string) (string, error) {
	var m wire.Message
	err := execute(wire.Exec{Argv: []string{"kill", "-KILL", pid}, Timeout: time.Minute}, &m)
	return m.Text, err
}
