package reward

import (
	"context"
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/task"
	"github.com/pommelgym/pommel/internal/task/answer"
)

// look is what a glance at one stage's condition gives.
type look struct {
	holds          bool
	seen, expected *Evidence
	diff           string
}

// look judges the condition of stage i.
func (j *Judge) look(ctx context.Context, i int, in Input) (look, error) {
	m := &j.inst.Reward.Stages[i]
	switch p := j.plan.stages[i]; p.kind {
	case kindQuery:
		return lookAtRows(m, j.facts.rows[p.query]), nil
	case kindChanges:
		return lookAtChanges(m, j.own(j.facts.changes)), nil
	case kindAnswer:
		return j.lookAtAnswer(m, in), nil
	}
	return j.lookAtPage(ctx, m)
}

func lookAtRows(m *task.Milestone, rows *postgres.Rows) look {
	l := look{seen: tableEvidence(rows.Columns, rows.Text)}
	n := len(rows.Text)
	switch e := m.Expect; {
	case e.Empty:
		l.holds, l.expected = n == 0, &Evidence{Text: "no row"}
	case e.Count != nil:
		l.holds, l.expected = n == *e.Count, &Evidence{Text: countRows(*e.Count)}
	case e.AtLeast != nil:
		l.holds, l.expected = n >= *e.AtLeast, &Evidence{Text: "at least " + countRows(*e.AtLeast)}
	default:
		l.expected = wantEvidence(e.Rows)
		l.diff = compareRows(m, rows)
		l.holds = l.diff == ""
		return l
	}
	if !l.holds {
		l.diff = fmt.Sprintf("the query gives %s, expected %s", countRows(n), l.expected.Text)
	}
	return l
}

func countRows(n int) string {
	switch n {
	case 0:
		return "no row"
	case 1:
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// wantEvidence shows expected rows as a table over all columns that they name.
func wantEvidence(rows []task.Row) *Evidence {
	e := &Evidence{Total: len(rows)}
	at := map[string]int{}
	for _, r := range rows {
		for _, f := range r {
			if _, ok := at[f.Name]; !ok {
				at[f.Name] = len(e.Columns)
				e.Columns = append(e.Columns, f.Name)
			}
		}
	}
	for _, r := range rows[:min(len(rows), maxEvidenceRows)] {
		row := make([]*string, len(e.Columns))
		for _, f := range r {
			if f.Value.Kind != task.Null {
				s := cut(f.Value.String())
				row[at[f.Name]] = &s
			}
		}
		e.Rows = append(e.Rows, row)
	}
	return e
}

func (j *Judge) lookAtAnswer(m *task.Milestone, in Input) look {
	a := m.Answer
	l := look{expected: &Evidence{}}
	if a.Type == task.AnswerInfeasible {
		l.expected.Text = "report_infeasible"
		l.holds = in.Infeasible
		if !l.holds {
			l.diff = "the agent has not said that the task cannot be done"
		}
		return l
	}
	var wants []string
	for _, w := range a.Wants(j.base()) {
		text := w.Value
		if w.Type == answer.Set {
			text = strings.Join(w.Values, "; ")
		}
		wants = append(wants, text)
	}
	l.expected.Text = cut(strings.Join(wants, " or "))
	if in.Answer == nil {
		l.diff = "no answer was given"
		return l
	}
	l.seen = &Evidence{Text: cut(*in.Answer)}
	for _, w := range a.Wants(j.base()) {
		ok, why := answer.Match(w, *in.Answer)
		if ok {
			l.holds, l.diff = true, ""
			return l
		}
		l.diff = why
	}
	return l
}

func (j *Judge) base() string {
	if j.page == nil {
		return ""
	}
	return j.page.Base()
}

func (j *Judge) lookAtPage(ctx context.Context, m *task.Milestone) (look, error) {
	if j.page == nil {
		return look{}, fault.New(fault.Internal, "stage %s is about the page, but there is none", m.Name)
	}
	l := look{holds: true, seen: &Evidence{}, expected: &Evidence{Text: strings.Join(m.Page.URLs, " or ")}}
	if len(m.Page.URLs) > 0 {
		got, err := j.page.URL(ctx)
		if err != nil {
			return l, lost(err, "look at the page's address")
		}
		l.seen.Text = got
		if l.holds = j.isPlace(m.Page.URLs, got); !l.holds {
			l.diff = fmt.Sprintf("the page is %s, expected %s", cut(got), l.expected.Text)
		}
	}
	if m.Page.Text != "" && l.holds {
		text, err := j.page.Text(ctx)
		if err != nil {
			return l, lost(err, "look at the page's text")
		}
		if l.holds = strings.Contains(squeeze(text), squeeze(m.Page.Text)); !l.holds {
			l.diff = fmt.Sprintf("the page does not say %q", cut(m.Page.Text))
		}
	}
	return l, nil
}

func (j *Judge) isPlace(urls []string, got string) bool {
	for _, u := range urls {
		if same, err := answer.SameURL(j.page.Base(), u, got); err == nil && same {
			return true
		}
	}
	return false
}

// squeeze makes one blank of each run of white space: where lines break is the browser's affair.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
