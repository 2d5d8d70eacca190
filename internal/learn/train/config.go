// Package train teaches the reference policy: it plays batches of episodes, learns from
// them by proximal policy optimisation and by imitating its own best episodes, and keeps
// account of how it goes.
//
// With a budget of steps the result is a function of the configuration alone, bit for bit
// on one kind of processor: not of the number of worlds nor of their speed. With a budget
// of seconds the number of updates depends on the machine.
package train

import (
	"fmt"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/curriculum"
	"github.com/pommelgym/pommel/internal/learn/optimiser"
	"github.com/pommelgym/pommel/internal/learn/policy"
	"github.com/pommelgym/pommel/internal/learn/ppo"
)

// Config says what to train and how.
type Config struct {
	World string
	// Profile refers to the perturbations of the evaluations, Friction to those of training; "" is none.
	Profile string
	Tasks   []gym.TaskInfo
	Seed    int64
	// Steps or Time is the budget of training; evaluation is not counted.
	Steps int
	Time  time.Duration
	// Demos is how many episodes of each task's oracle are imitated first; 0 starts from nothing.
	Demos int
	// HintAfter lets a task's oracle show the way after so many episodes without success; 0 never.
	HintAfter int
	// Evaluate is how many episodes of each task are played before and after; 0 plays none.
	Evaluate int
	Friction curriculum.Friction
	// Prior begins with feature.Prior in place of no opinion at all.
	Prior  bool
	Tuning Tuning
}

// Tuning are the numbers that training depends on. Zero fields are not allowed: see Default.
type Tuning struct {
	// Episodes a batch, Group of them with the same task and seed, from Seeds seeds a task.
	Episodes, Group, Seeds int
	// Stretch is how many steps an episode may take at most.
	Stretch int
	// Epochs over a batch in minibatches of Mini steps.
	Epochs, Mini int
	PPO          ppo.Settings
	Rates        optimiser.Rates
	Norm         float64 // gradients are clipped to it
	// StepCost is taken off the reward of each step; Curiosity is paid for the first visit of a
	// kind of page in an episode, divided by the root of how often that was.
	StepCost, Curiosity float64
	// Keep is how many good episodes of a task are imitated; Relive how many minibatches of
	// them an update learns from; Share the least weight of a good step.
	Keep, Relive int
	Share        float64
	// DemoUpdates is how many minibatches of demonstrations come first.
	DemoUpdates int
}

// Default is what `pommel train` uses.
func Default() Tuning {
	return Tuning{
		Episodes: 8, Group: 2, Seeds: 24, Stretch: policy.Horizon, Epochs: 3, Mini: 48,
		PPO:   ppo.Settings{Gamma: 0.97, Lambda: 0.95, Clip: 0.2, Entropy: 0.02, ValueWeight: 0.5},
		Rates: optimiser.Rates{Dense: 0.003, Words: 0.03}, Norm: 1,
		StepCost: 0.005, Curiosity: 0.05, Keep: 8, Relive: 16, Share: 0.2, DemoUpdates: 300,
	}
}

// Validate refuses what cannot be trained.
func (c *Config) Validate() error {
	switch {
	case len(c.Tasks) == 0:
		return fmt.Errorf("no task to train on")
	case c.Steps <= 0 && c.Time <= 0:
		return fmt.Errorf("a budget is needed: steps or seconds")
	case c.Tuning.Episodes < 1 || c.Tuning.Mini < 1 || c.Tuning.Stretch < 1 || c.Tuning.Seeds < 1:
		return fmt.Errorf("tuning %+v: batches, minibatches, seeds and steps take 1 or more", c.Tuning)
	}
	if c.Friction == nil {
		c.Friction = curriculum.Calm{}
	}
	return nil
}

// mix gives the n-th number of a stream that belongs to a seed and a purpose: the finaliser
// of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix(seed int64, purpose, n uint64) uint64 {
	z := uint64(seed) + purpose*0x9e3779b97f4a7c15 + n*0xbf58476d1ce4e5b9
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// The purposes of random numbers.
const (
	forNet = iota + 1
	forEpisode
	forShuffle
	forEvaluation
)
