package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/reward"
	"github.com/pommelgym/pommel/internal/rollout"
)

type demoCmd struct {
	worldFlags
	jsonFlag
	Parallel int    `default:"2" help:"How many worlds run at the same time."`
	Seed     int64  `default:"1" help:"Seed of the first episode and of the training."`
	Steps    int    `default:"3000" help:"Steps of training; 0 leaves it out."`
	Out      string `default:"" help:"Folder for the trained policy and its report. Default: none is kept."`
}

// Validate refuses what cannot be meant.
func (c *demoCmd) Validate() error {
	if c.Parallel < 1 || c.Steps < 0 {
		return fmt.Errorf("--parallel takes 1 or more, --steps 0 or more")
	}
	return nil
}

// demoLine is one task of the demo's table.
type demoLine struct {
	Task          string  `json:"task"`
	Difficulty    string  `json:"difficulty"`
	Oracle        int     `json:"oracle_success"`
	OracleReward  float64 `json:"oracle_reward"`
	OracleSteps   float64 `json:"oracle_steps"`
	Random        int     `json:"random_success"`
	RandomReward  float64 `json:"random_reward"`
	OracleOf      int     `json:"oracle_episodes"`
	RandomOf      int     `json:"random_episodes"`
	OracleFailure string  `json:"failure,omitempty"`
}

func (c *demoCmd) Run(ctx context.Context, s *State) error {
	start := time.Now()
	s.say("1. booting %d worlds of %q: PostgreSQL, application and Chromium, each in its own namespaces", c.Parallel, c.World)
	g, err := c.open(ctx, s, c.Parallel)
	if err != nil {
		return err
	}
	defer g.Close()
	tasks, err := g.Select("", "", nil)
	if err != nil {
		return err
	}
	play := func(who string) (*rollout.Summary, *rollout.Episode, error) {
		var best *rollout.Episode
		sum, err := s.rollout(ctx, g, "   "+who, rollout.Config{Agent: who, Tasks: tasks, Episodes: len(tasks), Parallel: c.Parallel, Seed: c.Seed}, func(e rollout.Episode) {
			if e.Success && (best == nil || e.Steps > best.Steps) {
				best = &e
			}
		})
		return sum, best, err
	}
	s.say("2. %d tasks, each solved by its oracle, a script of clicks and keys", len(tasks))
	oracle, best, err := play("oracle")
	if err != nil {
		return err
	}
	s.say("3. the same tasks, tried by an agent that acts at random")
	random, _, err := play("random")
	if err != nil {
		return err
	}
	lines := demoLines(oracle, random)
	if !c.JSON {
		printDemo(s, lines, oracle, random, best, time.Since(start))
	}
	var learnt *demoTraining
	if c.Steps > 0 {
		s.say("4. a policy that knows nothing learns the easy and medium ones in %d steps; where it is stuck, the oracle shows it the way", c.Steps)
		if learnt, err = c.learn(ctx, s, g); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		err = s.printJSON(map[string]any{
			"world": g.Describe().World, "tasks": lines, "oracle": oracle, "random": random, "training": learnt, "seconds": time.Since(start).Seconds(),
		})
	case learnt != nil:
		printLearnt(s, learnt, c.Out)
	}
	if err == nil && (oracle.SuccessRate < 1 || oracle.Lost+random.Lost > 0) {
		return errNotGood
	}
	return err
}

func demoLines(oracle, random *rollout.Summary) []demoLine {
	at := map[string]int{}
	lines := make([]demoLine, 0, len(oracle.ByTask))
	for _, t := range oracle.ByTask {
		at[t.Task] = len(lines)
		lines = append(lines, demoLine{Task: t.Task, Difficulty: t.Difficulty, Oracle: t.Success, OracleOf: t.Episodes, OracleReward: t.MeanReward, OracleSteps: t.MeanSteps})
	}
	for _, t := range random.ByTask {
		if i, ok := at[t.Task]; ok {
			lines[i].Random, lines[i].RandomOf, lines[i].RandomReward = t.Success, t.Episodes, t.MeanReward
		}
	}
	for _, f := range oracle.Failures {
		if i, ok := at[f.Task]; ok {
			lines[i].OracleFailure = f.Error
		}
	}
	return lines
}

func printDemo(s *State, lines []demoLine, oracle, random *rollout.Summary, best *rollout.Episode, took time.Duration) {
	var rows [][]string
	for _, l := range lines {
		rows = append(rows, []string{
			l.Task, l.Difficulty, fmt.Sprintf("%d/%d", l.Oracle, l.OracleOf), fmt.Sprintf("%.2f", l.OracleReward), fmt.Sprintf("%.0f", l.OracleSteps),
			fmt.Sprintf("%d/%d", l.Random, l.RandomOf), fmt.Sprintf("%.2f", l.RandomReward), l.OracleFailure,
		})
	}
	fmt.Fprintln(s.Stdout)
	table(s.Stdout, "TASK|DIFFICULTY|ORACLE|REWARD|STEPS|RANDOM|REWARD|", rows...)
	fmt.Fprintf(s.Stdout, "\noracle: %d of %d (%s)   random: %d of %d (%s)   %d tasks, %d steps in Chromium, %d infrastructure failures, %.0f s\n",
		oracle.Success, oracle.Episodes, percent(oracle.Success, oracle.Episodes), random.Success, random.Episodes,
		percent(random.Success, random.Episodes), len(lines), oracle.Steps+random.Steps, oracle.Lost+random.Lost, took.Seconds())
	if best != nil && best.Last != nil {
		printEvidence(s, best)
	}
}

// printEvidence prints why an episode was paid: the rows that the judge read.
func printEvidence(s *State, e *rollout.Episode) {
	fmt.Fprintf(s.Stdout, "\nWhy task %s (seed %d) was paid %.2f: rows that the judge read from PostgreSQL\n", e.Task, e.Seed, e.Reward)
	var verdict reward.Verdict
	if err := json.Unmarshal(e.Last.Info.Verdict, &verdict); err != nil {
		fmt.Fprintf(s.Stdout, "  %s\n", e.Last.Info.Verdict)
		return
	}
	for _, st := range verdict.Stages {
		fmt.Fprintf(s.Stdout, "  stage %s (%s), weight %.2g, holds: %v\n", st.Name, st.Kind, st.Weight, st.Holds)
		printRows(s, st.Seen)
	}
}

// printRows prints rows as the judge saw them.
func printRows(s *State, e *reward.Evidence) {
	if e == nil {
		return
	}
	if e.Text != "" {
		fmt.Fprintf(s.Stdout, "      %s\n", e.Text)
	}
	if len(e.Columns) == 0 {
		return
	}
	var rows [][]string
	for _, r := range e.Rows {
		cells := []string{"     "}
		for _, c := range r {
			if c == nil {
				cells = append(cells, "NULL")
			} else {
				cells = append(cells, *c)
			}
		}
		rows = append(rows, cells)
	}
	table(s.Stdout, "     |"+strings.Join(e.Columns, "|"), rows...)
}
