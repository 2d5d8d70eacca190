package cli

import (
	"context"
	"fmt"

	"github.com/pommelgym/pommel/internal/check"
)

type checkCmd struct {
	worldFlags
	taskFlags
	jsonFlag
	Seeds    int   `default:"3" help:"How many seeds to try for each task."`
	Seed     int64 `default:"0" help:"The first of them."`
	Parallel int   `default:"2" help:"How many worlds run at the same time."`
}

func (c *checkCmd) Validate() error {
	if c.Seeds < 1 || c.Parallel < 1 {
		return fmt.Errorf("--seeds and --parallel take 1 or more")
	}
	return nil
}

func (c *checkCmd) Run(ctx context.Context, s *State) error {
	g, err := c.open(ctx, s, c.Parallel)
	if err != nil {
		return err
	}
	defer g.Close()
	tasks, err := c.choose(g)
	if err != nil {
		return err
	}
	seeds := make([]int64, c.Seeds)
	for i := range seeds {
		seeds[i] = c.Seed + int64(i)
	}
	bar := s.progress("check", len(tasks))
	bad := 0
	found, err := check.Run(ctx, g, check.Config{Tasks: tasks, Seeds: seeds, Parallel: c.Parallel, OnTask: func(t check.Task) {
		if !t.OK {
			bad++
		}
		bar.step(fmt.Sprintf("%d bad", bad))
	}})
	bar.end()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := s.printJSON(map[string]any{"ok": bad == 0, "world": g.Describe().World, "seeds": seeds, "tasks": found}); err != nil {
			return err
		}
	} else {
		printChecks(s, found)
	}
	if bad > 0 {
		return errNotGood
	}
	return nil
}

func printChecks(s *State, found []check.Task) {
	var rows [][]string
	for _, t := range found {
		row := []string{t.Task}
		if t.OK {
			row = append(row, "ok", "")
		} else {
			row = append(row, "BAD", "")
		}
		for _, c := range t.Checks {
			if !c.OK {
				row[2] += c.Name + ": " + c.Detail + " "
			}
		}
		rows = append(rows, row)
	}
	table(s.Stdout, "TASK|RESULT|", rows...)
}
