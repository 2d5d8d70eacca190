package soak

import (
	"context"
	"os"
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
