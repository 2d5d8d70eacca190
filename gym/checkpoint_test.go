package gym

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// openRewound opens the shop under the driver that has checkpoints.
func openRewound(t *testing.T, o Options) *Gym {
	t.Helper()
	o.World, o.Driver, o.Spares = "shop", "rewind", -1
	if o.Traces == "" {
		o.Traces = "off"
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	g, err := Open(ctx, o)
	if ErrorKind(err) == Unsupported {
		t.Skipf("unsupported: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// playRandom makes up to n random steps and tells all that came of them.
func playRandom(t *testing.T, env *Env, seed uint64, n int, last *Result) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 9))
	var told strings.Builder
	for range n {
		if last.Done() {
			break
		}
		var bids []string
		for _, e := range last.Observation.Elements {
			if e.Interactive {
				bids = append(bids, e.Bid)
			}
		}
		do := []string{"go_back()", "scroll(0, 200)", `goto("http://127.0.0.1:8080/c/lighting")`, "noop(700)", `finish("done")`}[rng.IntN(5)]
		if len(bids) > 0 && rng.IntN(5) > 0 {
			bid := strconv.Quote(bids[rng.IntN(len(bids))])
			do = []string{"click(" + bid + ")", "click(" + bid + ")", "fill(" + bid + `, "2")`}[rng.IntN(3)]
		}
		last = mustStep(t, env, do)
		fmt.Fprintf(&told, "%s: step %d reward %v done %v at %s\n%s\n%s\n", do, last.Step, last.Reward, last.Done(), last.Observation.URL, last.Info.ObservationHash, last.Info.Verdict)
	}
	return told.String()
}

// TestContinuationsFromACheckpoint: from one state in mid-episode, 50 different
// continuations, each of which gives the same again whatever was done in between.
func TestContinuationsFromACheckpoint(t *testing.T) {
	t.Parallel()
	n := 50
	if s := os.Getenv("POMMEL_SOAK"); s == "" {
		n = 12
	}
	env := openRewound(t, Options{}).NewEnv()
	t.Cleanup(func() { _ = env.Close() })
	ctx := testContext(t)
	mustReset(t, env, Request{Task: "buy-item", Seed: 7, View: View{Elements: true}, MaxSteps: 60})
	mustStep(t, env, `fill(selector="#search", value="lamp")`)
	at := mustStep(t, env, `keyboard_press("Enter")`)
	middle, err := env.Checkpoint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	restore := func(id string, want *Result) {
		t.Helper()
		r, err := env.Restore(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if r.Step != want.Step || r.Reward != 0 || r.Done() || r.Observation.Text != want.Observation.Text || r.Info.ObservationHash != want.Info.ObservationHash {
			t.Fatalf("restored to %+v, want %+v", r, want)
		}
		seen, err := env.Observe(ctx, View{Elements: true})
		if err != nil || seen.Text != want.Observation.Text || seen.URL != want.Observation.URL || seen.VirtualTimeMS != want.Observation.VirtualTimeMS {
			t.Fatalf("the restored page is\n%+v\nwant\n%+v (%v)", seen, want.Observation, err)
		}
		if _, err = env.Restore(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	first := make([]string, n)
	different := map[string]bool{}
	for i := range n {
		first[i] = playRandom(t, env, uint64(i), 6, at)
		different[first[i]] = true
		restore(middle, at)
	}
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(n) {
		if got := playRandom(t, env, uint64(i), 6, at); got != first[i] {
			t.Fatalf("continuation %d the second time:\n%s\nfirst:\n%s", i, got, first[i])
		}
		restore(middle, at)
	}
	if len(different) < n*3/4 {
		t.Errorf("only %d of %d continuations differ", len(different), n)
	}
}

// TestTreeOfCheckpoints: states above states, in any order, also from beyond the end of the episode.
func TestTreeOfCheckpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := openRewound(t, Options{Traces: dir})
	env := g.NewEnv()
	t.Cleanup(func() { _ = env.Close() })
	ctx := testContext(t)
	if _, err := env.Checkpoint(ctx); ErrorKind(err) != EpisodeOver {
		t.Errorf("a checkpoint before the episode: %v", err)
	}
	type node struct {
		id    string
		at    *Result
		total float64
	}
	at := mustReset(t, env, Request{Task: "buy-item", Seed: 3})
	save := func(at *Result, total float64) node {
		t.Helper()
		id, err := env.Checkpoint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return node{id, at, total}
	}
	nodes := []node{save(at, 0)}
	total, last := 0.0, at
	err := env.Oracle(ctx, func(ctx context.Context, action string) (*Result, error) {
		r, err := env.Step(ctx, action)
		if err != nil {
			return r, err
		}
		if total += r.Reward; !r.Done() && len(nodes) < 6 {
			nodes = append(nodes, save(r, total))
		}
		last = r
		return r, nil
	})
	if err != nil || !last.Info.Success {
		t.Fatalf("the oracle: %+v, %v", last, err)
	}
	if _, err := env.Step(ctx, "noop()"); ErrorKind(err) != EpisodeOver {
		t.Errorf("a step after the end: %v", err)
	}
	for _, k := range []int{4, 1, 5, 0, 3, 2} {
		n := nodes[k]
		r, err := env.Restore(ctx, n.id)
		if err != nil {
			t.Fatal(err)
		}
		if r.Step != n.at.Step || r.Observation.Text != n.at.Observation.Text || r.Info.Potential != n.at.Info.Potential {
			t.Errorf("checkpoint %s: %+v, want %+v", n.id, r, n.at)
		}
		var v struct{ Potential, Value float64 }
		raw, err := env.Judge(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(raw); !strings.Contains(got, fmt.Sprintf(`"potential":%v`, n.at.Info.Potential)) {
			t.Errorf("checkpoint %s: the judge says %s (%v), want potential %v", n.id, got, v, n.at.Info.Potential)
		}
	}
	// From the first state the oracle wins again, and is paid as before.
	if _, err := env.Restore(ctx, nodes[0].id); err != nil {
		t.Fatal(err)
	}
	again := 0.0
	if err := env.Oracle(ctx, func(ctx context.Context, action string) (*Result, error) {
		r, err := env.Step(ctx, action)
		if err == nil {
			again, last = again+r.Reward, r
		}
		return r, err
	}); err != nil || !last.Info.Success || again < total-1e-9 || again > total+1e-9 {
		t.Errorf("the oracle again: reward %v, was %v; %v", again, total, err)
	}
	for _, n := range nodes {
		if err := env.Forget(ctx, n.id); err != nil {
			t.Error(err)
		}
	}
	if _, err := env.Restore(ctx, nodes[0].id); ErrorKind(err) != EpisodeOver {
		t.Errorf("restore after the last checkpoint was forgotten: %v", err)
	}
	mustReset(t, env, Request{Task: "buy-item", Seed: 3})
	if _, err := env.Restore(ctx, nodes[0].id); ErrorKind(err) != NotFound {
		t.Errorf("a checkpoint of the episode before: %v", err)
	}
}

// TestRespawnHasNoCheckpoints says so, and the episode goes on.
func TestRespawnHasNoCheckpoints(t *testing.T) {
	t.Parallel()
	g, err := Open(testContext(t), Options{World: "shop", Driver: "respawn", Spares: -1, Traces: "off"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	env := g.NewEnv()
	defer env.Close()
	mustReset(t, env, Request{Task: "buy-item", Seed: 7})
	if _, err := env.Checkpoint(testContext(t)); ErrorKind(err) != Unsupported || ErrorHint(err) == "" {
		t.Errorf("checkpoint under respawn: %v", err)
	}
	if r := mustStep(t, env, "noop()"); r.Step != 1 {
		t.Errorf("step %d after it", r.Step)
	}
}

// TestKeptStartsAreTheStart: an episode that begins with one rewind begins, and goes on, as
// the one before it that was set up and loaded. Over all tasks.
func TestKeptStartsAreTheStart(t *testing.T) {
	t.Parallel()
	g := openRewound(t, Options{VerifyEvery: 10})
	env := g.NewEnv()
	t.Cleanup(func() { _ = env.Close() })
	tasks, err := g.Select("", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("POMMEL_SOAK") == "" {
		some := tasks[:0]
		for i := 0; i < len(tasks); i += 6 {
			some = append(some, tasks[i])
		}
		tasks = some
	}
	view := View{Elements: true}
	began := 0
	for k, task := range tasks {
		r := Request{Task: task.ID, Seed: int64(k), View: view}
		first := mustReset(t, env, r)
		told := playRandom(t, env, uint64(k), 3, first)
		for range 2 {
			again := mustReset(t, env, r)
			if g.LastReset().Start {
				began++
			}
			if again.EpisodeID == first.EpisodeID || again.Instruction != first.Instruction || again.Info.ObservationHash != first.Info.ObservationHash {
				t.Fatalf("%s begins again as %+v, was %+v", task.ID, again, first)
			}
			if diff := cmp.Diff(first.Observation, again.Observation); diff != "" {
				t.Fatalf("%s begins with another observation:\n%s", task.ID, diff)
			}
			seen, err := env.Observe(testContext(t), view)
			if diff := cmp.Diff(first.Observation, seen); err != nil || diff != "" {
				t.Fatalf("%s: the page is not what it was: %v\n%s", task.ID, err, diff)
			}
			if again = mustReset(t, env, r); playRandom(t, env, uint64(k), 3, again) != told {
				t.Fatalf("%s goes on differently", task.ID)
			}
		}
	}
	if began < len(tasks)*2*9/10 {
		t.Errorf("%d of %d episodes began at a kept start", began, 2*len(tasks))
	}
	// And as in a gym that keeps none.
	bare := openRewound(t, Options{Starts: -1}).NewEnv()
	t.Cleanup(func() { _ = bare.Close() })
	for k, task := range tasks {
		r := Request{Task: task.ID, Seed: int64(k), View: view}
		a, b := mustReset(t, env, r), mustReset(t, bare, r)
		if diff := cmp.Diff(a.Observation, b.Observation); diff != "" || a.Info.ObservationHash != b.Info.ObservationHash {
			t.Errorf("%s begins differently in another world:\n%s", task.ID, diff)
		}
	}
}
