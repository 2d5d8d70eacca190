package rollout

import (
	"cmp"
	"slices"

	"github.com/pommelgym/pommel/internal/wilson"
)

// KindLine compares the episodes in which a kind of perturbation struck with the others.
type KindLine struct {
	Kind string `json:"kind"`
	// Strikes is how often it struck, in all episodes together.
	Strikes int  `json:"strikes"`
	With    Rate `json:"with"`
	Without Rate `json:"without"`
}

// Rate is how many of some episodes succeeded.
type Rate struct {
	Episodes int             `json:"episodes"`
	Success  int             `json:"success"`
	Rate     float64         `json:"success_rate"`
	Interval wilson.Interval `json:"success_interval"`
}

func (r *Rate) finish() {
	r.Interval = wilson.Of(r.Success, r.Episodes)
	if r.Episodes > 0 {
		r.Rate = float64(r.Success) / float64(r.Episodes)
	}
}

// strikes counts an episode for the kinds that struck in it.
func (s *Summary) strikes(e Episode) {
	once := map[string]bool{}
	for _, ev := range e.Struck {
		k := s.byKind[ev.Kind]
		if k == nil {
			k = &KindLine{Kind: ev.Kind}
			s.byKind[ev.Kind] = k
		}
		k.Strikes++
		if once[ev.Kind] {
			continue
		}
		once[ev.Kind] = true
		k.With.Episodes++
		if e.Success {
			k.With.Success++
		}
	}
	if len(once) > 0 {
		s.Perturbed++
	}
}

// finishKinds makes the lines, the kinds that go with the least success first.
func (s *Summary) finishKinds() {
	for _, k := range s.byKind {
		k.Without = Rate{Episodes: s.Episodes - k.With.Episodes, Success: s.Success - k.With.Success}
		k.With.finish()
		k.Without.finish()
		s.ByKind = append(s.ByKind, *k)
	}
	slices.SortFunc(s.ByKind, func(a, b KindLine) int {
		return cmp.Or(cmp.Compare(a.With.Rate, b.With.Rate), cmp.Compare(a.Kind, b.Kind))
	})
}
