package world

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestWhichStartsAreKept: a start is saved when it will still be there the next time, and not otherwise.
func TestWhichStartsAreKept(t *testing.T) {
	t.Parallel()
	const n = 2000
	turns := func(k int) func(int) string { return func(i int) string { return fmt.Sprint(i % k) } }
	rng := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		key                   func(i int) string
		fits                  int // how many there is memory for
		fewestHits, mostSaved int
	}{
		"one":                       {turns(1), 16, n - 1, 1},
		"few in turn":               {turns(10), 16, n - 10, 10},
		"as many as there is room":  {turns(16), 16, n - 16, 16},
		"more than there is room":   {turns(45), 16, n/45*16 - 16, 16},
		"far more":                  {turns(225), 16, 0, 16 + n/16},
		"at random, far more":       {func(int) string { return fmt.Sprint(rng.IntN(225)) }, 16, n / 20, n / 8},
		"groups of attempts":        {func(i int) string { return fmt.Sprint(i / 8) }, 16, n * 6 / 8, n/8 + 16},
		"never again":               {func(i int) string { return fmt.Sprint(i) }, 16, 0, 16 + n/16},
		"others from the middle on": {func(i int) string { return fmt.Sprint(i/(n/2), i%12) }, 16, n - 12 - 3*12, 3 * 12},
		"little memory":             {turns(12), 5, n/12*4 - 12, 5 + 2},
	} {
		s := newStarts(16)
		hits, saved := 0, 0
		for i := range n {
			key := c.key(i)
			s.ask(key)
			if _, ok := s.find(key); ok {
				hits++
				continue
			}
			if !s.worth(key) {
				continue
			}
			before := s.size()
			for s.size() >= c.fits && c.fits < s.max {
				s.drop()
			}
			s.add(kept{key: key, state: &Checkpoint{}}, before)
			saved++
		}
		if hits < c.fewestHits || saved > c.mostSaved {
			t.Errorf("%s: %d of %d began at a kept start, expected %d; %d were saved, expected at most %d", name, hits, n, c.fewestHits, saved, c.mostSaved)
		}
	}
}
