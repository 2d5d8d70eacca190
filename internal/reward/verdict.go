package reward

import "github.com/pommelgym/pommel/internal/postgres"

// Input is what the judge cannot see for itself.
type Input struct {
	// Final is set when the episode ends with this step: by finish or by a limit.
	Final bool
	// Answer is the argument of finish, nil when there was none.
	Answer *string
	// Infeasible is set when the agent called report_infeasible.
	Infeasible bool
}

// Verdict is the judge's view of an episode after a step.
type Verdict struct {
	// Potential is the weighted sum of the stages that hold.
	Potential float64 `json:"potential"`
	// Value is what all rewards since the start sum to; Reward is the last step's share.
	Value  float64 `json:"value"`
	Reward float64 `json:"reward"`
	// Complete: all stages hold and nothing else was changed.
	Complete bool `json:"complete"`
	// Success: complete, and the episode ends here.
	Success bool `json:"success"`
	// Done: the task ends the episode now.
	Done       bool          `json:"done"`
	Stages     []StageResult `json:"stages"`
	Collateral []Damage      `json:"collateral,omitempty"`
	// Changes are all row changes since the start, in commit order. They are no part of the
	// verdict's text: a record of the episode holds them step by step.
	Changes []postgres.Change `json:"-"`

	next state
}

// StageResult is one stage with its evidence.
type StageResult struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"` // query, answer, changes, page
	Weight float64 `json:"weight"`
	// Holds says that the stage counts now.
	Holds bool `json:"holds"`
	// Now says that its condition is true at this moment. It differs from Holds for a
	// stage that is latched or waits for others.
	Now     bool `json:"now"`
	Latched bool `json:"latched,omitempty"`
	// Waiting names the stages that must hold first.
	Waiting []string `json:"waiting,omitempty"`
	// Seen and Expected are the rows, the answer or the page; Diff says in words why the
	// condition is not true.
	Seen     *Evidence `json:"seen,omitempty"`
	Expected *Evidence `json:"expected,omitempty"`
	Diff     string    `json:"diff,omitempty"`
}

// Evidence is a table of rows, or a text.
type Evidence struct {
	Columns []string    `json:"columns,omitempty"`
	Rows    [][]*string `json:"rows,omitempty"`
	// Total counts the rows; Rows holds the first of them.
	Total int    `json:"total,omitempty"`
	Text  string `json:"text,omitempty"`
}

// Damage is a table with rows that the task does not allow to change.
type Damage struct {
	Table string `json:"table"`
	// Gone and New are rows that were there at the start and are not now, and the reverse,
	// as JSON objects; the first of each.
	Gone []string `json:"gone,omitempty"`
	New  []string `json:"new,omitempty"`
	// Rows counts all of them; -1 is unknown, after a TRUNCATE.
	Rows int `json:"rows"`
}

const (
	maxEvidenceRows = 20
	maxEvidenceText = 300
)

func tableEvidence(columns []postgres.Column, rows [][]*string) *Evidence {
	e := &Evidence{Total: len(rows)}
	for _, c := range columns {
		e.Columns = append(e.Columns, c.Name)
	}
	for _, r := range rows[:min(len(rows), maxEvidenceRows)] {
		row := make([]*string, len(r))
		for i, cell := range r {
			if cell != nil {
				s := cut(*cell)
				row[i] = &s
			}
		}
		e.Rows = append(e.Rows, row)
	}
	return e
}

func cut(s string) string {
	if len(s) <= maxEvidenceText {
		return s
	}
	end := maxEvidenceText
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "..."
}
