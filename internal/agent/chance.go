package agent

import (
	"math/rand/v2"

	"github.com/pommelgym/pommel/gym"
)

// RandomAction is what the random agent would do next; words are those of the instruction.
func RandomAction(rng *rand.Rand, o *gym.Observation, words []string) string {
	return randomAction(rng, o, words)
}
