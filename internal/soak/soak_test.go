package soak

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	os.Exit(m.Run())
}

func soak(t *testing.T, c Config) *Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	g, err := gym.Open(ctx, gym.Options{World: "../check/testdata/worlds/proof", Worlds: 2, Traces: "off"})
	if err != nil {
		t.Fatal(err)
	}
	c.Clients, c.Lease, c.Plans, c.Steps, c.Seed, c.Tasks = 4, 2*time.Second, 4, 10, 3, []string{"note", "parcel"}
	r, err := Run(ctx, g, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	return r
}

// TestBadClients: no world is leaked, no reward is false, and no step is carried out twice.
func TestBadClients(t *testing.T) {
	t.Parallel()
	r := soak(t, Config{Episodes: 60})
	if n := r.Faults(); n != 0 {
		t.Errorf("%d faults: %q", n, r.Problems)
	}
	if r.Episodes < 60 || r.Cuts == 0 || r.Stalls+r.Pauses+r.Deaths == 0 {
		t.Errorf("the clients behaved too well: %+v", r)
	}
}

// careless is a server that repeats some steps, and pays something for others that earn nothing.
type careless struct {
	gym.Sessions
	n atomic.Int64
}

func (c *careless) Step(ctx context.Context, id string, n int, action string, view gym.View) (*gym.Result, error) {
	res, err := c.Sessions.Step(ctx, id, n, action, view)
	if err != nil || res.Done() {
		return res, err
	}
	switch c.n.Add(1) % 4 {
	case 1:
		return c.Sessions.Step(ctx, id, 0, action, view)
	case 3:
		paid := *res
		paid.Reward += 0.25
		return &paid, nil
	}
	return res, nil
}

// TestFaultsAreFound of a server that has some.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	r := soak(t, Config{Episodes: 10, between: func(s gym.Sessions) gym.Sessions { return &careless{Sessions: s} }})
	if r.Twice == 0 || r.FalseRewards == 0 || len(r.Problems) == 0 {
		t.Errorf("result %+v", r)
	}
}

// TestStarts: a start is the same whenever it comes again, in whichever world, and a database that
// was left changed is found.
func TestStarts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	g, err := gym.Open(ctx, gym.Options{World: "../check/testdata/worlds/proof", Worlds: 2, Traces: "off", VerifyEvery: 5})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	r, err := RunResets(ctx, g, Resets{Count: 40, Actions: 4, Seeds: 2, Seed: 1, Tasks: []string{"note", "parcel"}, OnReset: func(int) { seen++ }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Resets != 40 || seen != 40 || r.Wrong != 0 || r.Orphans != 0 || r.Lost != 0 || r.Failures != 0 || r.Starts >= r.Resets || r.Actions == 0 {
		t.Errorf("%+v", r)
	}
}

// TestWrongStart: another start of the same kind is a wrong state.
func TestWrongStart(t *testing.T) {
	t.Parallel()
	k := &resetting{first: map[string]string{}}
	k.began("a", "x", 0)
	k.began("b", "y", 0)
	k.began("a", "x", 0)
	if k.res.Wrong != 0 {
		t.Error("the same start counts as wrong")
	}
	if k.began("a", "y", 0); k.res.Wrong != 1 || len(k.res.Problems) != 1 {
		t.Errorf("another start does not: %+v", k.res)
	}
}

// TestInterrupted: what was found until an interruption is told.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	g, err := gym.Open(ctx, gym.Options{World: "../check/testdata/worlds/proof", Worlds: 1, Traces: "off"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := RunResets(ctx, g, Resets{Count: 1000, Actions: 2, Seeds: 2, OnReset: func(int) { cancel() }})
	if err == nil || r == nil || r.Resets == 0 || r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestGrowth: what grows by more than the bars is told, whoever holds it, and not before the warm-up is over.
func TestGrowth(t *testing.T) {
	t.Parallel()
	steady := func(int) float64 { return 100 }
	grows := func(i int) float64 { return 100 + float64(i)/10 } // 18 % from the second tenth to the last
	warms := func(i int) float64 { return min(100, 80+float64(i)) }
	for name, c := range map[string]struct {
		worlds, memory, routines, files func(int) float64
		resets                          int
		grown                           bool
	}{
		"steady":          {steady, steady, steady, steady, 2000, false},
		"warms up":        {warms, warms, warms, warms, 2000, false},
		"worlds":          {grows, steady, steady, steady, 2000, true},
		"memory":          {steady, grows, steady, steady, 2000, true},
		"goroutines":      {steady, steady, grows, steady, 2000, true},
		"files":           {steady, steady, steady, grows, 2000, true},
		"too few to tell": {grows, grows, grows, grows, 999, false},
	} {
		k := &resetting{c: Resets{Count: c.resets}, res: ResetsResult{Resets: c.resets}}
		for i := range samples {
			k.looks = append(k.looks, look{c.worlds(i), c.memory(i), c.routines(i), c.files(i)})
		}
		if k.finish(); k.res.grown() != c.grown || k.res.OK == c.grown {
			t.Errorf("%s: grown %v, ok %v: %+v", name, k.res.grown(), k.res.OK, k.res)
		}
	}
}

// TestFrom: a part of a long soak can be played again by itself.
func TestFrom(t *testing.T) {
	t.Parallel()
	k := &resetting{c: Resets{Count: 3, From: 7000}}
	var got []int
	for n := k.take(t.Context()); n >= 0; n = k.take(t.Context()) {
		got = append(got, n)
	}
	if !slices.Equal(got, []int{7000, 7001, 7002}) {
		t.Errorf("episodes %v", got)
	}
}
