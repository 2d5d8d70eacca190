package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/curriculum"
	"github.com/pommelgym/pommel/internal/learn/report"
	"github.com/pommelgym/pommel/internal/learn/train"
)

type trainCmd struct {
	worldFlags
	jsonFlag
	Tasks      []string `help:"Only these tasks. Default: the easy and medium ones of the training split."`
	Difficulty []string `default:"easy,medium" help:"Difficulties to train on, if --tasks names none."`
	Profile    string   `default:"" help:"Perturbations to train under; their strength rises from 0 between three tenths and half of the way, unless @ behind the name fixes it."`
	Steps      int      `help:"Train for this many steps. With it, the same seed gives the same policy, bit for bit."`
	Seconds    int      `help:"Train for this long instead; how many steps that are depends on the machine."`
	Seed       int64    `default:"0" help:"Seed of the network, of the draws and of the choice of episodes."`
	Demos      int      `default:"0" help:"Imitate this many episodes of each task's oracle first. 0 starts from nothing."`
	HintAfter  int      `default:"0" help:"Let a task's oracle show the way after this many episodes without success; 0 never."`
	Prior      bool     `default:"true" negatable:"" help:"Begin with the common sense of web pages (see docs/training.md) in place of no opinion."`
	Evaluate   int      `default:"2" help:"Episodes of each task before and after, on seeds that training does not see; 0 leaves it out."`
	Parallel   int      `default:"2" help:"How many worlds play at the same time; the result does not depend on it."`
	Out        string   `default:"" help:"Folder for the policy, the log, the plots and the report. Default: pommel-train-SEED."`
	Resume     string   `default:"" help:"Go on from this policy file; give the same options and a larger budget."`
	Expect     float64  `name:"expect-success" default:"0" help:"Exit with 1 if the success rate at the end is lower (0..1)."`
}

// Validate refuses what cannot be meant.
func (c *trainCmd) Validate() error {
	switch {
	case c.Steps < 0 || c.Seconds < 0 || c.Steps > 0 && c.Seconds > 0:
		return fmt.Errorf("give --steps or --seconds, one of them and not below 0")
	case c.Parallel < 1 || c.Demos < 0 || c.HintAfter < 0 || c.Evaluate < 0:
		return fmt.Errorf("--parallel takes 1 or more, --demos, --hint-after and --evaluate 0 or more")
	case c.Expect < 0 || c.Expect > 1:
		return fmt.Errorf("--expect-success takes 0 to 1")
	}
	if c.Steps == 0 && c.Seconds == 0 {
		c.Steps = 4000
	}
	if c.Out == "" {
		c.Out = fmt.Sprintf("pommel-train-%d", c.Seed)
	}
	return nil
}

func (c *trainCmd) Run(ctx context.Context, s *State) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return usagef("--out: %v", err)
	}
	g, err := c.open(ctx, s, c.Parallel)
	if err != nil {
		return err
	}
	defer g.Close()
	if err := g.CheckProfile(c.Profile); err != nil {
		return err
	}
	tasks, err := trainingTasks(g, c.Tasks, c.Difficulty)
	if err != nil {
		return err
	}
	envs, closeEnvs := batch.Open(g, c.Parallel)
	defer closeEnvs()
	show := newTrainView(s, tasks, c.budget())
	defer show.end()
	var t *train.Trainer
	watch := show.watch()
	show.logInto(c.Out, &watch, &t)
	t, err = train.New(train.Config{
		World: g.Describe().World, Profile: c.Profile, Tasks: tasks, Seed: c.Seed, Steps: c.Steps, Time: time.Duration(c.Seconds) * time.Second,
		Demos: c.Demos, HintAfter: c.HintAfter, Prior: c.Prior, Evaluate: c.Evaluate, Friction: curriculum.For(c.Profile), Tuning: train.Default(),
	}, envs, watch)
	if err != nil {
		return usageError{err}
	}
	if c.Resume != "" {
		if err := t.Resume(c.Resume); err != nil {
			return err
		}
	}
	err = t.Run(ctx)
	show.end()
	// An interrupted training keeps what it has.
	err = errors.Join(err, t.Save(filepath.Join(c.Out, "policy.pommel")))
	if err != nil {
		return err
	}
	o := t.Outcome()
	if err := report.Write(c.Out, o); err != nil {
		return err
	}
	return c.finish(s, o)
}

// trainingTasks are the named tasks, or those of the training split of some difficulties.
func trainingTasks(g *gym.Gym, ids, difficulties []string) ([]gym.TaskInfo, error) {
	return tasksOf(g, "train", ids, difficulties)
}

// tasksOf are the tasks with these ids, or without ids those of a split that are of one of the difficulties.
func tasksOf(g *gym.Gym, split string, ids, difficulties []string) ([]gym.TaskInfo, error) {
	if len(ids) > 0 {
		return g.Select("", "", ids)
	}
	all, err := g.Select(split, "", nil)
	if err != nil {
		return nil, err
	}
	var out []gym.TaskInfo
	for _, t := range all {
		if slices.Contains(difficulties, t.Difficulty) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, usagef("world %s has no task of split %s of difficulty %s", g.Describe().World, split, strings.Join(difficulties, " or "))
	}
	return out, nil
}

func (c *trainCmd) budget() string {
	if c.Steps == 0 {
		return fmt.Sprintf("%d s", c.Seconds)
	}
	return fmt.Sprintf("%d steps", c.Steps)
}

func (c *trainCmd) finish(s *State, o *train.Outcome) error {
	var err error
	if c.JSON {
		err = s.printJSON(o)
	} else {
		printTraining(s, o, c.Out)
	}
	if err == nil && o.End != nil && o.SuccessEnd < c.Expect {
		err = errNotGood
	}
	return err
}
