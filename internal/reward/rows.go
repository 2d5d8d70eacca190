package reward

import (
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/task"
	"github.com/pommelgym/pommel/internal/task/cell"
)

// maxPairs bounds the search for a match between rows seen and rows expected.
const maxPairs = 1 << 20

// compareRows says in words how the rows differ from those expected, or "".
func compareRows(m *task.Milestone, rows *postgres.Rows) string {
	want := m.Expect.Rows
	n, k := len(rows.Text), len(want)
	if n != k && n*k > maxPairs {
		return fmt.Sprintf("the query gives %s, expected %s", countRows(n), countRows(k))
	}
	same := func(i, w int) (bool, error) {
		diff, err := rowDiff(rows, i, want[w], m.Match)
		return diff == "" && err == nil, err
	}
	if m.Expect.Order == task.StrictOrder || m.Order == task.StrictOrder {
		return compareInOrder(rows, m)
	}
	pairs, err := cell.Pairs(n, k, same)
	if err != nil {
		return err.Error()
	}
	return bagDiff(rows, want, m.Match, pairs)
}

func compareInOrder(rows *postgres.Rows, m *task.Milestone) string {
	want := m.Expect.Rows
	for i := range min(len(rows.Text), len(want)) {
		diff, err := rowDiff(rows, i, want[i], m.Match)
		if err != nil {
			return err.Error()
		}
		if diff != "" {
			return fmt.Sprintf("row %d: %s", i+1, diff)
		}
	}
	if len(rows.Text) != len(want) {
		return fmt.Sprintf("the query gives %s, expected %s", countRows(len(rows.Text)), countRows(len(want)))
	}
	return ""
}

// bagDiff describes what is left over on either side after pairing.
func bagDiff(rows *postgres.Rows, want []task.Row, match task.Match, pairs []int) string {
	used := make([]bool, len(rows.Text))
	var missing []int
	for w, i := range pairs {
		if i < 0 {
			missing = append(missing, w)
		} else {
			used[i] = true
		}
	}
	var extra []int
	for i := range rows.Text {
		if !used[i] {
			extra = append(extra, i)
		}
	}
	if len(missing) == 1 && len(extra) == 1 {
		if diff, err := rowDiff(rows, extra[0], want[missing[0]], match); err == nil {
			return diff
		}
	}
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("%s missing, as %s", countRows(len(missing)), showWant(want[missing[0]])))
	}
	if len(extra) > 0 {
		parts = append(parts, fmt.Sprintf("%s too many, as %s", countRows(len(extra)), showSeen(rows.Columns, rows.Text[extra[0]])))
	}
	return strings.Join(parts, "; ")
}

// rowDiff names the columns in which row i differs from an expected row.
func rowDiff(rows *postgres.Rows, i int, want task.Row, match task.Match) (string, error) {
	return cellsDiff(postgres.Row{Columns: rows.Columns, Text: rows.Text[i]}, want, match)
}

func cellsDiff(got postgres.Row, want task.Row, match task.Match) (string, error) {
	var parts []string
	for _, f := range want {
		text, oid, ok := got.Get(f.Name)
		if !ok {
			return "", fmt.Errorf("there is no column %q", f.Name)
		}
		same, err := cell.Equal(oid, text, f.Value.Want(), match.Modes(f.Name))
		if err != nil {
			return "", fmt.Errorf("column %s: %w", f.Name, err)
		}
		if !same {
			parts = append(parts, fmt.Sprintf("%s is %s, expected %s", f.Name, showCell(text), cut(showValue(f.Value))))
		}
	}
	return strings.Join(parts, ", "), nil
}

func showCell(text *string) string {
	if text == nil {
		return "NULL"
	}
	if *text == "" {
		return "''"
	}
	return cut(*text)
}

func showValue(v task.Value) string {
	if v.Kind == task.String && v.Text == "" {
		return "''"
	}
	return v.String()
}

func showWant(want task.Row) string {
	var parts []string
	for _, f := range want {
		parts = append(parts, f.Name+" = "+cut(showValue(f.Value)))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func showSeen(columns []postgres.Column, row []*string) string {
	var parts []string
	for i, c := range columns {
		parts = append(parts, c.Name+" = "+showCell(row[i]))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
