package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/curriculum"
	"github.com/pommelgym/pommel/internal/learn/report"
	"github.com/pommelgym/pommel/internal/learn/train"
)

// demoTraining is what the demo's policy learnt.
type demoTraining struct {
	*train.Outcome
	// Before and After are how it did, by profile.
	Before map[string]*train.Evaluation `json:"before"`
	After  map[string]*train.Evaluation `json:"after"`
}

// demoProfiles are what the policy is judged under: what it was trained under, and what it was not.
var demoProfiles = []string{"calm", "rough"}

// learn trains a policy from no opinion at all, and judges it before and after.
func (c *demoCmd) learn(ctx context.Context, s *State, g *gym.Gym) (*demoTraining, error) {
	tasks, err := trainingTasks(g, nil, []string{"easy", "medium"})
	if err != nil {
		return nil, err
	}
	envs, closeEnvs := batch.Open(g, c.Parallel)
	defer closeEnvs()
	view := newTrainView(s, tasks, fmt.Sprintf("%d steps", c.Steps))
	defer view.end()
	t, err := train.New(train.Config{
		World: g.Describe().World, Tasks: tasks, Seed: c.Seed, Steps: c.Steps, HintAfter: 2, Friction: curriculum.Calm{}, Tuning: train.Default(),
	}, envs, view.watch())
	if err != nil {
		return nil, err
	}
	d := &demoTraining{}
	if d.Before, err = judgeDemo(ctx, t, "before training"); err != nil {
		return nil, err
	}
	if err := t.Run(ctx); err != nil {
		return nil, err
	}
	if d.After, err = judgeDemo(ctx, t, "after training"); err != nil {
		return nil, err
	}
	view.end()
	d.Outcome = t.Outcome()
	if c.Out == "" {
		return d, nil
	}
	if err := report.Write(c.Out, d.Outcome); err != nil {
		return nil, err
	}
	return d, t.Save(filepath.Join(c.Out, "policy.pommel"))
}

func judgeDemo(ctx context.Context, t *train.Trainer, when string) (map[string]*train.Evaluation, error) {
	all := map[string]*train.Evaluation{}
	for _, p := range demoProfiles {
		v, err := t.Evaluate(ctx, when+", "+p, p, 1)
		if err != nil {
			return nil, err
		}
		all[p] = v
	}
	return all, nil
}

func printLearnt(s *State, d *demoTraining, out string) {
	var rows [][]string
	for _, p := range demoProfiles {
		row := []string{p}
		for _, v := range []*train.Evaluation{d.Before[p], d.After[p]} {
			row = append(row, fmt.Sprintf("%d/%d", v.Success, v.Episodes), percent(v.Success, v.Episodes), fmt.Sprintf("%.2f", v.Reward))
		}
		rows = append(rows, row)
	}
	fmt.Fprintf(s.Stdout, "\nA policy that knew nothing, after %d steps on %d tasks (%.0f s, %.1f steps/s), on seeds that it never saw:\n\n",
		d.Steps, len(d.ByTask), d.Seconds, d.StepsPerS)
	table(s.Stdout, "PROFILE|BEFORE|SUCCESS|REWARD|AFTER|SUCCESS|REWARD", rows...)
	fmt.Fprintf(s.Stdout, "\nsuccess of late while it learnt   %s\npolicy %s (the same seed gives the same one)", spark(d.Curve, func(p train.Point) float64 { return p.Smooth }), d.Digest)
	if out != "" {
		fmt.Fprintf(s.Stdout, "; curve and tasks: %s", filepath.Join(out, "report.html"))
	}
	fmt.Fprintln(s.Stdout)
}
