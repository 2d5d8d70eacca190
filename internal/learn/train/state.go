package train

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/curriculum"
	"github.com/pommelgym/pommel/internal/learn/optimiser"
	"github.com/pommelgym/pommel/internal/learn/policy"
)

// state is all that a training goes on from, besides the network. Random numbers need no
// place in it: each is a function of the seed and a count.
type state struct {
	World, Profile string
	Seed           int64
	Tasks          []gym.TaskInfo
	Tuning         Tuning
	Demos          int
	HintAfter      int
	Prior          bool
	Adam           *optimiser.Adam
	Plan           curriculum.State
	Good           *good
	// Spots and Visits are the map of visits, sorted.
	Spots  []string
	Visits []int

	Steps, Updates, Episodes, Lost int
	Spent                          time.Duration
	Curve                          []Point
	Before                         *Evaluation
}

// Save writes the policy and all that the training needs to go on.
func (t *Trainer) Save(path string) error {
	s := state{
		World: t.c.World, Profile: t.c.Profile, Seed: t.c.Seed, Tasks: t.c.Tasks, Tuning: t.c.Tuning, Demos: t.c.Demos, HintAfter: t.c.HintAfter, Prior: t.c.Prior,
		Adam: t.adam, Plan: t.plan.State, Good: t.good, Steps: t.steps, Updates: t.updates, Episodes: t.episodes, Lost: t.lost,
		Spent: t.elapsed(), Curve: t.curve, Before: t.before,
	}
	for _, k := range slices.Sorted(maps.Keys(t.visits)) {
		s.Spots, s.Visits = append(s.Spots, k), append(s.Visits, t.visits[k])
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		return fmt.Errorf("encode training: %w", err)
	}
	h := policy.Header{World: t.c.World, Profile: t.c.Profile, Seed: t.c.Seed, Steps: t.steps, Updates: t.updates}
	if t.after != nil {
		h.Success = t.after.Rate
	}
	return policy.Write(path, h, t.net, b.Bytes())
}

// Resume goes on from a file that Save wrote. The configuration must be the one that it
// was begun with, apart from the budget: a training that was resumed gives, bit for bit, what one
// without a break gives.
func (t *Trainer) Resume(path string) error {
	_, n, data, err := policy.Read(path)
	if err != nil {
		return err
	}
	var s state
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&s); err != nil {
		return gym.NewError(gym.InvalidArgument, "%s: holds a policy but no training to resume: %v", path, err)
	}
	for _, d := range []struct {
		what      string
		now, then any
	}{
		{"world", t.c.World, s.World}, {"profile", t.c.Profile, s.Profile}, {"seed", t.c.Seed, s.Seed},
		{"tasks", t.c.Tasks, s.Tasks}, {"demos", t.c.Demos, s.Demos}, {"hints after", t.c.HintAfter, s.HintAfter}, {"prior", t.c.Prior, s.Prior}, {"tuning", t.c.Tuning, s.Tuning},
	} {
		if !reflect.DeepEqual(d.now, d.then) {
			return gym.NewError(gym.InvalidArgument, "%s was begun with %s %v; it cannot go on with %v", path, d.what, d.then, d.now)
		}
	}
	copy(t.net.P, n.P)
	t.adam, t.good, t.plan.State = s.Adam, s.Good, s.Plan
	for i, k := range s.Spots {
		t.visits[k] = s.Visits[i]
	}
	t.steps, t.updates, t.episodes, t.lost = s.Steps, s.Updates, s.Episodes, s.Lost
	t.spent, t.curve, t.before = s.Spent, s.Curve, s.Before
	return nil
}
