package server

import (
	"testing"

	"github.com/pommelgym/pommel/gym"
)

// TestWhatIsNotReproducibleIsTold to trainers on the wire.
func TestWhatIsNotReproducibleIsTold(t *testing.T) {
	t.Parallel()
	if i := fromInfo(&gym.Info{Reproducible: true}); i.GetCapped() || !i.GetReproducible() || i.GetNotReproducible() != "" {
		t.Errorf("got %v", i)
	}
	i := fromInfo(&gym.Info{Capped: true, NotReproducible: "the clock went on"})
	if !i.GetCapped() || i.GetReproducible() || i.GetNotReproducible() != "the clock went on" {
		t.Errorf("got %v", i)
	}
}
