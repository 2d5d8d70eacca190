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

// RunConformance runs the suite. The test binary's TestMain calls sandbox.MaybeKeeper.
func RunConformance(t *testing.T, d world.Driver) {
	if err := d.Available(deadline(t)); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	if d.Name() == world.MicroVMClone().Name() && os.Getenv("POMMEL_SOAK") == "" {
		t.Skip("slow: what is tried here of copies of machines, the driver microvm does too; POMMEL_SOAK=1 runs it")
	}
	img := MiniImage(t)
	if hasMachine(d) {
		// Once, before the tests that start many.
		if _, err := world.BuildMachine(deadline(t), img, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]func(*testing.T, world.Driver, *world.Image){
		"fresh world":       testFresh,
		"reset":             testReset,
		"reset of the lost": testResetLost,
		"deaths":            testDeaths,
		"leftovers":         testLeftovers,
		"cancelled start":   testCancelledStart,
		"page":              testPageReachesNothing,
		"all at once":       testAllAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, d, img)
		})
	}
}

// MiniImage builds the small test world that the suite runs on.
func MiniImage(tb testing.TB) *world.Image {
	tb.Helper()
	dir, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	s, err := world.Load(filepath.Join(dir, "internal", "world", "testdata", "worlds", "mini"))
	if err != nil {
		tb.Fatal(err)
	}
	img, err := world.BuildImage(deadline(tb), s, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return img
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

func start(t *testing.T, d world.Driver, img *world.Image) *world.World {
	t.Helper()
	w, err := d.Start(deadline(t), img, nil)
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
func query(t *testing.T, w *world.World, sql string) string {
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

func reset(t *testing.T, d world.Driver, w *world.World) *world.World {
	t.Helper()
	fresh, report, err := d.Reset(deadline(t), w)
	if err != nil {
		t.Fatalf("reset: %v", err)
	}
	t.Cleanup(func() { closeWorld(t, fresh) })
	if report.Driver != d.Name() || report.Took <= 0 {
		t.Errorf("report: %+v", report)
	}
	return fresh
}

// checkFresh demands all that a first episode finds.
func checkFresh(t *testing.T, w *world.World, first *browser.Observation) {
	t.Helper()
	if err := w.Check(deadline(t)); err != nil {
		t.Fatalf("check: %v", err)
	}
	const all = `SELECT count(*), max(id), max(ticket), (SELECT last_value FROM ticket_no), to_regclass('junk') IS NULL FROM note`
	if got := query(t, w, all); got != "2 501 1005 1005 t" {
		t.Errorf("the database: %s", got)
	}
	changes, err := w.Reader().Changes(deadline(t))
	if err != nil || len(changes) > 0 {
		t.Errorf("rows changed before anybody acted: %v %v", changes, err)
	}
	o := observe(t, w)
	for _, want := range []string{"500/1000 first", "501/1005 second", "file=", "cookie=none", "stored=none"} {
		if !strings.Contains(o.Text, want) {
			t.Errorf("the page lacks %q:\n%s", want, o.Text)
		}
	}
	if strings.Contains(o.Text, "dirty") || len(o.Tabs) != 1 || o.Dialog != nil {
		t.Errorf("traces of an episode: %+v", o)
	}
	if first != nil && (o.Text != first.Text || o.URL != first.URL || o.VirtualTimeMS != first.VirtualTimeMS) {
		t.Errorf("not the first observation:\n%s %v\n%s\nwas %s %v\n%s", o.URL, o.VirtualTimeMS, o.Text, first.URL, first.VirtualTimeMS, first.Text)
	}
}

func testFresh(t *testing.T, d world.Driver, img *world.Image) {
	w := start(t, d, img)
	checkFresh(t, w, nil)
	info := w.Info()
	if info.Usage.Processes < 4 || info.Usage.MemoryMB < 20 || info.Usage.Threads <= info.Usage.Processes || info.Postgres == "" {
		t.Errorf("info: %+v", info)
	}
	if log, err := w.Log("app"); err != nil || !strings.Contains(log, "listening") {
		t.Errorf("log of the application: %q %v", log, err)
	}
}

// dirty changes all that a world holds.
func dirty(t *testing.T, w *world.World) {
	t.Helper()
	do(t, w, `click(selector="text=Add")`)
	if o := observe(t, w); o.Title != "Added" {
		t.Fatalf("after the click: %s %s", o.Title, o.Text)
	}
	do(t, w, `goto("http://127.0.0.1:8080/")`)
	o := observe(t, w)
	for _, want := range []string{"502/1010 added", "file=dirty", "cookie=yes", "stored=yes"} {
		if !strings.Contains(o.Text, want) {
			t.Fatalf("the page lacks %q:\n%s", want, o.Text)
		}
	}
	do(t, w, `new_tab()`)
	err := w.Setup(deadline(t), []postgres.Statement{
		{SQL: "CREATE TABLE junk (a int)"}, {SQL: "DELETE FROM note"}, {SQL: "ALTER TABLE note ADD COLUMN extra int"},
		{SQL: "SELECT nextval('ticket_no')"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A reset brings back rows, sequences, tables, files, cookies, the page's storage, tabs
// and the first observation, again and again; the application's connections work at once.
func testReset(t *testing.T, d world.Driver, img *world.Image) {
	w := start(t, d, img)
	first := observe(t, w)
	checkFresh(t, w, first)
	for range 3 {
		dirty(t, w)
		w = reset(t, d, w)
		checkFresh(t, w, first)
	}
}

// hostPid finds a process of the world.
func hostPid(t *testing.T, w *world.World, name string) int {
	t.Helper()
	for _, m := range w.Info().Processes {
		if strings.HasPrefix(m.Name, name) {
			return m.Pid
		}
	}
	t.Fatalf("no process %q among %+v", name, w.Info().Processes)
	return 0
}

// victim is a main process of a world and what the cause of the loss must name.
type victim struct{ process, names string }

func victims(d world.Driver) []victim {
	all := []victim{{"mini", "service app"}, {"postgres", "service db"}, {"chromium", "service browser"}, {"pommel-keeper", "keeper"}}
	if hasMachine(d) {
		all = append(all, victim{"qemu", "service machine"})
	}
	return all
}

// hasMachine says whether the services of a driver's worlds run in a machine.
func hasMachine(d world.Driver) bool { return strings.HasPrefix(d.Name(), world.MicroVM().Name()) }

// inMachine says whether a process runs inside the world's machine.
func inMachine(w *world.World, process string) bool {
	for _, m := range w.Info().Guest {
		if strings.HasPrefix(m.Name, process) {
			return true
		}
	}
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

func kill(t *testing.T, w *world.World, process string) {
	t.Helper()
	if inMachine(w, process) {
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
func testDeaths(t *testing.T, d world.Driver, img *world.Image) {
	for _, v := range victims(d) {
		t.Run(v.process, func(t *testing.T) {
			t.Parallel()
			w := start(t, d, img)
			kill(t, w, v.process)
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
		w := start(t, d, img)
		ended := func() {}
		if !inMachine(w, "mini") {
			ended = watchEnd(t, hostPid(t, w, "mini"))
		}
		kill(t, w, "mini")
		ended()
		// No waiting from here on: the death came before the question.
		if err := w.Check(deadline(t)); fault.KindOf(err) != fault.WorldLost || !strings.Contains(err.Error(), "service app") {
			t.Errorf("check: %v", err)
		}
	})
	t.Run("last words", func(t *testing.T) {
		t.Parallel()
		w := start(t, d, img)
		calls, err := action.Parse(`goto("http://127.0.0.1:8080/crash")`)
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
func testResetLost(t *testing.T, d world.Driver, img *world.Image) {
	w := start(t, d, img)
	first := observe(t, w)
	for _, v := range victims(d) {
		kill(t, w, v.process)
		<-w.Lost()
		w = reset(t, d, w)
		checkFresh(t, w, first)
	}
}

// After Close no process of the world is left, and its control groups are gone.
func testLeftovers(t *testing.T, d world.Driver, img *world.Image) {
	w := start(t, d, img)
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
func testCancelledStart(t *testing.T, d world.Driver, img *world.Image) {
	stages := []string{"starting db", "starting app", "starting the browser", "loading the start page"}
	if hasMachine(d) {
		stages = append(stages[2:], "starting the machine")
	}
	for _, stage := range stages {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(deadline(t))
			defer cancel()
			w, err := d.Start(ctx, img, func(s string) {
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
func testPageReachesNothing(t *testing.T, d world.Driver, img *world.Image) {
	w := start(t, d, img)
	for _, url := range []string{"http://127.0.0.1:5432/", "file:///etc/passwd", "file:///world/mini", "http://localhost:1/"} {
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
func testAllAtOnce(t *testing.T, d world.Driver, img *world.Image) {
	worlds := 32
	if hasMachine(d) {
		worlds = 4 // each has the memory of a machine
	}
	p, err := world.NewPool(deadline(t), img, d, world.PoolOptions{Size: worlds})
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
			mark := fmt.Sprintf("note of world %d", i)
			if err := w.Setup(deadline(t), []postgres.Statement{{SQL: "INSERT INTO note (body) VALUES ('" + mark + "')"}}); err != nil {
				t.Error(err)
				return
			}
			if err := w.Browser().Navigate(deadline(t), "http://127.0.0.1:8080/"); err != nil {
				t.Error(err)
				return
			}
			o, err := w.Browser().Observe(deadline(t), browser.View{})
			if err != nil {
				t.Error(err)
				return
			}
			if strings.Count(o.Text, "note of world") != 1 || !strings.Contains(o.Text, "502/1010 "+mark) {
				t.Errorf("world %d shows:\n%s", i, o.Text)
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Failures > 0 || s.Lost > 0 {
		t.Errorf("%+v", s)
	}
}
