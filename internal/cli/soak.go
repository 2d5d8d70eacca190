package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/soak"
)

type soakCmd struct {
	worldFlags
	jsonFlag
	Part    string `enum:"resets,rpc" default:"resets" help:"resets: each start is held against the first one of its kind. rpc: clients that die, stand still and lose connections play known episodes over the stream RPC."`
	Resets  int    `default:"10000" help:"Part resets: how many episodes are begun."`
	From    int    `default:"0" help:"Part resets: number of the first episode, as problems name it. Episode N is the same in every run with the same --seed, --seeds, --actions and --task."`
	Actions int    `default:"10" help:"How many actions an episode has: random ones, and in part rpc a solution of at most so many."`
	Seeds   int    `default:"5" help:"Part resets: how many seeds of each task."`
	Verify  int    `default:"100" help:"Compare a world with its snapshot byte for byte at each Nth reset in place; 0 never."`
	Seed    int64  `default:"1" help:"Of the random choices."`
	Worlds  int    `default:"2" help:"How many worlds play at the same time; what part resets plays does not depend on it."`

	Task     []string      `help:"Only these tasks (repeat or separate by commas)."`
	Episodes int           `default:"5000" help:"Part rpc: how many episodes are finished."`
	Clients  int           `default:"4" help:"Part rpc: how many clients there are."`
	Lease    time.Duration `default:"2s" help:"Part rpc: how long a client may be silent."`
	Plans    int           `default:"12" help:"Part rpc: how many tasks are played."`
}

// Validate refuses what cannot be meant.
func (c *soakCmd) Validate() error {
	if c.Resets < 1 || c.Actions < 1 || c.Seeds < 1 || c.Episodes < 1 || c.Clients < 1 || c.Worlds < 1 || c.Plans < 1 {
		return fmt.Errorf("--resets, --actions, --seeds, --episodes, --clients, --worlds and --plans take 1 or more")
	}
	if c.From < 0 {
		return fmt.Errorf("--from takes 0 or more")
	}
	if c.Lease < 100*time.Millisecond {
		return fmt.Errorf("--lease takes 100ms or more: a shorter one ends between two calls")
	}
	return nil
}

func (c *soakCmd) Run(ctx context.Context, s *State) error {
	if c.Part == "rpc" {
		return c.runRPC(ctx, s)
	}
	return c.runResets(ctx, s)
}

// open starts the worlds of a soak.
func (c *soakCmd) open(ctx context.Context, s *State, told func(string)) (*gym.Gym, error) {
	return gym.Open(ctx, gym.Options{
		World: c.World, Driver: c.Driver, Worlds: c.Worlds, Spares: -1, Traces: "off", VerifyEvery: c.Verify, Log: s.logger(c.Log), Progress: told,
	})
}

// resetsSoak is the result of soak --part resets.
type resetsSoak struct {
	*soak.ResetsResult
	Reset spread `json:"first_observation_ms"`
}

// runResets begins episodes. An interrupted one tells what it found until then.
func (c *soakCmd) runResets(ctx context.Context, s *State) error {
	g, err := c.open(ctx, s, s.bootProgress())
	if err != nil {
		return err
	}
	bar := s.progress("soak", c.Resets)
	r, err := soak.RunResets(ctx, g, soak.Resets{
		Count: c.Resets, From: c.From, Actions: c.Actions, Seeds: c.Seeds, Seed: c.Seed, Tasks: c.Task,
		OnReset: func(wrong int) { bar.step(fmt.Sprintf("%d wrong", wrong)) },
	})
	bar.end()
	if r == nil {
		return err
	}
	err = cmp.Or(err, c.tellResets(s, resetsSoak{r, spreadOf(r.Took)}))
	if err == nil && !r.OK {
		return errNotGood
	}
	return err
}

func (c *soakCmd) tellResets(s *State, r resetsSoak) error {
	if c.JSON {
		return s.printJSON(&r)
	}
	fmt.Fprintf(s.Stdout, "%d resets to %d different starts, %d actions, in %.0f s: %d wrong states, %d orphans, %d worlds lost, %d slow paths, %d failures\n",
		r.Resets, r.Starts, r.Actions, r.Seconds, r.Wrong, r.Orphans, r.Lost, r.SlowPath, r.Failures)
	fmt.Fprintf(s.Stdout, "first observation after %.1f ms (p50), %.1f ms (p99); memory of the worlds %.0f MB then %.0f MB (%+.1f %%); %d verified byte for byte\n",
		r.Reset.P50, r.Reset.P99, r.MemoryMB.Start, r.MemoryMB.End, r.MemoryMB.Percent, r.Verified)
	m, g, f := r.Server.MemoryMB, r.Server.Goroutines, r.Server.Files
	fmt.Fprintf(s.Stdout, "this process: memory %.0f MB then %.0f MB (%+.1f %%), goroutines %.0f then %.0f, open files %.0f then %.0f\n",
		m.Start, m.End, m.Percent, g.Start, g.End, f.Start, f.End)
	for _, p := range r.Problems {
		fmt.Fprintln(s.Stdout, p)
	}
	return nil
}
