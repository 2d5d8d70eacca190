package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/agent"
)

type soakCmd struct {
	worldFlags
	jsonFlag
	Part    string `enum:"resets,rpc" default:"resets" help:"resets: each start is held against the first one of its kind. rpc: clients that die, stand still and lose connections play known episodes over the stream RPC."`
	Resets  int    `default:"10000" help:"Part resets: how many episodes are begun."`
	Actions int    `default:"10" help:"How many actions an episode has: random ones, and in part rpc a solution of at most so many."`
	Seeds   int    `default:"5" help:"Part resets: how many seeds of each task."`
	Verify  int    `default:"100" help:"Compare a world with its snapshot byte for byte at each Nth reset in place; 0 never."`
	Seed    int64  `default:"1" help:"Of the random choices."`

	Task     []string      `help:"Part rpc: only these tasks (repeat or separate by commas)."`
	Episodes int           `default:"5000" help:"Part rpc: how many episodes are finished."`
	Clients  int           `default:"4" help:"Part rpc: how many clients there are."`
	Worlds   int           `default:"2" help:"Part rpc: how many worlds they share."`
	Lease    time.Duration `default:"2s" help:"Part rpc: how long a client may be silent."`
	Plans    int           `default:"12" help:"Part rpc: how many tasks are played."`
}

// Validate refuses what cannot be meant.
func (c *soakCmd) Validate() error {
	if c.Resets < 1 || c.Actions < 1 || c.Seeds < 1 || c.Episodes < 1 || c.Clients < 1 || c.Worlds < 1 || c.Plans < 1 {
		return fmt.Errorf("--resets, --actions, --seeds, --episodes, --clients, --worlds and --plans take 1 or more")
	}
	if c.Lease < 100*time.Millisecond {
		return fmt.Errorf("--lease takes 100ms or more: a shorter one ends between two calls")
	}
	return nil
}

// soakResult is what came of a soak. Wrong are resets after which the first observation or
// the rows were not those of the first time; Problems names the first few.
type soakResult struct {
	World    string   `json:"world"`
	Driver   string   `json:"driver"`
	Resets   int      `json:"resets"`
	Actions  int      `json:"actions"`
	Wrong    int      `json:"wrong_states"`
	Verified int      `json:"verified"`
	Orphans  int      `json:"orphans"`
	Lost     int      `json:"worlds_lost"`
	SlowPath int      `json:"slow_paths"`
	Failures int      `json:"failures"`
	MemoryMB drift    `json:"memory_mb"`
	Reset    spread   `json:"first_observation_ms"`
	Problems []string `json:"problems,omitempty"`
	OK       bool     `json:"ok"`
}

// drift is measured from after the warm-up to the end, as medians of some resets each.
type drift struct {
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Percent float64 `json:"percent"`
}

// The bars of a soak.
const (
	mostDrift = 2.0   // percent
	mostSlow  = 0.001 // of the resets
)

func (c *soakCmd) Run(ctx context.Context, s *State) error {
	if c.Part == "rpc" {
		return c.runRPC(ctx, s)
	}
	g, err := gym.Open(ctx, gym.Options{
		World: c.World, Driver: c.Driver, Worlds: 1, Spares: -1, Traces: "off", VerifyEvery: c.Verify, Log: s.logger(c.Log), Progress: s.bootProgress(),
	})
	if err != nil {
		return err
	}
	k := &soaking{c: c, g: g, env: g.NewEnv(), rng: rand.New(rand.NewPCG(uint64(c.Seed), 0)), first: map[string]string{}}
	k.res = soakResult{World: g.Describe().World, Driver: g.Describe().Driver}
	err = k.run(ctx, s)
	pids := g.Pids()
	if closed := g.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	k.finish(pids)
	if c.JSON {
		err = s.printJSON(&k.res)
	} else {
		r := &k.res
		fmt.Fprintf(s.Stdout, "%d resets, %d actions: %d wrong states, %d orphans, %d worlds lost, %d slow paths, %d failures; memory %.0f MB then %.0f MB (%+.1f %%); %d verified\n",
			r.Resets, r.Actions, r.Wrong, r.Orphans, r.Lost, r.SlowPath, r.Failures, r.MemoryMB.Start, r.MemoryMB.End, r.MemoryMB.Percent, r.Verified)
		for _, p := range r.Problems {
			fmt.Fprintln(s.Stdout, p)
		}
	}
	if err == nil && !k.res.OK {
		return errNotGood
	}
	return err
}

// soaking is a soak under way.
type soaking struct {
	c      *soakCmd
	g      *gym.Gym
	env    *gym.Env
	rng    *rand.Rand
	res    soakResult
	first  map[string]string // what the first reset of an episode led to
	rows   string            // the query that tells of all rows
	took   []float64
	memory []float64
}

func (k *soaking) run(ctx context.Context, s *State) error {
	defer k.env.Close()
	tasks, err := k.g.Select("", "", nil)
	if err != nil {
		return err
	}
	bar := s.progress("soak", k.c.Resets)
	defer bar.end()
	every := max(1, k.c.Resets/200)
	for i := range k.c.Resets {
		r := gym.Request{Task: tasks[k.rng.IntN(len(tasks))].ID, Seed: k.rng.Int64N(int64(k.c.Seeds)), View: gym.View{Elements: true}}
		if err := k.episode(ctx, r); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			k.res.Failures++
			k.problem("reset %d, %s seed %d: %v", i, r.Task, r.Seed, err)
		}
		k.res.Resets++
		if i%every == 0 {
			k.memory = append(k.memory, k.g.Usage().MemoryMB)
		}
		bar.step(fmt.Sprintf("%d wrong", k.res.Wrong))
	}
	n := k.g.Counts()
	k.res.Lost, k.res.SlowPath = n.Lost, n.SlowPaths
	return nil
}

// episode begins one, looks whether it begins as the first time, and plays at random.
func (k *soaking) episode(ctx context.Context, r gym.Request) error {
	start := time.Now()
	last, err := k.env.Reset(ctx, r)
	if err != nil {
		return err
	}
	k.took = append(k.took, since(start))
	if k.g.LastReset().Verified {
		k.res.Verified++
	}
	rows, err := k.allRows(ctx)
	if err != nil {
		return err
	}
	key, state := fmt.Sprintf("%s seed %d", r.Task, r.Seed), last.Info.ObservationHash+" "+rows
	if was, ok := k.first[key]; ok && was != state {
		k.res.Wrong++
		k.problem("%s began as %s, and the first time as %s", key, state, was)
	}
	k.first[key] = state
	words := strings.Fields(last.Instruction)
	for range k.c.Actions {
		if last.Done() {
			break
		}
		if last, err = k.env.Step(ctx, agent.RandomAction(k.rng, last.Observation, words)); err != nil {
			return err
		}
		k.res.Actions++
	}
	return nil
}

func (k *soaking) problem(format string, args ...any) {
	if len(k.res.Problems) < 10 {
		k.res.Problems = append(k.res.Problems, fmt.Sprintf(format, args...))
	}
}

// tablesQuery lists what must be looked at.
const tablesQuery = `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`

// allRows is a hash over the rows of all tables.
func (k *soaking) allRows(ctx context.Context) (string, error) {
	if k.rows == "" {
		raw, err := k.env.Query(ctx, tablesQuery)
		if err != nil {
			return "", err
		}
		names, err := texts(raw)
		if err != nil || len(names) == 0 {
			return "", fmt.Errorf("list the tables: %d found: %w", len(names), err)
		}
		var parts []string
		for _, n := range names {
			parts = append(parts, "SELECT md5(coalesce(string_agg(x::text, chr(10) ORDER BY x::text), '')) AS sum FROM "+n+" x")
		}
		k.rows = "SELECT md5(string_agg(sum, ' ' ORDER BY nr)) FROM (SELECT sum, row_number() OVER () AS nr FROM (" + strings.Join(parts, " UNION ALL ") + ") a) b"
	}
	raw, err := k.env.Query(ctx, k.rows)
	if err != nil {
		return "", err
	}
	sums, err := texts(raw)
	if err != nil || len(sums) != 1 {
		return "", fmt.Errorf("look at all rows: %d sums: %w", len(sums), err)
	}
	return sums[0], nil
}

// texts is the first column of a result.
func texts(raw json.RawMessage) ([]string, error) {
	var rows struct{ Text [][]*string }
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, err
	}
	var out []string
	for _, r := range rows.Text {
		if len(r) > 0 && r[0] != nil {
			out = append(out, *r[0])
		}
	}
	return out, nil
}

// finish holds the result against the bars.
func (k *soaking) finish(pids []int) {
	r := &k.res
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			r.Orphans++
		}
	}
	r.Reset = spreadOf(k.took)
	// A tenth warms up; a tenth at each end is looked at.
	if tenth := len(k.memory) / 10; tenth > 0 {
		r.MemoryMB.Start, r.MemoryMB.End = spreadOf(k.memory[tenth:2*tenth]).P50, spreadOf(k.memory[len(k.memory)-tenth:]).P50
		r.MemoryMB.Percent = round(100 * (r.MemoryMB.End - r.MemoryMB.Start) / r.MemoryMB.Start)
	}
	r.OK = r.Wrong == 0 && r.Orphans == 0 && r.Lost == 0 && r.Failures == 0 && r.MemoryMB.Percent < mostDrift &&
		float64(r.SlowPath) <= mostSlow*float64(r.Resets)
}
