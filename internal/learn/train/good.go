package train

import (
	"math/rand/v2"
	"slices"

	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/ppo"
)

// good keeps the best episodes of each task, to imitate them: Oh et al., "Self-Imitation
// Learning", 2018, arXiv:1806.05332. Rewards come late and seldom here; what once led to
// one is worth more than one update.
//
// Those under perturbations are kept apart: they are longer for the same reward, and what is in
// them of getting over trouble is in no other.
type good struct {
	Tasks []string
	Best  [][]kept
	// Hard are under perturbations, the latest first.
	Hard [][]kept
}

// kept is one episode that is imitated.
type kept struct {
	Seed   int64
	Reward float64
	Steps  []ppo.Step
}

func newGood(tasks []string) *good {
	return &good{Tasks: tasks, Best: make([][]kept, len(tasks)), Hard: make([][]kept, len(tasks))}
}

// add keeps an episode if it is among the best of its task: by reward, then by length. Of one seed
// only the best is kept, so that what is imitated is not one case alone.
func (g *good) add(e *batch.Episode, keep int, gamma float64) {
	at := slices.Index(g.Tasks, e.Job.Task)
	k := distil(e, gamma)
	if at < 0 || len(k.Steps) == 0 {
		return
	}
	if e.Job.Profile != "" {
		g.addHard(at, k, keep)
		return
	}
	list := g.Best[at]
	if i := slices.IndexFunc(list, func(o kept) bool { return o.Seed == k.Seed }); i >= 0 {
		if !better(&k, &list[i]) {
			return
		}
		list = slices.Delete(list, i, i+1)
	}
	i := slices.IndexFunc(list, func(o kept) bool { return better(&k, &o) })
	if i < 0 {
		i = len(list)
	}
	list = slices.Insert(list, i, k)
	g.Best[at] = list[:min(len(list), keep)]
}

// addHard keeps an episode under perturbations: one that earned no less than the one before it of
// the task. Short ones are not preferred, since less has struck in them.
func (g *good) addHard(at int, k kept, keep int) {
	list := g.Hard[at]
	if len(list) > 0 && k.Reward < list[0].Reward {
		return
	}
	list = slices.Insert(list, 0, k)
	g.Hard[at] = list[:min(len(list), keep)]
}

func better(a, b *kept) bool {
	if a.Reward != b.Reward {
		return a.Reward > b.Reward
	}
	return len(a.Steps) < len(b.Steps)
}

// distil is an episode up to its last reward, without the rounds that led back to a page
// as it was and earned nothing.
func distil(e *batch.Episode, gamma float64) kept {
	last := -1
	for i := range e.Steps {
		if e.Steps[i].Reward > 0 {
			last = i
		}
	}
	k := kept{Seed: e.Job.Seed, Reward: e.Reward}
	if e.Reward <= 0 {
		return k
	}
	for i := 0; i <= last; i++ {
		if j := e.Back(i, last); j > i {
			i = j - 1
			continue
		}
		k.Steps = append(k.Steps, e.Steps[i])
	}
	sum := 0.0
	for i := len(k.Steps) - 1; i >= 0; i-- {
		sum = k.Steps[i].Reward + gamma*sum
		k.Steps[i].Return = sum
	}
	return k
}

// draw picks a step: each task with good episodes is as likely as the others, and so are those with
// and without perturbations.
func (g *good) draw(rng *rand.Rand) *ppo.Step {
	var have []int
	for i := range g.Best {
		if len(g.Best[i])+len(g.Hard[i]) > 0 {
			have = append(have, i)
		}
	}
	if len(have) == 0 {
		return nil
	}
	task := have[rng.IntN(len(have))]
	list := g.Best[task]
	if hard := g.Hard[task]; len(list) == 0 || len(hard) > 0 && rng.IntN(2) == 0 {
		list = hard
	}
	steps := list[rng.IntN(len(list))].Steps
	return &steps[rng.IntN(len(steps))]
}
