// Package experiment compares policies that were trained in the same way but for the
// perturbations they met: several seeds of each, the same number of steps, and the same
// episodes to judge them by.
//
// What is done is kept in a folder as it is done, so that an experiment that was
// interrupted goes on where it stopped.
package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/curriculum"
	"github.com/pommelgym/pommel/internal/learn/report"
	"github.com/pommelgym/pommel/internal/learn/train"
	"github.com/pommelgym/pommel/internal/rollout"
)

// Design says what is compared. It is stored with the results.
type Design struct {
	World string `json:"world"`
	// Arms are trained on Train, task ids, for Steps each, once for each seed.
	Arms  []Arm    `json:"arms"`
	Train []string `json:"train_tasks"`
	Steps int      `json:"steps"`
	Seeds []int64  `json:"seeds"`
	// HintAfter and Prior are those of training.
	HintAfter int  `json:"hint_after"`
	Prior     bool `json:"prior"`
	// Every policy plays each task of each suite Rounds times under each profile, from FirstSeed on.
	Suites    []Suite  `json:"suites"`
	Profiles  []string `json:"profiles"`
	Rounds    int      `json:"rounds"`
	FirstSeed int64    `json:"first_seed"`
}

// Arm is one way to train.
type Arm struct {
	Name string `json:"name"`
	// Profile is what training meets; "" is none.
	Profile string `json:"profile"`
}

// Suite is a set of tasks to judge policies by.
type Suite struct {
	Name  string   `json:"name"`
	Tasks []string `json:"tasks"`
}

// Run is one policy: what it learnt, and how it did.
type Run struct {
	Arm     string         `json:"arm"`
	Seed    int64          `json:"seed"`
	Trained *train.Outcome `json:"training"`
	Tests   []Test         `json:"tests"`
}

// Test is one policy on one suite under one profile.
type Test struct {
	Suite   string           `json:"suite"`
	Profile string           `json:"profile"`
	Played  *rollout.Summary `json:"played"`
}

// Result is the whole of an experiment.
type Result struct {
	Design Design `json:"design"`
	Runs   []Run  `json:"runs"`
	// Cells and Contrasts are computed from the runs.
	Cells     []Cell     `json:"cells"`
	Contrasts []Contrast `json:"contrasts"`
}

// Lab is where an experiment takes place.
type Lab struct {
	Gym      *gym.Gym
	Dir      string
	Parallel int
	// Watch shows a training, Judge n episodes that judge a policy; both return what to tell
	// and what to call at the end.
	Watch func(label string, tasks []gym.TaskInfo) (train.Watch, func())
	Judge func(label string, n int) (func(rollout.Episode), func())
}

// policyFile is a trained policy's in its folder.
const policyFile = "policy.pommel"

// Run does what is still to be done.
func (l *Lab) Run(ctx context.Context, d Design) (*Result, error) {
	if err := l.claim(d); err != nil {
		return nil, err
	}
	r := &Result{Design: d}
	for _, seed := range d.Seeds {
		for _, arm := range d.Arms {
			run := Run{Arm: arm.Name, Seed: seed}
			dir := filepath.Join(l.Dir, fmt.Sprintf("%s-%d", arm.Name, seed))
			var err error
			if run.Trained, err = l.train(ctx, d, arm, seed, dir); err != nil {
				return nil, fmt.Errorf("train %s, seed %d: %w", arm.Name, seed, err)
			}
			if run.Tests, err = l.tests(ctx, d, dir, arm.Name, seed); err != nil {
				return nil, fmt.Errorf("test %s, seed %d: %w", arm.Name, seed, err)
			}
			r.Runs = append(r.Runs, run)
		}
	}
	r.compare()
	return r, write(filepath.Join(l.Dir, "result.json"), r)
}

// claim makes the folder this experiment's, or makes sure that it already is: of the same design, but
// for seeds that were added.
func (l *Lab) claim(d Design) error {
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return fmt.Errorf("make the experiment's folder: %w", err)
	}
	file := filepath.Join(l.Dir, "design.json")
	var before Design
	switch err := read(file, &before); {
	case errors.Is(err, fs.ErrNotExist):
		return write(file, d)
	case err != nil:
		return err
	}
	n := len(before.Seeds)
	more := len(d.Seeds) > n && slices.Equal(before.Seeds, d.Seeds[:n])
	if more {
		before.Seeds = d.Seeds
	}
	switch {
	case !reflect.DeepEqual(before, d):
		return fmt.Errorf("%s holds an experiment of another design (%s): choose another folder, or add seeds only", l.Dir, file)
	case more:
		return write(file, d)
	}
	return nil
}

// train trains one policy, unless that has been done.
func (l *Lab) train(ctx context.Context, d Design, arm Arm, seed int64, dir string) (*train.Outcome, error) {
	var done train.Outcome
	if err := read(filepath.Join(dir, "train.json"), &done); err == nil {
		return &done, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	tasks, err := l.Gym.Select("", "", d.Train)
	if err != nil {
		return nil, err
	}
	envs, closeEnvs := batch.Open(l.Gym, l.Parallel)
	defer closeEnvs()
	watch, end := l.Watch(fmt.Sprintf("train %s, seed %d", arm.Name, seed), tasks)
	defer end()
	t, err := train.New(train.Config{
		World: d.World, Profile: arm.Profile, Tasks: tasks, Seed: seed, Steps: d.Steps, HintAfter: d.HintAfter, Prior: d.Prior, Friction: curriculum.For(arm.Profile), Tuning: train.Default(),
	}, envs, watch)
	if err != nil {
		return nil, err
	}
	if err := t.Run(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the policy's folder: %w", err)
	}
	// The log comes last: it says that the rest is there.
	if err := t.Save(filepath.Join(dir, policyFile)); err != nil {
		return nil, err
	}
	o := t.Outcome()
	return o, report.Write(dir, o)
}

// Ramp says that the strength of what training meets rises from 0; else it is the same all the time.
func (a Arm) Ramp() bool { return a.Profile != "" && !curriculum.Fixed(a.Profile) }

// tests judges one policy, as far as that has not been done.
func (l *Lab) tests(ctx context.Context, d Design, dir, arm string, seed int64) ([]Test, error) {
	var tests []Test
	for _, suite := range d.Suites {
		for _, profile := range d.Profiles {
			t := Test{Suite: suite.Name, Profile: profile}
			file := filepath.Join(dir, suite.Name+"-"+profile+".json")
			err := read(file, &t)
			if errors.Is(err, fs.ErrNotExist) {
				label := fmt.Sprintf("judge %s, seed %d: %s under %s", arm, seed, suite.Name, profile)
				if t.Played, err = l.judge(ctx, d, dir, suite, profile, label); err == nil {
					err = write(file, t)
				}
			}
			if err != nil {
				return nil, err
			}
			// The folder has a name of its own wherever the results are read.
			t.Played.Agent = "policy:" + filepath.Join(filepath.Base(dir), policyFile)
			tests = append(tests, t)
		}
	}
	return tests, nil
}

// judge plays the episodes of one test.
func (l *Lab) judge(ctx context.Context, d Design, dir string, suite Suite, profile, label string) (*rollout.Summary, error) {
	tasks, err := l.Gym.Select("", "", suite.Tasks)
	if err != nil {
		return nil, err
	}
	n := d.Rounds * len(tasks)
	each, end := l.Judge(label, n)
	defer end()
	sum, err := rollout.Run(ctx, l.Gym, rollout.Config{
		Agent: "policy:" + filepath.Join(dir, policyFile), Tasks: tasks, Episodes: n, Parallel: l.Parallel, Seed: d.FirstSeed, Profile: profile, OnEpisode: each,
	})
	if err == nil {
		err = ctx.Err() // what was cut off is not to be kept
	}
	return sum, err
}

func read(file string, v any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// write writes a file whole or not at all.
func write(file string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	part := file + ".part"
	if err := os.WriteFile(part, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.Rename(part, file)
}
