package determinism

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
	"github.com/pommelgym/pommel/internal/replay"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/trace"
)

var shared struct {
	once   sync.Once
	g      *gym.Gym
	err    error
	traces string
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
	if shared.traces != "" {
		_ = os.RemoveAll(shared.traces)
	}
	os.Exit(code)
}

const world = "../check/testdata/worlds/proof"

// openWorld opens the test world, put back in place where the host can do that.
func openWorld(t *testing.T) *gym.Gym {
	t.Helper()
	shared.once.Do(func() {
		if shared.traces, shared.err = os.MkdirTemp("", "traces-"); shared.err != nil {
			return
		}
		for _, driver := range []string{"rewind", "respawn"} {
			shared.g, shared.err = gym.Open(context.Background(), gym.Options{World: world, Worlds: 2, Traces: shared.traces, Driver: driver, Starts: -1})
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

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func tasks(t *testing.T, g *gym.Gym, ids ...string) []gym.TaskInfo {
	t.Helper()
	list, err := g.Select("", "", ids)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSameSeedSameEpisode: in worlds that were put back in place and in worlds that were
// started anew, in two at once, with other work on the machine (C19).
func TestSameSeedSameEpisode(t *testing.T) {
	t.Parallel()
	g := openWorld(t)
	ctx := testContext(t)
	tally := NewTally()
	c := Config{Tasks: tasks(t, g, "note", "parcel"), Agents: []string{"oracle", "random"}, Episodes: 32, Repeat: 4, Parallel: 2, ShotEvery: 4, MaxSteps: 8, Driver: "in place"}
	if err := Run(ctx, g, c, tally); err != nil {
		t.Fatal(err)
	}
	fresh, err := gym.Open(ctx, gym.Options{World: world, Worlds: 1, Traces: "off", Driver: "respawn"})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	c.Repeat, c.Episodes, c.Parallel, c.Driver = 1, 8, 1, "anew"
	if err := Run(ctx, fresh, c, tally); err != nil {
		t.Fatal(err)
	}
	s := tally.Summary()
	if s.Episodes != 40 || s.Groups != 8 || s.MaxChains != 1 || s.MaxRecords != 1 || s.MaxPictures != 1 || s.Mismatches != 0 || s.Failures != 0 || s.Pictures == 0 {
		t.Errorf("summary %+v", s)
	}
}

// TestADifferenceIsFound, and named, in a page that shows real time.
func TestADifferenceIsFound(t *testing.T) {
	t.Parallel()
	g := openWorld(t)
	tally := NewTally()
	c := Config{Tasks: tasks(t, g, "broken-same-seed"), Agents: []string{"oracle"}, Episodes: 3, Repeat: 3, Parallel: 1}
	if err := Run(testContext(t), g, c, tally); err != nil {
		t.Fatal(err)
	}
	s := tally.Summary()
	if s.MaxChains != 3 || s.Mismatches != 2 || len(s.Examples) != 2 {
		t.Fatalf("summary %+v", s)
	}
	if e := s.Examples[0]; e.Step != 0 || !strings.HasPrefix(e.Differences[0].Path, "observation.text line") {
		t.Errorf("example %+v", e)
	}
}

// record plays actions and returns the folder of the record.
func record(t *testing.T, g *gym.Gym, r gym.Request, play func(env *gym.Env) error) string {
	t.Helper()
	env := g.NewEnv()
	defer env.Close()
	first, err := env.Reset(testContext(t), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := play(env); err != nil {
		t.Fatal(err)
	}
	if err := env.End(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(shared.traces, first.EpisodeID)
	// The record is written behind the episode's back.
	deadline := time.Now().Add(20 * time.Second)
	for {
		tr, err := trace.Read(dir)
		if err == nil && tr.End != nil {
			return dir
		}
		if time.Now().After(deadline) {
			t.Fatalf("the record is not complete: %v", err)
		}
		time.Sleep(5 * time.Millisecond) // nothing tells when a record is complete
	}
}

func steps(t *testing.T, actions ...string) func(*gym.Env) error {
	return func(env *gym.Env) error {
		for i, a := range actions {
			v := gym.View{Elements: i%2 == 0}
			if i == 1 {
				v.Screenshot = "png"
			}
			if _, err := env.Step(testContext(t), a, v); err != nil {
				return err
			}
		}
		return nil
	}
}

func replayed(t *testing.T, g *gym.Gym, dir string) *replay.Report {
	t.Helper()
	tr, err := trace.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	env := g.NewEnv()
	defer env.Close()
	r, err := replay.Play(testContext(t), env, tr, dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var story = []string{`fill(selector="#text", value="salt")`, `click(selector="#add")`, `klick(1)`, `click(selector="#nothing")`, `goto("file:///")`, `noop(60000)`, `go_back()`}

// TestReplayIsEqual: steps with other views, failed actions and long waits, played again in
// a world of the other driver too.
func TestReplayIsEqual(t *testing.T) {
	t.Parallel()
	g := openWorld(t)
	dir := record(t, g, gym.Request{Task: "note", Seed: 5, MaxSteps: 40, View: gym.View{HTML: true}}, steps(t, story...))
	if r := replayed(t, g, dir); !r.OK || r.Steps != len(story)+1 {
		t.Errorf("report %+v, difference %+v", r, r.FirstDifference)
	}
	fresh, err := gym.Open(testContext(t), gym.Options{World: world, Worlds: 1, Traces: "off", Driver: "respawn"})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if r := replayed(t, fresh, dir); !r.OK {
		t.Errorf("in a fresh world: %+v, difference %+v", r, r.FirstDifference)
	}
}

// TestReplayOfBranches: a record with checkpoints and restores is played along its branches.
func TestReplayOfBranches(t *testing.T) {
	t.Parallel()
	g := openWorld(t)
	if g.Describe().Driver != "rewind" {
		t.Skip("host: worlds cannot be put back in place, and so not to a checkpoint either")
	}
	dir := record(t, g, gym.Request{Task: "note", Seed: 5}, func(env *gym.Env) error {
		if err := steps(t, story[0])(env); err != nil {
			return err
		}
		id, err := env.Checkpoint(testContext(t))
		if err != nil {
			return err
		}
		if err := steps(t, story[1])(env); err != nil {
			return err
		}
		if _, err := env.Restore(testContext(t), id); err != nil {
			return err
		}
		return steps(t, `click(selector="text=Star milk")`)(env)
	})
	if r := replayed(t, g, dir); !r.OK || r.Steps != 4 {
		t.Errorf("report %+v, difference %+v", r, r.FirstDifference)
	}
}

// TestReplayTellsTheFirstDifference of a record that was changed by hand.
func TestReplayTellsTheFirstDifference(t *testing.T) {
	t.Parallel()
	g := openWorld(t)
	dir := record(t, g, gym.Request{Task: "note", Seed: 6, MaxSteps: 40}, steps(t, story...))
	file := filepath.Join(dir, trace.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"new":{"body":"salt"`, `"new":{"body":"pepper"`, 1)
	if changed == string(text) {
		t.Fatalf("the record has no such row:\n%s", text)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := replayed(t, g, dir)
	want := []replay.Difference{{Path: "info.changes[0].new.body", Was: "pepper", Is: "salt"}}
	if r.OK || r.Steps != 2 || r.FirstDifference == nil || r.FirstDifference.Step != 2 || !slices.Equal(r.FirstDifference.Differences, want) {
		t.Errorf("report %+v, difference %+v", r, r.FirstDifference)
	}
}
