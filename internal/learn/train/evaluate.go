package train

import (
	"context"

	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/curriculum"
	"github.com/pommelgym/pommel/internal/wilson"
)

// Evaluation is how the policy does when it always takes its best candidate, on seeds of the
// validation split, which training never sees.
type Evaluation struct {
	Episodes int             `json:"episodes"`
	Success  int             `json:"success"`
	Rate     float64         `json:"success_rate"`
	Interval wilson.Interval `json:"interval"`
	Reward   float64         `json:"mean_reward"`
	Steps    int             `json:"steps"`
	Lost     int             `json:"infra_failures"`
	Tasks    []TaskScore     `json:"by_task"`
}

// TaskScore is one task of an evaluation.
type TaskScore struct {
	Task     string  `json:"task"`
	Episodes int     `json:"episodes"`
	Success  int     `json:"success"`
	Reward   float64 `json:"mean_reward"`
}

// evaluate is an evaluation that the configuration asks for.
func (t *Trainer) evaluate(ctx context.Context, stage string) (*Evaluation, error) {
	if t.c.Evaluate == 0 {
		return nil, nil
	}
	return t.Evaluate(ctx, stage, t.c.Profile, t.c.Evaluate)
}

// Evaluate plays n episodes of each task under a profile; "" is none. Nothing is learnt from them.
func (t *Trainer) Evaluate(ctx context.Context, stage, profile string, n int) (*Evaluation, error) {
	t.stage(stage)
	var jobs []batch.Job
	for seed := int64(mix(t.c.Seed, forEvaluation, 0)%1000) * 10; n > 0; seed++ {
		if curriculum.Split(seed) != "validation" {
			continue
		}
		n--
		for _, task := range t.c.Tasks {
			jobs = append(jobs, batch.Job{Task: task.ID, Seed: seed, Limit: min(t.c.Tuning.Stretch, task.MaxSteps), Greedy: true, Profile: profile})
		}
	}
	episodes, err := batch.Collect(ctx, t.envs, t.net, jobs, t.watch.Episode)
	if err != nil {
		return nil, err
	}
	return t.score(episodes), nil
}

func (t *Trainer) score(episodes []batch.Episode) *Evaluation {
	v := &Evaluation{Tasks: make([]TaskScore, len(t.c.Tasks))}
	at := map[string]*TaskScore{}
	for i, task := range t.c.Tasks {
		v.Tasks[i].Task = task.ID
		at[task.ID] = &v.Tasks[i]
	}
	for i := range episodes {
		e := &episodes[i]
		if e.Lost != nil {
			v.Lost++
			continue
		}
		s := at[e.Job.Task]
		s.Episodes++
		s.Reward += e.Reward
		v.Episodes++
		v.Reward += e.Reward
		v.Steps += len(e.Steps)
		if e.Success {
			s.Success++
			v.Success++
		}
	}
	for i := range v.Tasks {
		if n := v.Tasks[i].Episodes; n > 0 {
			v.Tasks[i].Reward /= float64(n)
		}
	}
	if v.Episodes > 0 {
		v.Rate = float64(v.Success) / float64(v.Episodes)
		v.Reward /= float64(v.Episodes)
	}
	v.Interval = wilson.Of(v.Success, v.Episodes)
	return v
}
