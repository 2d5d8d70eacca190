package reward

import (
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/task"
)

// lookAtChanges judges assertions over the row-change feed.
func lookAtChanges(m *task.Milestone, changes []postgres.Change) look {
	l := look{seen: changeEvidence(changes), expected: &Evidence{Text: describeWants(m)}}
	l.diff = changesDiff(m, changes)
	l.holds = l.diff == ""
	return l
}

// changesDiff says in words what is amiss, or "".
func changesDiff(m *task.Milestone, changes []postgres.Change) string {
	// after is the sequence number that the next assertion's changes must exceed.
	after := 0
	for i, w := range m.Changes {
		matched, err := matching(w, m.Match, changes)
		if err != nil {
			return err.Error()
		}
		if w.Count != nil && len(matched) != *w.Count {
			return fmt.Sprintf("%s: there are %d such changes, expected %d", describeWant(w), len(matched), *w.Count)
		}
		if len(matched) == 0 && w.Count == nil {
			return describeWant(w) + ": there is no such change"
		}
		if m.Order != task.StrictOrder {
			continue
		}
		late := 0
		for _, seq := range matched {
			if seq > after {
				late = seq
				break
			}
		}
		if len(matched) > 0 && late == 0 {
			return fmt.Sprintf("%s: it comes before %s", describeWant(w), describeWant(m.Changes[i-1]))
		}
		after = max(after, late)
	}
	return ""
}

// matching lists the sequence numbers of the changes that fit an assertion.
func matching(w task.ChangeWant, match task.Match, changes []postgres.Change) ([]int, error) {
	var out []int
	for _, c := range changes {
		if c.Op != w.Op || !isTable(w.Table, c) {
			continue
		}
		fits, err := fitsRow(c.OldRow, w.Old, match)
		if err != nil {
			return nil, err
		}
		if fits {
			if fits, err = fitsRow(c.NewRow, w.New, match); err != nil {
				return nil, err
			}
		}
		if fits {
			out = append(out, c.Seq)
		}
	}
	return out, nil
}

func fitsRow(got postgres.Row, want task.Row, match task.Match) (bool, error) {
	if len(want) == 0 {
		return true, nil
	}
	diff, err := cellsDiff(got, want, match)
	return diff == "" && err == nil, err
}

// isTable: a name without a schema is one of public.
func isTable(name string, c postgres.Change) bool {
	return name == tableName(c) || name == c.Schema+"."+c.Table
}

func tableName(c postgres.Change) string {
	if c.Schema == "public" {
		return c.Table
	}
	return c.Schema + "." + c.Table
}

func changeEvidence(changes []postgres.Change) *Evidence {
	e := &Evidence{Columns: []string{"table", "op", "old", "new"}, Total: len(changes)}
	for _, c := range changes[:min(len(changes), maxEvidenceRows)] {
		table, op := tableName(c), c.Op
		e.Rows = append(e.Rows, []*string{&table, &op, rowEvidence(c.OldRow), rowEvidence(c.NewRow)})
	}
	return e
}

func rowEvidence(r postgres.Row) *string {
	if r.Columns == nil {
		return nil
	}
	s := cut(showSeen(r.Columns, r.Text))
	return &s
}

func describeWants(m *task.Milestone) string {
	var parts []string
	for _, w := range m.Changes {
		parts = append(parts, describeWant(w))
	}
	if m.Order == task.StrictOrder {
		return cut(strings.Join(parts, ", then "))
	}
	return cut(strings.Join(parts, "; "))
}

func describeWant(w task.ChangeWant) string {
	s := w.Op + " of " + w.Table
	if len(w.Old) > 0 {
		s += " from " + showWant(w.Old)
	}
	if len(w.New) > 0 {
		s += " to " + showWant(w.New)
	}
	return s
}
