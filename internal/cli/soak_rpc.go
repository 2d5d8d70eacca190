package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pommelgym/pommel/internal/soak"
)

// rpcSoak is the result of soak --part rpc.
type rpcSoak struct {
	soak.Result
	Interrupted bool `json:"interrupted,omitempty"`
	OK          bool `json:"ok"`
}

// runRPC has bad clients play over the stream RPC.
func (c *soakCmd) runRPC(ctx context.Context, s *State) error {
	told := s.bootProgress()
	g, err := c.open(ctx, s, told)
	if err != nil {
		return err
	}
	var bar *progress // drawn once the episodes begin
	r, err := soak.Run(ctx, g, soak.Config{
		Episodes: c.Episodes, Clients: c.Clients, Lease: c.Lease, Plans: c.Plans, Steps: c.Actions, Tasks: c.Task, Seed: c.Seed,
		OnPlan:    func(task string) { told("playing " + task + " undisturbed") },
		OnStart:   func() { bar = s.progress("soak", c.Episodes) },
		OnEpisode: func(faults int) { bar.step(fmt.Sprintf("%d faults", faults)) },
	})
	if bar != nil {
		bar.end()
	}
	if err != nil && r.Episodes == 0 {
		return err
	}
	// What had been found before an interruption is told too.
	res := rpcSoak{Result: *r, Interrupted: err != nil, OK: err == nil && r.Faults() == 0}
	if c.JSON {
		err = cmp.Or(err, s.printJSON(&res))
	} else {
		res.print(s)
	}
	if err == nil && !res.OK {
		return errNotGood
	}
	return err
}

func (r *rpcSoak) print(s *State) {
	fmt.Fprintf(s.Stdout, "%d episodes, %d steps by %d clients, %.2f episodes/s; %d cuts, %d stalls, %d pauses, %d deaths, %d episodes taken over, void: %v\n",
		r.Episodes, r.Steps, r.Clients, r.PerSecond, r.Cuts, r.Stalls, r.Pauses, r.Deaths, r.TakenOver, r.Void)
	fmt.Fprintf(s.Stdout, "%d false rewards, %d steps carried out twice, %d wrong states, %d failures, %d worlds leaked, %d worlds lost, %d orphans, %d streams leaked\n",
		r.FalseRewards, r.Twice, r.Unlike, r.Failures, r.Leaked, r.Lost, r.Orphans, r.Streams)
	for _, p := range r.Problems {
		fmt.Fprintln(s.Stdout, p)
	}
}
