package episode

import (
	"fmt"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
)

// pass lets the world's clock follow the page's, whose time has passed while the page came
// to rest, and notes what keeps the episode from being had again: a world that is not like
// the others, or a clock that had to go on by itself. Preconditions: e.mu is held.
func (e *Episode) pass(o *browser.Observation, byItself time.Duration) error {
	switch err := e.world.Reproducible(); {
	case e.drift != "":
	case err != nil:
		e.drift = err.Error()
	case byItself > 0:
		e.drift = fmt.Sprintf("the world waited for its clock, which went on by itself for %v", byItself.Round(time.Millisecond))
	}
	page := time.Duration(o.VirtualTimeMS * float64(time.Millisecond))
	if err := e.world.Advance(e.world.Epoch().Add(page)); err != nil {
		return fmt.Errorf("let the world's clock go on: %w", err)
	}
	return nil
}
