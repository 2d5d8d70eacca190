package gym

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/guest"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// The gym under test is shared: a world takes seconds to build and a second to start.
var shop struct {
	once sync.Once
	g    *Gym
	err  error
	dir  string // of its traces
}

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	guest.MaybeInit()
	code := m.Run()
	if shop.g != nil {
		if err := shop.g.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close:", err)
			code = 1
		}
	}
	if shop.dir != "" {
		_ = os.RemoveAll(shop.dir)
	}
	os.Exit(code)
}

func openShop(t *testing.T) *Gym {
	t.Helper()
	shop.once.Do(func() {
		dir, err := os.MkdirTemp("", "traces-")
		if err != nil {
			shop.err = err
			return
		}
		shop.dir = dir
		shop.g, shop.err = Open(context.Background(), Options{World: "shop", Worlds: 2, Traces: dir})
	})
	if shop.err != nil {
		t.Fatal(shop.err)
	}
	return shop.g
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newEnv(t *testing.T) *Env {
	t.Helper()
	env := openShop(t).NewEnv()
	t.Cleanup(func() { _ = env.Close() })
	return env
}

func mustReset(t *testing.T, env *Env, r Request) *Result {
	t.Helper()
	res, err := env.Reset(testContext(t), r)
	if err != nil {
		t.Fatalf("reset %s seed %d: %v", r.Task, r.Seed, err)
	}
	return res
}

func mustStep(t *testing.T, env *Env, action string) *Result {
	t.Helper()
	res, err := env.Step(testContext(t), action)
	if err != nil {
		t.Fatalf("step %s: %v", action, err)
	}
	return res
}

// TestEpisodeIsPaidByRows plays a task as its oracle does and looks at what was paid for.
func TestEpisodeIsPaidByRows(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	first := mustReset(t, env, Request{Task: "buy-item", Seed: 7})
	if first.Instruction == "" || !strings.Contains(first.Observation.Text, "[") || first.Reward != 0 || first.Done() {
		t.Errorf("first result = %+v", first)
	}
	total, last := 0.0, first
	hashes := map[string]bool{first.Info.ObservationHash: true}
	err := env.Oracle(testContext(t), func(ctx context.Context, action string) (*Result, error) {
		r, err := env.Step(ctx, action)
		if err == nil {
			total, last = total+r.Reward, r
			hashes[r.Info.ObservationHash] = true
		}
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !last.Terminated || last.Truncated || !last.Info.Success || total < 1-1e-9 || total > 1+1e-9 {
		t.Errorf("total reward %v, last %+v", total, last.Info)
	}
	if len(hashes) != last.Step+1 {
		t.Errorf("%d different hashes of %d observations", len(hashes), last.Step+1)
	}
	var v struct {
		Stages []struct {
			Name string
			Seen struct{ Rows [][]*string }
		}
	}
	if err := json.Unmarshal(last.Info.Verdict, &v); err != nil {
		t.Fatal(err)
	}
	if n := len(v.Stages); n == 0 || len(v.Stages[n-1].Seen.Rows) == 0 {
		t.Errorf("no rows as evidence in %s", last.Info.Verdict)
	}
	if _, err := env.Step(testContext(t), "noop()"); ErrorKind(err) != EpisodeOver {
		t.Errorf("a step after the end: %v, want %s", err, EpisodeOver)
	}
}

// TestEpisodesShareNothing: what one episode wrote, set and visited is not there in the next.
func TestEpisodesShareNothing(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	first := mustReset(t, env, Request{Task: "add-to-cart", Seed: 3})
	if err := env.Oracle(testContext(t), func(ctx context.Context, a string) (*Result, error) { return env.Step(ctx, a) }); err != nil {
		t.Fatal(err)
	}
	again := mustReset(t, env, Request{Task: "add-to-cart", Seed: 3})
	if again.Instruction != first.Instruction || again.Observation.Text != first.Observation.Text {
		t.Errorf("the same seed begins differently:\n%s\n--- and ---\n%s", first.Observation.Text, again.Observation.Text)
	}
	other := mustReset(t, env, Request{Task: "add-to-cart", Seed: 4})
	if other.Instruction == first.Instruction {
		t.Errorf("seeds 3 and 4 both ask for %q", first.Instruction)
	}
}

// TestBadActionsAreNoErrors: they cost a step and say what was wrong.
func TestBadActionsAreNoErrors(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	mustReset(t, env, Request{Task: "add-to-cart", Seed: 1, MaxSteps: 4})
	for i, c := range []struct{ action, kind string }{
		{"klick('1')", "invalid_action"},
		{"click(selector='#there-is-no-such-thing')", "not_found"},
		{"goto('file:///etc/passwd')", "blocked_url"},
	} {
		r := mustStep(t, env, c.action)
		if r.Observation.LastActionError == nil || string(r.Observation.LastActionError.Kind) != c.kind || r.Step != i+1 || r.Done() {
			t.Errorf("%s: step %d, error %v, want %s", c.action, r.Step, r.Observation.LastActionError, c.kind)
		}
	}
	if r := mustStep(t, env, "noop()"); !r.Truncated || r.Terminated || r.Reward != 0 || r.Info.Success {
		t.Errorf("at the limit: terminated %v, truncated %v, reward %v", r.Terminated, r.Truncated, r.Reward)
	}
}

// TestDeathIsNeverAReward kills each part of a world in mid-episode.
func TestDeathIsNeverAReward(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"chromium", "renderer", "postgres", "shop", "keeper"} {
		t.Run(part, func(t *testing.T) {
			env := newEnv(t)
			mustReset(t, env, Request{Task: "buy-item", Seed: 1})
			w := env.ep.World().(episodeWorld).World
			members := w.Info().Processes
			pid := victim(t, part, w.Info().Keeper, members)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			// A dead tab alone is the agent's to see; the world goes on.
			r, err := env.Step(testContext(t), "click(selector='#cart-link')")
			if part == "renderer" {
				if ErrorKind(err) != WorldLost && (err != nil || r.Observation.LastActionError == nil) {
					t.Errorf("step after the renderer died: %+v, %v", r, err)
				}
			} else if ErrorKind(err) != WorldLost {
				t.Errorf("step after the death of %s: %v, want %s", part, err, WorldLost)
			}
			// The bound is the promise to callers, not a measure of speed.
			if took := time.Since(start); took > deathIsToldWithin {
				t.Errorf("the loss was told after %v", took)
			}
			if r := mustReset(t, env, Request{Task: "buy-item", Seed: 1}); r.Instruction == "" {
				t.Error("no episode after the loss")
			}
			if part != "renderer" {
				waitGone(t, members)
			}
		})
	}
}

// deathIsToldWithin bounds the step in which a part of the world dies.
const deathIsToldWithin = 2 * time.Second

// victim finds the process of a part.
func victim(t *testing.T, part string, keeper int, members []sandbox.Member) int {
	t.Helper()
	if part == "keeper" {
		return keeper
	}
	for _, m := range members {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", m.Pid))
		line := string(cmd)
		renderer := strings.Contains(line, "--type=renderer")
		switch {
		case part == "renderer" && renderer,
			part == "chromium" && strings.Contains(line, "chromium") && !strings.Contains(line, "--type="),
			part == "postgres" && strings.Contains(line, "postgres\x00-D"),
			part == "shop" && strings.Contains(line, "/shop\x00"):
			return m.Pid
		}
	}
	t.Fatalf("no process of %s among %+v", part, members)
	return 0
}

// waitGone waits until no process of a world is left.
func waitGone(t *testing.T, members []sandbox.Member) {
	t.Helper()
	ctx := testContext(t)
	for _, m := range members {
		for ctx.Err() == nil && errors.Is(syscall.Kill(m.Pid, 0), nil) && !zombie(m.Pid) {
			select {
			case <-time.After(10 * time.Millisecond): // no event tells of a stranger's death
			case <-ctx.Done():
				t.Errorf("process %d (%s) is left over", m.Pid, m.Name)
			}
		}
	}
}

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// TestRetriedStepOrdersOnce: a step whose answer was lost is not made twice.
func TestRetriedStepOrdersOnce(t *testing.T) {
	t.Parallel()
	table := openShop(t).Sessions(SessionLimits{})
	defer table.Close()
	ctx := testContext(t)
	r, err := table.Reset(ctx, SessionRequest{Request: Request{Task: "buy-item", Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := table.Step(ctx, r.EpisodeID, 1, "click(selector='#cart-link')", View{})
		if err != nil || got.Step != 1 {
			t.Fatalf("step = %+v, %v", got, err)
		}
	}
	if _, err := table.Step(ctx, r.EpisodeID, 1, "go_back()", View{}); ErrorKind(err) != InvalidArgument {
		t.Errorf("the number of a made step with another action: %v", err)
	}
	again, err := table.Reset(ctx, SessionRequest{Request: Request{Task: "buy-item", Seed: 2}, Previous: r.EpisodeID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Step(ctx, r.EpisodeID, 2, "go_back()", View{}); ErrorKind(err) != StaleEpisode {
		t.Errorf("a step of the episode before: %v", err)
	}
	if err := table.CloseEpisode(ctx, again.EpisodeID); err != nil {
		t.Error(err)
	}
}

// TestTakenWorldsAreSaid: more callers than worlds get a typed answer.
func TestTakenWorldsAreSaid(t *testing.T) {
	t.Parallel()
	g, err := Open(testContext(t), Options{World: "shop", Worlds: 1, Spares: -1, Traces: "off"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	table := g.Sessions(SessionLimits{})
	defer table.Close()
	ctx := testContext(t)
	r, err := table.Reset(ctx, SessionRequest{Request: Request{Task: "buy-item"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := table.Describe(); d.Worlds != 1 || d.Free != 0 {
		t.Errorf("describe = %+v", d)
	}
	if _, err := table.Reset(ctx, SessionRequest{Request: Request{Task: "buy-item"}, Wait: -1}); ErrorKind(err) != ResourceExhausted || ErrorHint(err) == "" {
		t.Errorf("a second episode: %v", err)
	}
	for name, r := range map[string]Request{"no such task": {Task: "nonsense"}, "a negative seed": {Task: "buy-item", Seed: -1}} {
		if _, err := table.Reset(ctx, SessionRequest{Request: r, Wait: -1}); ErrorKind(err) != NotFound && ErrorKind(err) != InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := table.CloseEpisode(ctx, r.EpisodeID); err != nil {
		t.Error(err)
	}
	if _, err := table.Reset(ctx, SessionRequest{Request: Request{Task: "buy-item"}}); err != nil {
		t.Errorf("after the world came back: %v", err)
	}
}

// TestBadTasksAreRefusedAtOpen: a task that does not fit the database never reaches training.
func TestBadTasksAreRefusedAtOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mini")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "internal", "world", "testdata", "worlds", "mini"))); err != nil {
		t.Fatal(err)
	}
	task := `id: bad
title: A task about a table that does not exist
difficulty: easy
split: train
instruction: Do it.
reward:
  stages:
    - name: done
      weight: 1
      query: SELECT id FROM nowhere
      expect: {at_least: 1}
`
	if err := os.MkdirAll(filepath.Join(dir, "tasks"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tasks", "bad.yaml"), []byte(task), 0o644); err != nil {
		t.Fatal(err)
	}
	g, err := Open(testContext(t), Options{World: dir, Traces: "off"})
	if err == nil {
		_ = g.Close()
	}
	if ErrorKind(err) != InvalidArgument || !strings.Contains(err.Error(), "bad.yaml:10:") || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("Open = %v, want an error at bad.yaml line 10 about nowhere", err)
	}
}
