package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/internal/determinism"
	"github.com/pommelgym/pommel/internal/replay"
)

type benchDeterminismCmd struct {
	worldFlags
	taskFlags
	jsonFlag
	Episodes int      `default:"200" help:"How many episodes for each driver."`
	Repeat   int      `default:"10" help:"How many episodes of one task, seed and agent are compared."`
	Agents   []string `default:"oracle,random" help:"Who plays; agents take turns."`
	Worlds   int      `default:"2" help:"How many worlds run at the same time."`
	Seed     int64    `default:"0" help:"The first seed."`
	Steps    int      `default:"12" help:"Most steps of an episode of an agent that is not the oracle."`
	Shots    int      `default:"5" help:"Take a screenshot at the reset and after every so many steps; 0 takes none."`
	Also     []string `help:"Other drivers to play the same episodes with (${drivers}); all must agree."`
	Few      int      `name:"also-episodes" default:"0" help:"How many episodes with each of those; 0 is as many."`
	Profile  string   `default:"" help:"Perturbations of the episodes, see run."`
	Against  []string `help:"Other profiles to play the same episodes under; all must agree, as rough@0 does with none."`
	Load     int      `default:"0" help:"Keep so many threads busy with other work meanwhile."`
}

// Validate refuses what cannot be meant.
func (c *benchDeterminismCmd) Validate() error {
	if c.Episodes < 1 || c.Repeat < 1 || c.Worlds < 1 || c.Steps < 1 || c.Shots < 0 || c.Load < 0 || c.Few < 0 {
		return fmt.Errorf("--episodes, --repeat, --worlds and --steps take 1 or more; --shots, --load and --also-episodes 0 or more")
	}
	return nil
}

// determinismBench is the result of bench determinism.
type determinismBench struct {
	World   string   `json:"world"`
	Profile string   `json:"profile"`
	Against []string `json:"against,omitempty"`
	Drivers []string `json:"drivers"`
	Worlds  int      `json:"worlds"`
	Load    int      `json:"load"`
	determinism.Summary
}

func (c *benchDeterminismCmd) Run(ctx context.Context, s *State) error {
	tally := determinism.NewTally()
	res := determinismBench{Profile: cmp.Or(c.Profile, "none"), Against: c.Against, Worlds: c.Worlds, Load: c.Load}
	busy, rest := context.WithCancel(ctx)
	defer rest()
	for range c.Load {
		go toil(busy)
	}
	var stopped error
	for i, driver := range append([]string{c.Driver}, c.Also...) {
		episodes := c.Episodes
		if i > 0 && c.Few > 0 {
			episodes = c.Few
		}
		if stopped = c.with(ctx, s, driver, episodes, tally, &res); stopped != nil {
			break
		}
	}
	if stopped != nil && ctx.Err() == nil {
		return stopped
	}
	// Who interrupts it is told what was found until then.
	res.Summary = tally.Summary()
	if c.JSON {
		if err := s.printJSON(res); err != nil {
			return err
		}
	} else {
		c.print(s, res)
	}
	if stopped != nil {
		return stopped
	}
	if res.Mismatches > 0 || res.MaxChains > 1 || res.Failures > 0 {
		return errNotGood
	}
	return nil
}

// with plays the episodes on the worlds of one driver.
func (c *benchDeterminismCmd) with(ctx context.Context, s *State, driver string, episodes int, t *determinism.Tally, res *determinismBench) error {
	flags := c.worldFlags
	flags.Driver, flags.Traces = driver, "off"
	g, err := flags.openProof(ctx, s, c.Worlds)
	if err != nil {
		return err
	}
	defer g.Close()
	tasks, err := c.choose(g)
	if err != nil {
		return err
	}
	d := g.Describe()
	res.World, res.Drivers = d.World, append(res.Drivers, d.Driver)
	cfg := determinism.Config{
		Tasks: tasks, Agents: c.Agents, Episodes: episodes, Repeat: c.Repeat, Parallel: c.Worlds,
		Seed: c.Seed, Driver: d.Driver, Profile: c.Profile, ShotEvery: c.Shots, MaxSteps: c.Steps,
	}
	// A shorter run plays the same groups, each less often.
	if episodes < c.Episodes {
		full := cfg
		full.Episodes = c.Episodes
		cfg.Repeat = max(1, episodes/full.Groups())
		cfg.Episodes = min(episodes, cfg.Repeat*full.Groups())
	}
	profiles := append([]string{c.Profile}, c.Against...)
	bar := s.progress("determinism "+d.Driver, len(profiles)*cfg.Repeat*cfg.Groups())
	defer bar.end()
	cfg.OnEpisode = func() { bar.step("") }
	for _, cfg.Profile = range profiles {
		if cfg.Profile == "none" {
			cfg.Profile = ""
		}
		if err := determinism.Run(ctx, g, cfg, t); err != nil {
			return err
		}
	}
	return nil
}

// toil is the other load of the machine.
func toil(ctx context.Context) {
	b := make([]byte, 64<<10)
	for ctx.Err() == nil {
		sum := sha256.Sum256(b)
		copy(b, sum[:])
	}
}

func (c *benchDeterminismCmd) print(s *State, r determinismBench) {
	if len(r.Against) > 0 {
		fmt.Fprintf(s.Stdout, "profile %s and %s play the same episodes\n", r.Profile, strings.Join(r.Against, ", "))
	}
	fmt.Fprintf(s.Stdout, "%s (%s), %d worlds, %d busy threads: %d episodes in %d groups of a task, a seed and an agent; %d steps, %d screenshots\n",
		r.World, strings.Join(r.Drivers, ", "), r.Worlds, r.Load, r.Episodes, r.Groups, r.Steps, r.Pictures)
	fmt.Fprintf(s.Stdout, "  distinct chains in a group       %d\n  distinct screenshots in a group  %d\n  distinct records in a group      %d\n  mismatches %d, failures %d\n",
		r.MaxChains, r.MaxPictures, r.MaxRecords, r.Mismatches, r.Failures)
	for _, e := range r.Examples {
		fmt.Fprintf(s.Stdout, "\n%s seed %d, %s, %s: step %d %s\n%s", e.Task, e.Seed, e.Agent, e.Driver, e.Step, e.Action, replay.Text(e.Differences))
	}
	for _, e := range r.Errors {
		fmt.Fprintln(s.Stdout, "  failed:", e)
	}
}
