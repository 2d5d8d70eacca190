package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/check"
)

type checkCmd struct {
	worldFlags
	taskFlags
	jsonFlag
	Seeds    int      `default:"3" help:"How many seeds to try for each task."`
	Seed     int64    `default:"0" help:"The first of them."`
	Parallel int      `default:"2" help:"How many tasks are checked at the same time."`
	Together int      `default:"4" help:"How many worlds play one episode at the same time."`
	Against  string   `enum:"auto,none,${drivers}" default:"auto" help:"Another driver whose worlds must play the same: ${enum}."`
	Profiles []string `help:"Also play every task under these perturbation profiles (all: the built-in ones) with an oracle that recovers."`
	Explain  bool     `help:"Print what each check proves, and what to do when it fails, and check nothing."`
}

// Validate refuses what cannot be meant.
func (c *checkCmd) Validate() error {
	if c.Seeds < 1 || c.Parallel < 1 || c.Together < 1 {
		return fmt.Errorf("--seeds, --parallel and --together take 1 or more")
	}
	return nil
}

func (c *checkCmd) Run(ctx context.Context, s *State) error {
	if c.Explain {
		return c.explain(s)
	}
	g, err := c.openProof(ctx, s, max(c.Parallel, c.Together))
	if err != nil {
		return err
	}
	defer g.Close()
	tasks, err := c.choose(g)
	if err != nil {
		return err
	}
	against, err := c.other(ctx, s, g)
	if err != nil {
		return err
	}
	if against != nil {
		defer against.Close()
	}
	cfg := check.Config{Tasks: tasks, Parallel: c.Parallel, Together: c.Together, Against: against}
	for i := range c.Seeds {
		cfg.Seeds = append(cfg.Seeds, c.Seed+int64(i))
	}
	bar := s.progress("check", len(tasks))
	bad := 0
	cfg.OnTask = func(t check.Task) {
		if !t.OK {
			bad++
		}
		bar.step(fmt.Sprintf("%d bad", bad))
	}
	found, err := check.Run(ctx, g, cfg)
	bar.end()
	if err == nil {
		err = c.checkProfiles(ctx, s, g, tasks, found)
	}
	if err != nil && len(found) == 0 {
		return err
	}
	// What had been found before an interruption is told too.
	res := c.result(g, against, cfg, found)
	res.OK = res.OK && err == nil
	err = cmp.Or(err, c.show(s, res))
	if err == nil && !res.OK {
		return errNotGood
	}
	return err
}

// other opens the world once more, put back by another driver.
func (c *checkCmd) other(ctx context.Context, s *State, g *gym.Gym) (*gym.Gym, error) {
	f := c.worldFlags
	f.Driver, f.Traces = c.Against, "off"
	switch {
	case c.Against == "none":
		return nil, nil
	case c.Against == "auto" && g.Describe().Driver == "rewind":
		f.Driver = "respawn"
	case c.Against == "auto":
		f.Driver = "rewind"
	}
	other, err := f.openProof(ctx, s, 1)
	if c.Against == "auto" && gym.ErrorKind(err) == gym.Unsupported {
		s.say("driver %s is left out: %v", f.Driver, err)
		return nil, nil
	}
	return other, err
}

// checkResult is the result of check.
type checkResult struct {
	OK      bool             `json:"ok"`
	World   string           `json:"world"`
	Drivers []string         `json:"drivers"`
	Seeds   []int64          `json:"seeds"`
	Checks  []check.Property `json:"checks"`
	Tasks   []check.Task     `json:"tasks"`
	// Unchecked is how many tasks were not checked whole before an interruption.
	Unchecked int `json:"unchecked,omitempty"`
}

func (c *checkCmd) result(g, against *gym.Gym, cfg check.Config, found []check.Task) *checkResult {
	d := g.Describe()
	left := len(cfg.Tasks) - len(found)
	res := &checkResult{OK: left == 0, World: d.World, Drivers: []string{d.Driver}, Seeds: cfg.Seeds, Checks: check.Properties(), Tasks: found, Unchecked: left}
	if against != nil {
		res.Drivers = append(res.Drivers, against.Describe().Driver)
	}
	for _, t := range found {
		res.OK = res.OK && t.OK
	}
	return res
}

func (c *checkCmd) show(s *State, res *checkResult) error {
	if c.JSON {
		return s.printJSON(res)
	}
	printChecks(s, res.Tasks)
	if res.Unchecked > 0 {
		fmt.Fprintf(s.Stdout, "%d tasks were not checked\n", res.Unchecked)
	}
	return nil
}

// printChecks prints a column a check, and below it what is wrong.
func printChecks(s *State, found []check.Task) {
	header := "TASK"
	for _, p := range check.Properties() {
		header += "|" + p.Name
	}
	var rows [][]string
	bad := 0
	for _, t := range found {
		row := []string{t.Task}
		for _, c := range t.Checks {
			switch {
			case !c.OK:
				row = append(row, "BAD")
			case c.Skipped != "":
				row = append(row, "-")
			default:
				row = append(row, "ok")
			}
		}
		if !t.OK {
			bad++
		}
		rows = append(rows, row)
	}
	table(s.Stdout, header, rows...)
	for _, t := range found {
		for _, c := range t.Checks {
			if !c.OK {
				fmt.Fprintf(s.Stdout, "\n%s, %s: %s\n  remedy: %s\n", t.Task, c.Name, strings.TrimRight(c.Detail, "\n"), c.Remedy)
			}
		}
	}
	fmt.Fprintf(s.Stdout, "\n%d of %d tasks are good\n", len(found)-bad, len(found))
}

func (c *checkCmd) explain(s *State) error {
	if c.JSON {
		return s.printJSON(map[string]any{"checks": check.Properties()})
	}
	for _, p := range check.Properties() {
		fmt.Fprintf(s.Stdout, "%s\n  proves: %s\n  remedy: %s\n", p.Name, p.What, p.Remedy)
	}
	return nil
}
