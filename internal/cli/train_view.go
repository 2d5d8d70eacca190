package cli

import (
	"fmt"
	"strconv"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/train"
)

// trainView shows a training while it runs.
type trainView struct {
	s     *State
	tasks []gym.TaskInfo
	stage string
	n     int
	won   int
}

func newTrainView(s *State, tasks []gym.TaskInfo) *trainView { return &trainView{s: s, tasks: tasks} }

func (v *trainView) watch(steps, seconds int) train.Watch {
	return train.Watch{
		Stage: func(name string) { v.s.say("%s", name); v.stage, v.n, v.won = name, 0, 0 },
		Episode: func(e batch.Episode) {
			v.n++
			if e.Success {
				v.won++
			}
			if e.Lost != nil {
				v.s.say("lost: %s seed %d: %v", e.Job.Task, e.Job.Seed, e.Lost)
			}
		},
		Update: func(p train.Point) {
			v.s.say("update %d: %d steps, %.0f s, success %.0f %% (smooth %.0f %%), reward %.2f, length %.1f, norm %.2f", p.Update, p.Steps, p.Seconds, 100*p.Success, 100*p.Smooth, p.Reward, p.Length, p.Norm)
		},
	}
}

func (v *trainView) end() {}

func printTraining(s *State, o *train.Outcome, dir string) {
	var rows [][]string
	for _, t := range o.ByTask {
		rows = append(rows, []string{t.Task, t.Difficulty, strconv.Itoa(t.Episodes), fmt.Sprintf("%d", t.Success), fmt.Sprintf("%.0f %%", 100*t.Start), fmt.Sprintf("%.0f %%", 100*t.End)})
	}
	table(s.Stdout, "TASK|DIFFICULTY|EPISODES|SUCCESS|BEFORE|AFTER", rows...)
	fmt.Fprintf(s.Stdout, "\n%d steps, %d updates in %.0f s (%.1f steps/s); success before %.0f %%, after %.0f %%; digest %s; files in %s\n",
		o.Steps, o.Updates, o.Seconds, o.StepsPerS, 100*o.SuccessStart, 100*o.SuccessEnd, o.Digest, dir)
}
