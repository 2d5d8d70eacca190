package gym

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// played is an episode of the task's script under a profile, as far as it goes.
type played struct {
	first  *Result
	chain  string
	chains []string // with the action, after each step
	struck []PerturbationEvent
}

func playUnder(t *testing.T, g *Gym, task, profile string, seed int64) played {
	t.Helper()
	ctx := testContext(t)
	env := g.NewEnv()
	defer env.Close()
	first, err := env.Reset(ctx, Request{Task: task, Seed: seed, Profile: profile})
	if err != nil {
		t.Fatalf("%s: %v", profile, err)
	}
	p := played{first: first, chain: first.Info.ObservationHash, struck: first.Info.Perturbations}
	var lost error
	// The script gives up where something is in its way.
	_ = env.Oracle(ctx, func(ctx context.Context, text string) (*Result, error) {
		res, err := env.Step(ctx, text)
		if err != nil {
			lost = err
			return nil, err
		}
		p.chain = res.Info.ObservationHash
		p.chains = append(p.chains, text+" "+p.chain[:8])
		p.struck = append(p.struck, res.Info.Perturbations...)
		return res, nil
	})
	if lost != nil && ErrorKind(lost) != EpisodeOver {
		t.Fatal(lost)
	}
	return p
}

// playLike plays until the chain is the wanted one, twice at most: a busy machine may let the clock of
// an episode run on, which is not what is asked here; a difference that a profile makes is there each time.
func playLike(t *testing.T, g *Gym, task, profile string, seed int64, want played) played {
	t.Helper()
	p := playUnder(t, g, task, profile, seed)
	if p.chain != want.chain {
		t.Logf("seed %d under %q: %v, wanted %v; once more", seed, profile, p.chains, want.chains)
		p = playUnder(t, g, task, profile, seed)
	}
	return p
}

// openOne opens the shop with one world, so that all episodes are in the same.
func openOne(t *testing.T) *Gym {
	t.Helper()
	g, err := Open(testContext(t), Options{World: "shop", Worlds: 1, Traces: "off"})
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

func TestStrengthZeroIsNoProfile(t *testing.T) {
	t.Parallel()
	g := openOne(t)
	for seed := range int64(2) {
		none := playLike(t, g, "buy-item", "", seed, playUnder(t, g, "buy-item", "", seed))
		for _, profile := range []string{"none", "calm", "rough@0", "hostile@0"} {
			p := playLike(t, g, "buy-item", profile, seed, none)
			if p.chain != none.chain || p.first.Info.Perturbed || p.first.Instruction != none.first.Instruction {
				t.Errorf("seed %d under %s: chain %.12s, perturbed %v; without a profile %.12s", seed, profile, p.chain, p.first.Info.Perturbed, none.chain)
			}
		}
	}
}

func TestPerturbedEpisodesAreRepeatable(t *testing.T) {
	t.Parallel()
	g := openOne(t)
	strikes := 0
	for seed := range int64(3) {
		one := playUnder(t, g, "buy-with-coupon", "hostile", seed)
		two := playLike(t, g, "buy-with-coupon", "hostile", seed, one)
		if one.chain != two.chain {
			t.Errorf("seed %d: chains %.12s and %.12s; struck %v and %v", seed, one.chain, two.chain, one.struck, two.struck)
		}
		if !one.first.Info.Perturbed || one.first.Info.Profile != "hostile" {
			t.Errorf("seed %d: perturbed %v, profile %q", seed, one.first.Info.Perturbed, one.first.Info.Profile)
		}
		strikes += len(one.struck)
	}
	if strikes == 0 {
		t.Error("nothing struck")
	}
}

func TestCallersNameNoFiles(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	table := g.Sessions(SessionLimits{})
	defer table.Close()
	for _, profile := range []string{"/etc/passwd", "./p.yaml", "../rough.yaml", "p.yml@0.5", "nope"} {
		_, err := table.Reset(testContext(t), SessionRequest{Request: Request{Task: "buy-item", Profile: profile}})
		if ErrorKind(err) != InvalidArgument {
			t.Errorf("%s: %v", profile, err)
		}
	}
}

// goOn makes steps and tells what came of them and what struck.
func goOn(t *testing.T, env *Env, actions ...string) string {
	t.Helper()
	var told strings.Builder
	for _, do := range actions {
		r := mustStep(t, env, do)
		fmt.Fprintf(&told, "%s: %s %s\n", do, r.Observation.Title, r.Info.ObservationHash)
		for _, p := range r.Info.Perturbations {
			fmt.Fprintf(&told, "  %d ms, step %d: %s %d %s %s %v\n", p.VirtualMS, p.Step, p.Kind, p.At, p.Target, p.Seen, p.Numbers)
		}
	}
	return told.String()
}

// TestCheckpointsUnderFriction: from a checkpoint the same strikes again, also what lasts
// for some steps and was under way.
func TestCheckpointsUnderFriction(t *testing.T) {
	t.Parallel()
	g := openRewound(t, Options{})
	env := g.NewEnv()
	t.Cleanup(func() { _ = env.Close() })
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte(`name: p
recovery: {steps: 200, tries: 9}
rules:
  - {kind: http.latency, probability: 0.5, limit: 9}
  - {kind: http.error, probability: 0.3, limit: 3, first: 3, with: {repeat: 2}}
  - {kind: ui.newsletter, probability: 0.5, limit: 9}
  - {kind: dom.rename_ids, probability: 0.5, limit: 9}
  - {kind: shop.orders_held, probability: 1, limit: 2, first: 2, gap: 5}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	mustReset(t, env, Request{Task: "cancel-order", Seed: 4, Profile: file, MaxSteps: 60})
	before := goOn(t, env, `goto("/c/lighting")`, `goto("/account/orders")`, `goto("/cart")`)
	if !strings.Contains(before, "shop.orders_held") {
		t.Fatalf("nothing holds the orders:\n%s", before)
	}
	id, err := env.Checkpoint(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{`goto("/account/orders")`, `goto("/help")`, `goto("/c/bags")`, `goto("/account")`, `goto("/")`, `goto("/account/orders")`, `goto("/help")`}
	want := goOn(t, env, pages...)
	if !strings.Contains(want, "ui.newsletter") || !strings.Contains(want, "shop.orders_held") {
		t.Errorf("little struck after the checkpoint:\n%s", want)
	}
	for range 2 {
		if _, err := env.Restore(testContext(t), id); err != nil {
			t.Fatal(err)
		}
		if got := goOn(t, env, pages...); got != want {
			t.Errorf("after going back:\n%s\nwanted\n%s", got, want)
		}
	}
}
