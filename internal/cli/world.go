package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/pommelgym/pommel/gym"
)

type worldCmd struct {
	List  worldListCmd  `cmd:"" help:"List the worlds that can be found, or the tasks of one."`
	Check worldCheckCmd `cmd:"" help:"Check a world's files, build its image, boot it once, try its tasks' SQL."`
	Shell worldShellCmd `cmd:"" help:"Boot a world and work in it by hand: actions, SQL, the judge."`
}

type worldListCmd struct {
	jsonFlag
	Tasks string `placeholder:"WORLD" help:"List the tasks of this world instead."`
}

func (c *worldListCmd) Run(s *State) error {
	if c.Tasks != "" {
		return c.tasks(s)
	}
	found := gym.Worlds()
	if c.JSON {
		return s.printJSON(map[string]any{"worlds": found})
	}
	var rows [][]string
	for _, w := range found {
		note := w.Title
		if w.Error != "" {
			note = "BAD: " + w.Error
		}
		rows = append(rows, []string{w.Name, strconv.Itoa(w.Tasks), w.Dir, note})
	}
	table(s.Stdout, "WORLD|TASKS|FOLDER|TITLE", rows...)
	return nil
}

func (c *worldListCmd) tasks(s *State) error {
	tasks, err := gym.TasksOf(c.Tasks)
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(map[string]any{"world": c.Tasks, "tasks": tasks})
	}
	var rows [][]string
	for _, t := range tasks {
		rows = append(rows, []string{t.ID, t.Difficulty, t.Split, strconv.Itoa(t.MaxSteps), t.Title})
	}
	table(s.Stdout, "TASK|DIFFICULTY|SPLIT|MAX STEPS|TITLE", rows...)
	return nil
}

type worldCheckCmd struct {
	jsonFlag
	World  string `arg:"" default:"shop" help:"Name or folder of the world."`
	Driver string `default:"auto" help:"${driver_help}"`
}

func (c *worldCheckCmd) Run(ctx context.Context, s *State) error {
	start := time.Now()
	g, err := worldFlags{World: c.World, Driver: c.Driver, Traces: "off"}.open(ctx, s, 1)
	if err != nil {
		return err
	}
	defer g.Close()
	booted := time.Since(start)
	problems, err := g.Problems(ctx)
	if err != nil {
		return err
	}
	tasks, err := g.Select("", "", nil)
	if err != nil {
		return err
	}
	d := g.Describe()
	ok := len(problems) == 0
	if c.JSON {
		err = s.printJSON(map[string]any{"ok": ok, "world": d.World, "driver": d.Driver, "tasks": len(tasks), "boot_ms": ms(booted), "problems": problems})
	} else {
		for task, list := range problems {
			for _, p := range list {
				fmt.Fprintf(s.Stdout, "%s: %s\n", task, p)
			}
		}
		fmt.Fprintf(s.Stdout, "world %s: %d tasks, driver %s, up in %.1f s, %d tasks with problems\n", d.World, len(tasks), d.Driver, booted.Seconds(), len(problems))
	}
	if err == nil && !ok {
		err = errNotGood
	}
	return err
}

// bootProgress prints what a boot is doing, with the time since the stage before.
func (s *State) bootProgress() func(string) {
	last := time.Now()
	return func(stage string) {
		s.say("   %-48s +%.1f s", stage, time.Since(last).Seconds())
		last = time.Now()
	}
}
