package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// The worlds of the tests are shared: one takes a second or two to start.
var shared struct {
	once sync.Once
	g    *gym.Gym
	err  error
}

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	code := m.Run()
	if shared.g != nil {
		if err := shared.g.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func openWorld(t *testing.T) *gym.Gym {
	t.Helper()
	shared.once.Do(func() {
		// Rewinding is ten times as fast, where a host can do it.
		for _, driver := range []string{"rewind", "respawn"} {
			shared.g, shared.err = gym.Open(context.Background(), gym.Options{
				World: filepath.Join("testdata", "worlds", "proof"), Worlds: 2, Traces: "off", Driver: driver, Starts: -1,
			})
			if gym.ErrorKind(shared.err) != gym.Unsupported {
				return
			}
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.g
}

func checked(t *testing.T, seeds []int64, ids ...string) []Task {
	t.Helper()
	g := openWorld(t)
	tasks, err := g.Select("", "", ids)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	found, err := Run(ctx, g, Config{Tasks: tasks, Seeds: seeds, Parallel: 2, Together: 2})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func failing(t Task) []string {
	var out []string
	for _, c := range t.Checks {
		if !c.OK {
			out = append(out, c.Name)
		}
	}
	return out
}

// TestGoodTasksPass, in every check.
func TestGoodTasksPass(t *testing.T) {
	t.Parallel()
	for _, task := range checked(t, []int64{0, 1, 2}, "note", "parcel") {
		if !task.OK || len(task.Checks) != len(Properties()) {
			t.Errorf("%s: %d checks, failing: %+v", task.Task, len(task.Checks), task.Checks)
		}
		for _, c := range task.Checks {
			if c.Skipped != "" {
				t.Errorf("%s: %s was skipped: %s", task.Task, c.Name, c.Skipped)
			}
		}
	}
}

// TestBrokenTasksFailWhereTheyAreBroken: each broken copy of a task makes its own check fail, and no other.
func TestBrokenTasksFailWhereTheyAreBroken(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "worlds", "proof", "tasks", "broken-*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no broken tasks: %v", err)
	}
	var ids []string
	for _, f := range files {
		ids = append(ids, strings.TrimSuffix(filepath.Base(f), ".yaml"))
	}
	for _, task := range checked(t, []int64{0, 1}, ids...) {
		want := strings.ReplaceAll(strings.TrimPrefix(task.Task, "broken-"), "-", "_")
		if got := failing(task); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: failing checks %v, want %s alone: %+v", task.Task, got, want, task.Checks)
		}
		for _, c := range task.Checks {
			if !c.OK && (c.Detail == "" || c.Remedy == "") {
				t.Errorf("%s: check %s has no detail or no remedy: %+v", task.Task, c.Name, c)
			}
		}
	}
}

// TestInterruptedCheckTellsWhatItFound, and nothing of what it did not finish.
func TestInterruptedCheckTellsWhatItFound(t *testing.T) {
	t.Parallel()
	g := openWorld(t)
	tasks, err := g.Select("", "", []string{"note", "parcel"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	found, err := Run(ctx, g, Config{Tasks: tasks, Seeds: []int64{0}, Parallel: 1, OnTask: func(Task) { cancel() }})
	if err == nil || len(found) != 1 || found[0].Task != tasks[0].ID || !found[0].OK {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestPropertiesAreExplained, and all of them are run.
func TestPropertiesAreExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range Properties() {
		if p.What == "" || p.Remedy == "" || seen[p.Name] {
			t.Errorf("property %+v", p)
		}
		seen[p.Name] = true
	}
	if remedyOf("no such check") != "" {
		t.Error("a check that there is not has a remedy")
	}
}
