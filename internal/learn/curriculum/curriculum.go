// Package curriculum chooses what to practise next: which task, which seed, under which
// friction.
//
// A task is drawn the more often the more there is to learn from it: most where it succeeds
// half of the time, where the success of one episode says most (its variance p(1-p) is
// largest), less where it always or never succeeds. Narvekar et al., "Curriculum Learning for
// Reinforcement Learning Domains", JMLR 2020, has the field's survey.
package curriculum

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/pommelgym/pommel/gym"
)

// Lesson is one episode to play.
type Lesson struct {
	Task string
	Seed int64
	// Limit is how many steps it may take.
	Limit int
	// Profile refers to the perturbations; "" is none.
	Profile string
}

// Friction says under which perturbations to practise when a part of the training, 0 to 1,
// is over: a reference to a profile, such as rough@0.5; "" is none.
type Friction interface{ At(progress float64) string }

// Calm is no friction.
type Calm struct{}

// At says that there is none.
func (Calm) At(float64) string { return "" }

// Steady is the same friction all the time.
type Steady struct{ Profile string }

// At is the profile.
func (s Steady) At(float64) string { return s.Profile }

// Ramp raises a profile's strength from 0 to 1 while a part of the training passes, and keeps it there.
type Ramp struct {
	Profile string
	// From and To are the parts of the training, 0 to 1, between which the strength rises.
	From, To float64
}

// At is the profile and its strength.
func (r Ramp) At(progress float64) string {
	switch {
	case progress <= r.From:
		return ""
	case progress >= r.To:
		return r.Profile
	}
	return fmt.Sprintf("%s@%.2f", r.Profile, (progress-r.From)/(r.To-r.From))
}

// For is the friction of a training under a profile: its strength rises from 0, since a policy
// that has learnt nothing yet learns nothing from trouble, unless @ behind the name fixes it.
func For(profile string) Friction {
	switch {
	case profile == "":
		return Calm{}
	case Fixed(profile):
		return Steady{Profile: profile}
	}
	return Ramp{Profile: profile, From: 0.3, To: 0.5}
}

// Fixed says whether a reference to a profile fixes its strength.
func Fixed(profile string) bool { return strings.Contains(profile, "@") }

// State is what the choice depends on; it is stored with the policy.
type State struct {
	// Rate is a running mean of each task's success that begins at 0, Told over how many episodes: see Recent. Played is how often it was played, Won how often with success.
	Rate   []float64
	Told   []int
	Played []int
	Won    []int
	// Credit is what each task has saved up: the one with most is played next.
	Credit []float64
	// Stuck counts episodes since the last success or hint, Hints how often the oracle showed the way.
	Stuck, Hints []int
}

// Curriculum deals out lessons.
type Curriculum struct {
	tasks   []gym.TaskInfo
	seeds   []int64
	stretch int
	State   State
}

// New makes a curriculum over tasks. Each task is practised on a fixed set of seeds of the
// training split; stretch bounds an episode's steps.
func New(tasks []gym.TaskInfo, seeds, stretch int, seed int64) *Curriculum {
	c := &Curriculum{tasks: tasks, stretch: stretch, State: State{
		Rate: make([]float64, len(tasks)), Played: make([]int, len(tasks)), Won: make([]int, len(tasks)), Credit: make([]float64, len(tasks)),
		Told: make([]int, len(tasks)), Stuck: make([]int, len(tasks)), Hints: make([]int, len(tasks)),
	}}
	rng := rand.New(rand.NewPCG(uint64(seed), 0x73656564))
	start := rng.Int64N(1000) * 10
	for i := int64(0); len(c.seeds) < seeds; i++ {
		if Split(start+i) == "train" {
			c.seeds = append(c.seeds, start+i)
		}
	}
	return c
}

// Split is the split that a seed belongs to: 0 to 6 of ten train, 7 and 8 validate, 9 tests.
func Split(seed int64) string {
	switch seed % 10 {
	case 9:
		return "test"
	case 7, 8:
		return "validation"
	}
	return "train"
}

// Next deals n lessons, in groups of the same task and seed: an episode's start is
// cheaper to reach again, and one can be compared with the other.
func (c *Curriculum) Next(n, group int, progress float64, f Friction) []Lesson {
	out := make([]Lesson, 0, n)
	profile := f.At(progress)
	for len(out) < n {
		t := c.draw()
		for range min(group, n-len(out)) {
			seed := c.seeds[c.State.Played[t]/max(1, group)%len(c.seeds)]
			c.State.Played[t]++
			out = append(out, Lesson{Task: c.tasks[t].ID, Seed: seed, Limit: min(c.stretch, c.tasks[t].MaxSteps), Profile: profile})
		}
	}
	return out
}

// draw picks the task that has been kept waiting longest, by weight: as even as a schedule
// can be, without chance.
func (c *Curriculum) draw() int {
	best, sum := 0, 0.0
	for i := range c.tasks {
		w := c.weight(i)
		c.State.Credit[i] += w
		sum += w
		if c.State.Credit[i] > c.State.Credit[best] {
			best = i
		}
	}
	c.State.Credit[best] -= sum
	return best
}

// floor is the weight that every task keeps: what was learnt must not be forgotten, and
// what never succeeded may yet.
const floor = 0.08

func (c *Curriculum) weight(i int) float64 {
	p := c.Recent(i)
	w := floor + p*(1-p)
	if c.State.Won[i] == 0 {
		// Untried: the more, the shorter; the longer without success, the less.
		w += 0.3 / (1 + float64(c.tasks[i].MaxSteps)/12) / (1 + float64(c.State.Played[i])/100)
	}
	return w
}

// pace is the weight of the latest episode in a task's success of late.
const pace = 0.15

// Recent is the success of task i of late: the running mean without its bias towards the 0
// that it begins with, as in Kingma & Ba 2015, section 3.
func (c *Curriculum) Recent(i int) float64 {
	if c.State.Told[i] == 0 {
		return 0
	}
	return c.State.Rate[i] / (1 - math.Pow(1-pace, float64(c.State.Told[i])))
}

// Tell takes in how a lesson went.
func (c *Curriculum) Tell(task string, success bool) {
	for i := range c.tasks {
		if c.tasks[i].ID != task {
			continue
		}
		x := 0.0
		c.State.Told[i]++
		c.State.Stuck[i]++
		if success {
			x = 1
			c.State.Stuck[i] = 0
			c.State.Won[i]++
		}
		c.State.Rate[i] += pace * (x - c.State.Rate[i])
	}
}

// maxHints is how often a task's oracle shows the way at most.
const maxHints = 3

// NeedHelp deals out lessons for the oracle: one for each task that has not succeeded in
// `after` episodes, and again after as many more. Help where exploration is stuck, and only there: Nair
// et al., "Overcoming Exploration in Reinforcement Learning with Demonstrations", 2018,
// arXiv:1709.10089.
func (c *Curriculum) NeedHelp(after int) []Lesson {
	var out []Lesson
	for i := range c.tasks {
		if after <= 0 || c.State.Stuck[i] < after || c.State.Hints[i] >= maxHints {
			continue
		}
		out = append(out, Lesson{Task: c.tasks[i].ID, Seed: c.Seed(c.State.Hints[i]), Limit: min(c.stretch, c.tasks[i].MaxSteps)})
		c.State.Stuck[i] = 0
		c.State.Hints[i]++
	}
	return out
}

// Seed is the i-th seed that is practised.
func (c *Curriculum) Seed(i int) int64 { return c.seeds[i%len(c.seeds)] }
