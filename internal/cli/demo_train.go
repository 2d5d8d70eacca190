package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/curriculum"
	"github.com/pommelgym/pommel/internal/learn/report"
	"github.com/pommelgym/pommel/internal/learn/train"
	"github.com/pommelgym/pommel/internal/server"
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
	dir, closeDir, err := c.folder()
	if err != nil {
		return nil, err
	}
	defer closeDir()
	defer c.show(ctx, s, dir)()
	view := newTrainView(s, tasks, fmt.Sprintf("%d steps", c.Steps))
	defer view.end()
	var t *train.Trainer
	watch := view.watch()
	view.logInto(dir, &watch, &t)
	t, err = train.New(train.Config{
		World: g.Describe().World, Tasks: tasks, Seed: c.Seed, Steps: c.Steps, HintAfter: 2, Friction: curriculum.Calm{}, Tuning: train.Default(),
	}, envs, watch)
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

// folder is where the training's log lies: the one that was asked for, or one of a moment.
func (c *demoCmd) folder() (dir string, done func(), err error) {
	if c.Out != "" {
		return c.Out, func() {}, os.MkdirAll(c.Out, 0o755)
	}
	if dir, err = os.MkdirTemp("", "pommel-demo-"); err != nil {
		return "", nil, fmt.Errorf("make a folder for the training's log: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// show serves the dashboard while the training runs, and says where. The demo does not need
// it: that it cannot listen is said and no more.
func (c *demoCmd) show(ctx context.Context, s *State, dir string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o := server.Options{Traces: tracesIn(c.Traces), Training: []string{dir}}
		err := server.NewViewer(o).ListenAndServe(ctx, "127.0.0.1:0", func(address string) {
			s.say("   its curve and episodes, live, in a browser: %s/", address)
		})
		if err != nil && ctx.Err() == nil {
			s.say("   no dashboard: %v", err)
		}
	}()
	return func() { cancel(); <-ended }
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
