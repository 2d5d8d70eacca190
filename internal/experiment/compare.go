package experiment

import "github.com/pommelgym/pommel/internal/wilson"

// Cell is one arm on one suite under one profile, over all seeds.
type Cell struct {
	Arm      string          `json:"arm"`
	Suite    string          `json:"suite"`
	Profile  string          `json:"profile"`
	Episodes int             `json:"episodes"`
	Success  int             `json:"success"`
	Rate     float64         `json:"success_rate"`
	Interval wilson.Interval `json:"interval"`
	Reward   float64         `json:"mean_reward"`
	Lost     int             `json:"infra_failures"`
	// Seeds are the rates of the single policies, in the design's order.
	Seeds []float64 `json:"by_seed"`
}

// Contrast is the last arm less the first one.
type Contrast struct {
	Suite    string          `json:"suite"`
	Profile  string          `json:"profile"`
	Gain     float64         `json:"gain"`
	Interval wilson.Interval `json:"interval"`
	// Sure says that the interval does not hold 0.
	Sure bool `json:"sure"`
}

// compare adds up the runs.
func (r *Result) compare() {
	r.Cells, r.Contrasts = nil, nil
	for _, s := range r.Design.Suites {
		for _, p := range r.Design.Profiles {
			first := len(r.Cells)
			for _, a := range r.Design.Arms {
				r.Cells = append(r.Cells, r.cell(a.Name, s.Name, p))
			}
			a, b := r.Cells[first], r.Cells[len(r.Cells)-1]
			c := Contrast{Suite: s.Name, Profile: p, Gain: b.Rate - a.Rate, Interval: wilson.Difference(b.Success, b.Episodes, a.Success, a.Episodes)}
			c.Sure = c.Interval.Low > 0 || c.Interval.High < 0
			r.Contrasts = append(r.Contrasts, c)
		}
	}
}

func (r *Result) cell(arm, suite, profile string) Cell {
	c := Cell{Arm: arm, Suite: suite, Profile: profile}
	for _, run := range r.Runs {
		for _, t := range run.Tests {
			if run.Arm != arm || t.Suite != suite || t.Profile != profile {
				continue
			}
			c.Episodes += t.Played.Episodes
			c.Success += t.Played.Success
			c.Reward += t.Played.MeanReward * float64(t.Played.Episodes)
			c.Lost += t.Played.Lost
			c.Seeds = append(c.Seeds, t.Played.SuccessRate)
		}
	}
	if c.Episodes > 0 {
		c.Rate = float64(c.Success) / float64(c.Episodes)
		c.Reward /= float64(c.Episodes)
	}
	c.Interval = wilson.Of(c.Success, c.Episodes)
	return c
}
