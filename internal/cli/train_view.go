package cli

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/report"
	"github.com/pommelgym/pommel/internal/learn/train"
)

// trainView shows a training while it runs: on a terminal a picture that is drawn in place,
// else a line for each update.
type trainView struct {
	s      *State
	tasks  []gym.TaskInfo
	budget string
	pool   *mpb.Progress

	mu       sync.Mutex
	stage    string        // guarded by mu
	episodes int           // of the stage; guarded by mu
	won      int           // guarded by mu
	points   []train.Point // guarded by mu
	began    time.Time     // of the stage; guarded by mu
}

func newTrainView(s *State, tasks []gym.TaskInfo, budget string) *trainView {
	v := &trainView{s: s, tasks: tasks, budget: budget, began: time.Now()}
	if !s.Terminal {
		return v
	}
	v.pool = mpb.New(mpb.WithOutput(s.Stderr), mpb.WithRefreshRate(500*time.Millisecond))
	// A bar of no width whose lines are all ours.
	for i := range viewLines(len(tasks)) {
		v.pool.New(1, mpb.NopStyle(), mpb.BarRemoveOnComplete(), mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return v.line(i) })))
	}
	return v
}

// logInto has the training's log in dir kept up to date, for the dashboard.
func (v *trainView) logInto(dir string, w *train.Watch, t **train.Trainer) {
	w.Update = func(p train.Point) {
		v.update(p)
		if err := report.Log(dir, (*t).Outcome()); err != nil {
			v.s.say("%v", err)
		}
	}
}

// viewColumns is how many tasks stand in one line.
const viewColumns = 3

func viewLines(tasks int) int { return 3 + (tasks+viewColumns-1)/viewColumns }

// line is one line of the picture.
func (v *trainView) line(i int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var last train.Point
	if n := len(v.points); n > 0 {
		last = v.points[n-1]
	}
	switch i {
	case 0:
		rate := 0.0
		if last.Seconds > 0 {
			rate = float64(last.Steps) / last.Seconds
		}
		return fmt.Sprintf("%s: %d of %s, update %d, %.1f steps/s, %s in this stage, %d of %d episodes succeeded",
			v.stage, last.Steps, v.budget, last.Update, rate, time.Since(v.began).Round(time.Second), v.won, v.episodes)
	case 1:
		return fmt.Sprintf("success of late %3.0f %%  %s", 100*last.Smooth, spark(v.points, func(p train.Point) float64 { return p.Smooth }))
	case 2:
		return fmt.Sprintf("reward          %.2f   %s", last.Reward, spark(v.points, func(p train.Point) float64 { return p.Reward }))
	}
	var b strings.Builder
	for k := (i - 3) * viewColumns; k < min((i-2)*viewColumns, len(v.tasks)); k++ {
		rate := 0.0
		if k < len(last.Rates) {
			rate = last.Rates[k]
		}
		fmt.Fprintf(&b, "%-22s %s %3.0f %%   ", v.tasks[k].ID, gauge(rate, 6), 100*rate)
	}
	return b.String()
}

// gauge draws a share as blocks.
func gauge(x float64, width int) string {
	n := min(width, int(x*float64(width)+0.5))
	return strings.Repeat("█", n) + strings.Repeat("░", width-n)
}

// spark draws a curve in one line, at most 60 columns.
func spark(points []train.Point, of func(train.Point) float64) string {
	const width = 60
	levels := []rune("▁▂▃▄▅▆▇█")
	cell := max(1, (len(points)+width-1)/width)
	var b strings.Builder
	for from := 0; from < len(points); from += cell {
		part := points[from:min(from+cell, len(points))]
		sum := 0.0
		for _, p := range part {
			sum += of(p)
		}
		x := min(1, max(0, sum/float64(len(part))))
		b.WriteRune(levels[min(len(levels)-1, int(x*float64(len(levels))))])
	}
	return b.String()
}

// watch is what the trainer tells.
func (v *trainView) watch() train.Watch {
	return train.Watch{Stage: v.begin, Episode: v.episode, Update: v.update}
}

func (v *trainView) begin(stage string) {
	v.mu.Lock()
	v.stage, v.episodes, v.won, v.began = stage, 0, 0, time.Now()
	v.mu.Unlock()
	if v.pool == nil {
		v.s.say("%s", stage)
	}
}

func (v *trainView) episode(e batch.Episode) {
	v.mu.Lock()
	v.episodes++
	if e.Success {
		v.won++
	}
	v.mu.Unlock()
	if e.Lost != nil && v.pool == nil {
		v.s.say("left out: task %s seed %d: %v", e.Job.Task, e.Job.Seed, e.Lost)
	}
}

func (v *trainView) update(p train.Point) {
	v.mu.Lock()
	v.points = append(v.points, p)
	v.mu.Unlock()
	if v.pool == nil {
		v.s.say("update %d: %d of %s, %.0f s, success %.0f %% (of late %.0f %%), reward %.2f, %.1f steps an episode",
			p.Update, p.Steps, v.budget, p.Seconds, 100*p.Success, 100*p.Smooth, p.Reward, p.Length)
	}
}

// end takes the picture away.
func (v *trainView) end() {
	if v.pool != nil {
		v.pool.Shutdown()
		v.pool = nil
	}
}

func printTraining(s *State, o *train.Outcome, dir string) {
	var rows [][]string
	for _, t := range o.ByTask {
		before, after := "-", "-"
		if o.Start != nil {
			before = fmt.Sprintf("%.0f %%", 100*t.Start)
		}
		if o.End != nil {
			after = fmt.Sprintf("%.0f %%", 100*t.End)
		}
		rows = append(rows, []string{t.Task, t.Difficulty, strconv.Itoa(t.Episodes), percent(t.Success, t.Episodes), before, after})
	}
	table(s.Stdout, "TASK|DIFFICULTY|EPISODES|IN TRAINING|BEFORE|AFTER", rows...)
	fmt.Fprintf(s.Stdout, "\n%d steps, %d updates, %d episodes in %.0f s (%.1f steps/s), %d left out as lost\n", o.Steps, o.Updates, o.Episodes, o.Seconds, o.StepsPerS, o.Lost)
	for _, e := range []struct {
		when string
		v    *train.Evaluation
	}{{"before", o.Start}, {"after", o.End}} {
		if e.v != nil {
			fmt.Fprintf(s.Stdout, "success %-6s  %.0f %% (%d of %d; 95 %% interval %.0f to %.0f %%)\n",
				e.when, 100*e.v.Rate, e.v.Success, e.v.Episodes, 100*e.v.Interval.Low, 100*e.v.Interval.High)
		}
	}
	fmt.Fprintf(s.Stdout, "policy %s: %s/policy.pommel; report: %s/report.html\n", o.Digest, dir, dir)
}
