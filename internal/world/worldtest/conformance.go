// Package worldtest is what every driver must do, as tests.
package worldtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/world"
)

// RunConformance runs the suite on a world. The test binary's TestMain calls sandbox.MaybeKeeper.
func RunConformance(t *testing.T, d world.Driver, subject Subject) {
	if err := d.Available(deadline(t)); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	if hasMachine(d) {
		// Once, before the tests that start many.
		if _, err := world.BuildMachine(deadline(t), subject.Image, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := suite{d: d, Subject: subject}
	for name, test := range map[string]func(*testing.T, suite){
		"fresh world":       testFresh,
		"reset":             testReset,
		"pool":              testPool,
		"reset of the lost": testResetLost,
		"deaths":            testDeaths,
		"leftovers":         testLeftovers,
		"cancelled start":   testCancelledStart,
		"page":              testPageReachesNothing,
		"all at once":       testAllAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// suite is a driver and the world that it is tried on.
type suite struct {
	d world.Driver
	Subject
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("no go.mod above the working folder")
}

// deadline is generous: the suite says what happens, not how fast.
func deadline(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, s suite) *world.World {
	t.Helper()
	w, err := s.d.Start(deadline(t), s.Image, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeWorld(t, w) })
	return w
}

func closeWorld(t *testing.T, w *world.World) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func do(t *testing.T, w *world.World, text string) browser.Outcome {
	t.Helper()
	calls, err := action.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.Browser().Do(deadline(t), calls)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if out.Err != nil {
		t.Fatalf("%s: %v", text, out.Err)
	}
	return out
}

func observe(t *testing.T, w *world.World) *browser.Observation {
	t.Helper()
	o, err := w.Browser().Observe(deadline(t), browser.View{})
	if err != nil {
		t.Fatalf("observe: %v", err)
	}
	return o
}

// query is one row of the judge's, as text.
func query(t testing.TB, w *world.World, sql string) string {
	t.Helper()
	rows, err := w.Reader().Query(deadline(t), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var cells []string
	for _, row := range rows.Text {
		for _, c := range row {
			if c == nil {
				cells = append(cells, "NULL")
				continue
			}
			cells = append(cells, *c)
		}
	}
	return strings.Join(cells, " ")
}

func reset(t *testing.T, s suite, w *world.World) *world.World {
	t.Helper()
	fresh, report, err := s.d.Reset(deadline(t), w)
	if err != nil {
		t.Fatalf("reset: %v", err)
	}
	t.Cleanup(func() { closeWorld(t, fresh) })
	if report.Driver != s.d.Name() || report.Took <= 0 {
		t.Errorf("report: %+v", report)
	}
	return fresh
}

// checkFresh demands all that a first episode finds.
func (s suite) checkFresh(t *testing.T, w *world.World, first *browser.Observation) {
	t.Helper()
	if err := w.Check(deadline(t)); err != nil {
		t.Fatalf("check: %v", err)
	}
	if got := query(t, w, s.Rows); got != s.Golden {
		t.Errorf("the database: %s\nwant %s", got, s.Golden)
	}
	changes, err := w.Reader().Changes(deadline(t))
	if err != nil || len(changes) > 0 {
		t.Errorf("rows changed before anybody acted: %v %v", changes, err)
	}
	o := observe(t, w)
	for _, want := range s.Shown {
		if !strings.Contains(o.Text, want) {
			t.Errorf("the page lacks %q:\n%s", want, o.Text)
		}
	}
	if len(o.Tabs) != 1 || o.Dialog != nil {
		t.Errorf("traces of an episode: %+v", o)
	}
	if first != nil && (o.Text != first.Text || o.URL != first.URL || o.VirtualTimeMS != first.VirtualTimeMS) {
		t.Errorf("not the first observation:\n%s %v\n%s\nwas %s %v\n%s", o.URL, o.VirtualTimeMS, o.Text, first.URL, first.VirtualTimeMS, first.Text)
	}
}

func testFresh(t *testing.T, s suite) {
	w := start(t, s)
	s.checkFresh(t, w, nil)
	info := w.Info()
	if info.Usage.Processes < 4 || info.Usage.MemoryMB < 20 || info.Usage.Threads <= info.Usage.Processes || info.Postgres == "" {
		t.Errorf("info: %+v", info)
	}
	if log, err := w.Log("app"); err != nil || !strings.Contains(log, s.Logged) {
		t.Errorf("log of the application: %q %v", log, err)
	}
}

// dirty changes all that a world holds.
func (s suite) dirty(t *testing.T, w *world.World) {
	t.Helper()
	s.Dirty(t, w)
	do(t, w, `new_tab()`)
	if err := w.Setup(deadline(t), s.Damage); err != nil {
		t.Fatal(err)
	}
	if got := query(t, w, s.Rows); got == s.Golden {
		t.Fatal("nothing was changed: the test proves nothing")
	}
}

// A reset brings back rows, sequences, tables, files, cookies, the page's storage, tabs
// and the first observation, again and again; the application's connections work at once.
func testReset(t *testing.T, s suite) {
	w := start(t, s)
	first := observe(t, w)
	s.checkFresh(t, w, first)
	for range 3 {
		s.dirty(t, w)
		w = reset(t, s, w)
		s.checkFresh(t, w, first)
	}
}

// The application's pool outlives the episodes: no connection of it is dead after a reset, none
// still runs a plan that was made for the tables of another episode, and none is in the middle of
// a transaction.
func testPool(t *testing.T, s suite) {
	p := s.Pool
	if p == nil {
		t.Skip("unsupported: the application has no pages that try its pool")
	}
	w := start(t, s)
	for round := range 6 {
		want := p.Row
		if round%2 == 1 {
			want = p.Wide
			if err := w.Setup(deadline(t), []postgres.Statement{{SQL: p.Widen}}); err != nil {
				t.Fatal(err)
			}
		}
		do(t, w, `goto("`+p.Many+`")`)
		o := observe(t, w)
		if got := strings.Count(o.Text, want); got != p.Times || want == p.Row && strings.Contains(o.Text, p.Wide) {
			t.Fatalf("episode %d shows %q %d times, expected %d:\n%s", round, want, got, p.Times, o.Text)
		}
		if round == 2 {
			do(t, w, `goto("`+p.Hold+`")`)
			if locks := query(t, w, `SELECT count(*) > 0 FROM pg_locks WHERE mode = 'RowExclusiveLock'`); locks != "t" {
				t.Fatal("no transaction is open: the test proves nothing")
			}
		}
		w = reset(t, s, w)
	}
}

// hostPid finds a process of the world; "|" parts names that it may have.
func hostPid(t *testing.T, w *world.World, name string) int {
	t.Helper()
	for _, m := range w.Info().Processes {
		for _, one := range strings.Split(name, "|") {
			if strings.HasPrefix(m.Name, one) {
				return m.Pid
			}
		}
	}
	t.Fatalf("no process %q among %+v", name, w.Info().Processes)
	return 0
}

// victim is a main process of a world and what the cause of the loss must name.
type victim struct{ process, names string }

func (s suite) victims() []victim {
	all := []victim{{s.App, "service app"}, {"postgres", "service db"}, {"chromium", "service browser"}, {"pommel-keeper", "keeper"}}
	if hasMachine(s.d) {
		all = append(all, victim{"qemu|firecracker", "service machine"})
	}
	return all
}

// hasMachine says whether the services of a driver's worlds run in a machine.
func hasMachine(d world.Driver) bool { return strings.HasPrefix(d.Name(), world.MicroVM().Name()) }

// inMachine says whether a process runs inside the world's machine, which may take its time to answer.
func (s suite) inMachine(t *testing.T, w *world.World, process string) bool {
	t.Helper()
	if !hasMachine(s.d) {
		return false
	}
	for ctx := deadline(t); ctx.Err() == nil; {
		guest := w.Info().Guest
		for _, m := range guest {
			if strings.HasPrefix(m.Name, process) {
				return true
			}
		}
		if len(guest) > 0 {
			return false
		}
	}
	t.Fatal("the machine does not say what runs in it")
	return false
}

// killInMachine kills a process of a machine and waits until it is gone.
func killInMachine(t *testing.T, w *world.World, process string) {
	t.Helper()
	script := "pkill -KILL -o -x " + process + "; while pgrep -x " + process + "; do sleep 0.01; done"
	if out, code, err := w.Exec(deadline(t), "sh", "-c", script); err != nil || code != 0 {
		t.Fatalf("kill %s in the machine: %q %d %v", process, out, code, err)
	}
}

func (s suite) kill(t *testing.T, w *world.World, process string) {
	t.Helper()
	if s.inMachine(t, w, process) {
		killInMachine(t, w, process)
		return
	}
	pid := w.Info().Keeper
	if process != "pommel-keeper" {
		pid = hostPid(t, w, process)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// watchEnd returns a wait for the end of a process that is not this one's child.
func watchEnd(t *testing.T, pid int) func() {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
			if n == 1 {
				return
			}
			if err != unix.EINTR {
				t.Fatalf("wait for the end of %d: %d %v", pid, n, err)
			}
		}
	}
}

// The death of any process is noticed, named, and ends calls that are under way.
func testDeaths(t *testing.T, s suite) {
	for _, v := range s.victims() {
		t.Run(v.process, func(t *testing.T) {
			t.Parallel()
			w := start(t, s)
			s.kill(t, w, v.process)
			select {
			case <-w.Lost():
			case <-deadline(t).Done():
				t.Fatal("not noticed")
			}
			if err := w.Cause(); fault.KindOf(err) != fault.WorldLost || !strings.Contains(err.Error(), v.names) {
				t.Errorf("cause: %v", err)
			}
			if err := w.Check(deadline(t)); fault.KindOf(err) != fault.WorldLost {
				t.Errorf("check: %v", err)
			}
		})
	}
	t.Run("check knows at once", func(t *testing.T) {
		t.Parallel()
		w := start(t, s)
		ended := func() {}
		if !s.inMachine(t, w, s.App) {
			ended = watchEnd(t, hostPid(t, w, s.App))
		}
		s.kill(t, w, s.App)
		ended()
		// No waiting from here on: the death came before the question.
		if err := w.Check(deadline(t)); fault.KindOf(err) != fault.WorldLost || !strings.Contains(err.Error(), "service app") {
			t.Errorf("check: %v", err)
		}
	})
	t.Run("last words", func(t *testing.T) {
		t.Parallel()
		if s.Crash == "" {
			t.Skip("unsupported: the application has no page that ends it")
		}
		w := start(t, s)
		calls, err := action.Parse(`goto(` + action.Quote(s.Crash) + `)`)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Browser().Do(deadline(t), calls) // how the page shows it is the browser's business
		<-w.Lost()
		if err := w.Cause(); !strings.Contains(err.Error(), "exited with code 3") || !strings.Contains(err.Error(), "crashing as asked") {
			t.Errorf("cause: %v", err)
		}
	})
}

// A lost world is reset like any other.
func testResetLost(t *testing.T, s suite) {
	w := start(t, s)
	first := observe(t, w)
	for _, v := range s.victims() {
		s.kill(t, w, v.process)
		<-w.Lost()
		w = reset(t, s, w)
		s.checkFresh(t, w, first)
	}
}

// After Close no process of the world is left, and its control groups are gone.
func testLeftovers(t *testing.T, s suite) {
	w := start(t, s)
	members := w.Info().Processes
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range members {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.Pid))
		if err == nil && strings.TrimSpace(string(name)) == m.Name {
			t.Errorf("process %d (%s) is left", m.Pid, m.Name)
		}
	}
	if err := w.Check(deadline(t)); fault.KindOf(err) != fault.WorldLost {
		t.Errorf("check of a closed world: %v", err)
	}
}

// A start that is given up at any moment leaves nothing and says why.
func testCancelledStart(t *testing.T, s suite) {
	stages := []string{"starting db", "starting app", "starting the browser", "loading the start page"}
	if hasMachine(s.d) {
		stages = append(stages[2:], "starting the machine")
	}
	for _, stage := range stages {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(deadline(t))
			defer cancel()
			w, err := s.d.Start(ctx, s.Image, func(s string) {
				if s == stage {
					cancel()
				}
			})
			if err == nil {
				closeWorld(t, w)
				t.Fatal("started")
			}
			if !errors.Is(err, context.Canceled) && fault.KindOf(err) != fault.Canceled && !strings.Contains(err.Error(), "cancel") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The page reaches its application and nothing else.
func testPageReachesNothing(t *testing.T, s suite) {
	w := start(t, s)
	for _, url := range []string{"http://127.0.0.1:5432/", "file:///etc/passwd", "file:///world/" + s.App, "http://localhost:1/"} {
		calls, err := action.Parse(`goto(` + action.Quote(url) + `)`)
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Browser().Do(deadline(t), calls)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		if out.Err == nil {
			t.Errorf("%s opened", url)
		}
	}
	if err := w.Check(deadline(t)); err != nil {
		t.Error(err)
	}
}

// Many at once: each is whole, and no world sees another's rows or pages.
func testAllAtOnce(t *testing.T, s suite) {
	worlds := s.Crowd
	if hasMachine(s.d) {
		worlds = 4 // each has the memory of a machine
	}
	p, err := world.NewPool(deadline(t), s.Image, s.d, world.PoolOptions{Size: worlds})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	var wg sync.WaitGroup
	for i := range worlds {
		wg.Go(func() {
			w, err := p.Acquire(deadline(t))
			if err != nil {
				t.Error(err)
				return
			}
			mark := fmt.Sprintf("Mark of world %d.", i)
			if err := w.Setup(deadline(t), []postgres.Statement{{SQL: s.Mark, Args: []any{mark}}}); err != nil {
				t.Error(err)
				return
			}
			if err := w.Browser().Navigate(deadline(t), s.MarkURL); err != nil {
				t.Error(err)
				return
			}
			o, err := w.Browser().Observe(deadline(t), browser.View{})
			if err != nil {
				t.Error(err)
				return
			}
			if strings.Count(o.Text, "Mark of world") != 1 || !strings.Contains(o.Text, mark) {
				t.Errorf("world %d shows:\n%s", i, o.Text)
			}
		})
	}
	wg.Wait()
	if st := p.Stats(); st.Failures > 0 || st.Lost > 0 {
		t.Errorf("%+v", st)
	}
}
