package reward

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/task"
)

// delta is one row that a change took away (-1) or brought (+1).
type delta struct {
	change postgres.Change
	doc    string
	sign   int
	inside bool
}

// damage finds the rows outside the task's scope that are not as they were at the start.
// It is a net difference: what was changed and put back exactly is no damage.
func (j *Judge) damage(ctx context.Context, changes []postgres.Change) ([]Damage, error) {
	if !j.inst.Reward.HasOnly {
		return nil, nil
	}
	var deltas []*delta
	truncated := map[string]bool{}
	for _, c := range changes {
		areas := j.areasOf(c)
		if slices.ContainsFunc(areas, func(a task.Area) bool { return a.Where.SQL == "" }) {
			continue
		}
		if c.Op == "truncate" {
			truncated[tableName(c)] = true
			continue
		}
		for sign, row := range map[int]postgres.Row{-1: c.OldRow, 1: c.NewRow} {
			if row.Columns == nil {
				continue
			}
			doc, err := row.JSON()
			if err != nil {
				return nil, lost(err, "read a changed row")
			}
			deltas = append(deltas, &delta{change: c, doc: doc, sign: sign})
		}
	}
	if err := j.markInside(ctx, deltas); err != nil {
		return nil, err
	}
	return netDamage(deltas, truncated), nil
}

func (j *Judge) areasOf(c postgres.Change) []task.Area {
	var out []task.Area
	for _, a := range j.inst.Reward.Only {
		if isTable(a.Table, c) {
			out = append(out, a)
		}
	}
	return out
}

// markInside asks the database which rows fulfil the condition of their area.
func (j *Judge) markInside(ctx context.Context, deltas []*delta) error {
	var statements []postgres.Statement
	var asked [][]*delta
	for _, a := range j.inst.Reward.Only {
		var mine []*delta
		var docs []string
		for _, d := range deltas {
			if a.Where.SQL != "" && isTable(a.Table, d.change) {
				mine, docs = append(mine, d), append(docs, d.doc)
			}
		}
		if len(mine) > 0 {
			statements, asked = append(statements, insideQuery(a, docs)), append(asked, mine)
		}
	}
	if len(statements) == 0 {
		return nil
	}
	got, err := j.db.QueryAll(ctx, statements)
	if err != nil {
		return lost(err, "run the condition of an allowed table of task "+j.inst.ID)
	}
	for s, mine := range asked {
		for i, d := range mine {
			if cell := got[s].Text[i][0]; cell != nil && *cell == "t" {
				d.inside = true
			}
		}
	}
	return nil
}

// insideQuery applies a condition to rows that need not exist any more. Inside the condition
// only the table's columns have names.
func insideQuery(a task.Area, docs []string) postgres.Statement {
	n := len(a.Where.Args) + 1
	table := postgres.QuoteTable(a.Table)
	alias := `"` + strings.ReplaceAll(a.Table[strings.LastIndexByte(a.Table, '.')+1:], `"`, `""`) + `"`
	return postgres.Statement{
		SQL: fmt.Sprintf(`SELECT (%s) FROM (SELECT pommel_row.* FROM unnest($%d::text[]) WITH ORDINALITY AS pommel_docs(doc, place),
LATERAL jsonb_populate_record(NULL::%s, doc::jsonb) AS pommel_row ORDER BY place) AS %s`, a.Where.SQL, n, table, alias),
		Args: append(slices.Clone(a.Where.Args), docs),
	}
}

// netDamage sums up rows: one that came and one that went cancel out when they are equal.
func netDamage(deltas []*delta, truncated map[string]bool) []Damage {
	sums := map[string]map[string]int{}
	var tables []string
	for _, d := range deltas {
		if d.inside {
			continue
		}
		name := tableName(d.change)
		if sums[name] == nil {
			sums[name] = map[string]int{}
			tables = append(tables, name)
		}
		sums[name][d.doc] += d.sign
	}
	for name := range truncated {
		if sums[name] == nil {
			tables = append(tables, name)
		}
	}
	slices.Sort(tables)
	var out []Damage
	for _, name := range tables {
		d := tableDamage(name, sums[name])
		if truncated[name] {
			d.Rows = -1
		}
		if d.Rows != 0 {
			out = append(out, d)
		}
	}
	return out
}

func tableDamage(name string, sums map[string]int) Damage {
	const most = 5
	d := Damage{Table: name}
	docs := make([]string, 0, len(sums))
	for doc := range sums {
		docs = append(docs, doc)
	}
	slices.Sort(docs)
	for _, doc := range docs {
		switch n := sums[doc]; {
		case n < 0:
			d.Rows -= n
			if len(d.Gone) < most {
				d.Gone = append(d.Gone, cut(doc))
			}
		case n > 0:
			d.Rows += n
			if len(d.New) < most {
				d.New = append(d.New, cut(doc))
			}
		}
	}
	return d
}
