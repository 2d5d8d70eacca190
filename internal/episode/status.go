package episode

import (
	"context"

	"github.com/pommelgym/pommel/internal/browser"
)

// Status is what a Table knows of an episode without asking its world.
type Status struct {
	EpisodeID   string
	Instruction string
	Task        string
	Seed        int64
	// View is what Reset asked observations to hold.
	View browser.View
	// Steps were made, and Reward is the sum of what they earned. What a Restore has undone
	// does not count.
	Steps  int
	Reward float64
	// Calls is the number of the last numbered call: Calls+1 is the next.
	Calls int
	// Last is the result of the last step, or of Reset before the first one.
	Last *Result
}

// Status tells how far an episode is. A caller that lost a reply or took the episode over
// from another one learns here what to go on from. It waits for a call in progress.
func (t *Table) Status(ctx context.Context, id string) (*Status, error) {
	var s *Status
	err := t.with(ctx, id, func(e *entry) error {
		if e.failed != nil {
			return e.failed
		}
		s = &Status{
			EpisodeID: id, Instruction: e.first.Instruction, Task: e.request.Task, Seed: e.request.Seed, View: e.request.View,
			Calls: e.call.n, Reward: e.total, Last: e.first,
		}
		if e.last != nil {
			s.Last, s.Steps = e.last, e.last.Step
		}
		return nil
	})
	return s, err
}
