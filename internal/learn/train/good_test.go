package train

import (
	"math/rand/v2"
	"testing"

	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/ppo"
)

// played is an episode of n steps of which the last earned reward.
func played(profile string, seed int64, n int, reward float64) *batch.Episode {
	e := &batch.Episode{Job: batch.Job{Task: "buy", Seed: seed, Profile: profile}, Reward: reward, Steps: make([]ppo.Step, n), Looks: make([]uint64, n+1)}
	for i := range e.Looks {
		e.Looks[i] = uint64(i)
	}
	e.Steps[n-1].Reward = reward
	return e
}

// TestTroubleIsRemembered: longer episodes under perturbations are imitated beside short ones without.
func TestTroubleIsRemembered(t *testing.T) {
	t.Parallel()
	const keep, gamma = 2, 0.97
	g := newGood([]string{"buy"})
	g.add(played("", 1, 3, 1), keep, gamma)
	g.add(played("", 1, 5, 1), keep, gamma) // the same seed, longer
	for i, e := range []*batch.Episode{played("rough", 1, 9, 0.4), played("rough", 1, 12, 1), played("rough", 2, 8, 0.4), played("rough", 3, 20, 1), played("rough", 4, 15, 1)} {
		g.add(e, keep, gamma)
		if len(g.Hard[0]) > keep {
			t.Fatalf("after %d: %d are kept", i, len(g.Hard[0]))
		}
	}
	if len(g.Best[0]) != 1 || len(g.Best[0][0].Steps) != 3 {
		t.Errorf("without perturbations: %d kept; expected the one of 3 steps", len(g.Best[0]))
	}
	if h := g.Hard[0]; len(h) != 2 || len(h[0].Steps) != 15 || len(h[1].Steps) != 20 {
		t.Errorf("under perturbations: %d kept; expected the latest two that earned all", len(h))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	easy, hard := 0, 0
	for range 200 {
		s := g.draw(rng)
		if s == nil {
			t.Fatal("nothing is drawn")
		}
		if in(s, g.Best[0]) {
			easy++
		} else {
			hard++
		}
	}
	if easy < 60 || hard < 60 {
		t.Errorf("%d steps without perturbations are imitated and %d with; expected as many", easy, hard)
	}
}

func in(s *ppo.Step, list []kept) bool {
	for i := range list {
		for j := range list[i].Steps {
			if s == &list[i].Steps[j] {
				return true
			}
		}
	}
	return false
}
