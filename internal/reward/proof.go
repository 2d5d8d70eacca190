package reward

import (
	"fmt"
	"strings"
)

// CheckStart says what is wrong with a task, judging by the verdict of its start: one
// whose stages all hold before anything was done asks for nothing.
func CheckStart(v *Verdict) error {
	if v.Complete {
		return fmt.Errorf("all stages hold at the start: an agent that does nothing succeeds; add a stage that the work brings about, such as an answer or a changed row")
	}
	if v.Potential >= 1 {
		return fmt.Errorf("all weight lies on stages that hold at the start: the work earns nothing; give the weight to stages that the work brings about")
	}
	return nil
}

// HeldAtStart names the stages that hold before anything was done. They are guards: they
// earn nothing, and losing one costs.
func HeldAtStart(v *Verdict) []string {
	var out []string
	for _, s := range v.Stages {
		if s.Holds {
			out = append(out, s.Name)
		}
	}
	return out
}

// Explain writes a verdict as text for people.
func (v *Verdict) Explain() string {
	var b strings.Builder
	for _, s := range v.Stages {
		state := "does not hold"
		switch {
		case s.Latched && !s.Now:
			state = "held before and is latched"
		case s.Holds:
			state = "holds"
		case s.Now:
			state = "is true but waits for " + strings.Join(s.Waiting, ", ")
		}
		fmt.Fprintf(&b, "%s (%g) %s", s.Name, s.Weight, state)
		if s.Diff != "" && !s.Holds {
			b.WriteString(": " + s.Diff)
		}
		b.WriteByte('\n')
	}
	for _, d := range v.Collateral {
		rows := countRows(d.Rows)
		if d.Rows < 0 {
			rows = "emptied"
		}
		fmt.Fprintf(&b, "collateral damage in %s: %s\n", d.Table, rows)
	}
	return b.String()
}
