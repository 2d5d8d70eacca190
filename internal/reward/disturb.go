package reward

import (
	"context"
	"slices"

	"github.com/pommelgym/pommel/internal/postgres"
)

// span is a range of row changes by their numbers, both ends included.
type span struct{ from, to int }

// Disturb runs f, which changes rows for the world and not for the agent: what it changes
// is no damage of the agent's and fulfils no assertion about changes. What the rows are
// afterwards is judged as it is.
func (j *Judge) Disturb(ctx context.Context, f func() error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, err := j.db.Changes(ctx)
	if err != nil {
		return lost(err, "read the row changes")
	}
	if err := f(); err != nil {
		return err
	}
	after, err := j.db.Changes(ctx)
	if err != nil {
		return lost(err, "read the row changes")
	}
	if len(after) > len(before) {
		j.now.foreign = append(slices.Clone(j.now.foreign), span{len(before) + 1, len(after)})
	}
	j.facts = nil
	return nil
}

// own leaves out the changes that were made by Disturb.
func (j *Judge) own(changes []postgres.Change) []postgres.Change {
	if len(j.now.foreign) == 0 {
		return changes
	}
	var out []postgres.Change
	for _, c := range changes {
		if !slices.ContainsFunc(j.now.foreign, func(s span) bool { return c.Seq >= s.from && c.Seq <= s.to }) {
			out = append(out, c)
		}
	}
	return out
}
