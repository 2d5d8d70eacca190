package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/task/cell"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

// Problem is something that a look at the database found in a task.
type Problem struct {
	Task string `json:"task"`
	// Warning is set when the task can be used in spite of it.
	Warning bool `json:"warning"`
	// Text names the place, what is wrong and what to do.
	Text string `json:"text"`
}

// checkSeeds are the seeds with which tasks are tried: one for each place of the split.
var checkSeeds = []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}

// CheckAgainst tries every task on a database in the state in which episodes start:
// tables, columns, SQL, parameters.
func (s *Suite) CheckAgainst(ctx context.Context, db postgres.Reader) ([]Problem, error) {
	var out []Problem
	for _, t := range s.Tasks {
		found, err := t.CheckAgainst(ctx, db)
		if err != nil {
			return out, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// CheckAgainst tries the task on a database. The error is one of the database's
// connection, never one of the task.
func (s *Spec) CheckAgainst(ctx context.Context, db postgres.Reader) ([]Problem, error) {
	c := checker{spec: s, db: db, seen: map[string]bool{}}
	for _, seed := range checkSeeds {
		inst, err := Instantiate(ctx, s, seed, db)
		if err != nil {
			if !isMistake(err) {
				return nil, err
			}
			c.add(err)
			break
		}
		if err := c.instance(ctx, inst); err != nil {
			return nil, err
		}
	}
	c.warnings()
	return c.found, nil
}

type checker struct {
	spec  *Spec
	db    postgres.Reader
	found []Problem
	seen  map[string]bool
}

func (c *checker) add(err error) {
	var e *yamlfile.Error
	text := err.Error()
	if errors.As(err, &e) {
		text = e.Error()
	}
	c.put(Problem{Task: c.spec.ID, Text: text})
}

func (c *checker) put(p Problem) {
	if !c.seen[p.Text] {
		c.seen[p.Text] = true
		c.found = append(c.found, p)
	}
}

// isMistake tells a mistake in the task from a fault of the database's connection.
func isMistake(err error) bool {
	var e *yamlfile.Error
	return errors.As(err, &e)
}

func (c *checker) instance(ctx context.Context, inst *Instance) error {
	for i, st := range inst.Setup {
		if err := c.setup(ctx, fmt.Sprintf("setup[%d]", i), c.spec.Setup[i], st); err != nil {
			return err
		}
	}
	for i, m := range inst.Reward.Stages {
		path := fmt.Sprintf("reward.stages[%d]", i)
		var err error
		switch {
		case m.Query != "":
			err = c.stageQuery(ctx, path, m)
		case m.Changes != nil:
			err = c.stageChanges(ctx, path, m)
		}
		if err != nil {
			return err
		}
	}
	for i, a := range inst.Reward.Only {
		if err := c.area(ctx, fmt.Sprintf("reward.only[%d]", i), a); err != nil {
			return err
		}
	}
	return nil
}

// planned are the statements that EXPLAIN takes.
var planned = []string{"insert", "update", "delete", "merge", "select", "with", "values"}

// setup has PostgreSQL plan a statement without running it. The judge may not write, and is
// told so only after everything in the statement was found.
func (c *checker) setup(ctx context.Context, path, sql string, st postgres.Statement) error {
	if !oneOf(scanSQL(sql).first().text, planned) {
		return nil
	}
	prefix := "EXPLAIN "
	_, err := c.db.Query(ctx, prefix+st.SQL, st.Args...)
	var pg *pgconn.PgError
	if err == nil || errors.As(err, &pg) && pg.Code == "42501" {
		return nil
	}
	return c.sqlProblemAt(path, sql, err, len(prefix))
}

// stageQuery runs the query and compares its columns with those that are expected.
func (c *checker) stageQuery(ctx context.Context, path string, m Milestone) error {
	rows, err := c.db.Query(ctx, m.Statement.SQL, m.Statement.Args...)
	if err != nil {
		return c.sqlProblem(path+".query", m.Query, err)
	}
	var columns []string
	for _, col := range rows.Columns {
		if slices.Contains(columns, col.Name) {
			c.add(withHint(c.spec.src.errorf(path+".query", "the query has two columns %q", col.Name), "rename one with AS"))
		}
		columns = append(columns, col.Name)
	}
	for i, row := range m.Expect.Rows {
		for _, f := range row {
			if !slices.Contains(columns, f.Name) {
				c.add(withHint(c.spec.src.errorf(fmt.Sprintf("%s.expect.rows[%d].%s", path, i, f.Name), "the query gives no column %q", f.Name),
					"it gives %s", strings.Join(columns, ", ")))
				continue
			}
			c.wanted(fmt.Sprintf("%s.expect.rows[%d].%s", path, i, f.Name), rows.Columns[slices.Index(columns, f.Name)].OID, f, m.Match)
		}
	}
	return nil
}

// wanted checks that an expected value can be one of the column's type.
func (c *checker) wanted(path string, oid uint32, f Field, m Match) {
	if err := cell.Check(oid, f.Value.Want(), m.Modes(f.Name)); err != nil {
		c.add(c.spec.src.errorf(path, "%v", err))
	}
}

func (c *checker) stageChanges(ctx context.Context, path string, m Milestone) error {
	for i, w := range m.Changes {
		at := fmt.Sprintf("%s.changes[%d]", path, i)
		columns, err := c.columns(ctx, w.Table)
		if err != nil {
			return err
		}
		if columns == nil {
			c.noTable(at+".table", w.Table)
			continue
		}
		c.changed(at+".old", w.Table, w.Old, columns, m.Match)
		c.changed(at+".new", w.Table, w.New, columns, m.Match)
	}
	return nil
}

func (c *checker) changed(path, table string, row Row, columns []postgres.Column, m Match) {
	for _, f := range row {
		i := slices.IndexFunc(columns, func(col postgres.Column) bool { return col.Name == f.Name })
		if i < 0 {
			c.add(withHint(c.spec.src.errorf(path+"."+f.Name, "table %s has no column %q", table, f.Name), "it has %s", names(columns)))
			continue
		}
		c.wanted(path+"."+f.Name, columns[i].OID, f, m)
	}
}

func names(columns []postgres.Column) string {
	var out []string
	for _, c := range columns {
		out = append(out, c.Name)
	}
	return strings.Join(out, ", ")
}

func (c *checker) area(ctx context.Context, path string, a Area) error {
	columns, err := c.columns(ctx, a.Table)
	if err != nil {
		return err
	}
	if columns == nil {
		c.noTable(path, a.Table)
		return nil
	}
	if a.Where.SQL == "" {
		return nil
	}
	prefix := "SELECT ("
	_, err = c.db.Query(ctx, prefix+a.Where.SQL+") FROM "+postgres.QuoteTable(a.Table)+" LIMIT 1", a.Where.Args...)
	if err == nil {
		return nil
	}
	return c.sqlProblemAt(path+".where", a.whereSource(c.spec), err, len(prefix))
}

// whereSource is the condition as the author wrote it.
func (a Area) whereSource(s *Spec) string {
	for _, o := range s.Reward.Only {
		if o.Table == a.Table && scanSQL(o.Where).bind() == a.Where.SQL {
			return o.Where
		}
	}
	return ""
}

func (c *checker) noTable(path, table string) {
	c.add(withHint(c.spec.src.errorf(path, "there is no table %q", table), "name a table of the world's database; one outside the search path as schema.table"))
}

// columns lists the columns of a table, or nothing when there is no such table.
func (c *checker) columns(ctx context.Context, table string) ([]postgres.Column, error) {
	// The description of a result names the base type of a domain, as results do.
	rows, err := c.db.Query(ctx, "SELECT * FROM "+postgres.QuoteTable(table)+" LIMIT 0")
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && aboutStatement(pg.Code):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up table %s: %w", table, err)
	}
	return rows.Columns, nil
}

func (c *checker) sqlProblem(path, sql string, err error) error {
	return c.sqlProblemAt(path, sql, err, 0)
}

func (c *checker) sqlProblemAt(path, sql string, err error, lead int) error {
	placed := c.spec.sqlErrorAt(path, sql, err, lead)
	if !isMistake(placed) {
		return placed
	}
	c.add(placed)
	return nil
}

// sqlError points an error of PostgreSQL at its place in the file. Errors that are
// not about the statement stay as they are.
func (s *Spec) sqlError(path, sql string, err error) error { return s.sqlErrorAt(path, sql, err, 0) }

func (s *Spec) sqlErrorAt(path, sql string, err error, lead int) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !aboutStatement(pg.Code) {
		return err
	}
	text := pg.Message
	if pg.Detail != "" {
		text += " (" + pg.Detail + ")"
	}
	e := s.src.errorf(path, "%s", text)
	if pg.Position > 0 {
		t := scanSQL(sql)
		offset := byteOfRune(t.bind(), int(pg.Position)-1-lead)
		e = s.src.errorIn(path, t.sourceOffset(offset), "%s", text)
	}
	switch {
	case pg.Code == "25006":
		e.Hint = "queries of tasks may only read"
	case pg.Code == "42P18" || pg.Code == "42725" || pg.Code == "42883":
		e.Hint = "a ${...} has no type of its own; write a cast, as ${name}::int"
	case pg.Hint != "":
		e.Hint = pg.Hint
	}
	return e
}

// aboutStatement says whether an SQLSTATE blames the statement: not the connection (08),
// resources (53), an operator (57, but for the statement's own time limit) or the system (58, XX).
func aboutStatement(code string) bool {
	switch {
	case code == "57014":
		return true
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57"),
		strings.HasPrefix(code, "58"), strings.HasPrefix(code, "XX"):
		return false
	}
	return true
}

// byteOfRune is the byte offset of the n-th character: PostgreSQL counts characters.
func byteOfRune(s string, n int) int {
	at := 0
	for i := range s {
		if at == n {
			return i
		}
		at++
	}
	return len(s)
}

// warnings flags functions whose value differs from run to run.
func (c *checker) warnings() {
	flag := func(path, sql string, warning bool) {
		w, ok := scanSQL(sql).volatile()
		if !ok {
			return
		}
		e := withHint(c.spec.src.errorIn(path, w.offset, "%s gives another value in each run", w.text), "take the value from a parameter or a fixed date")
		c.put(Problem{Task: c.spec.ID, Warning: warning, Text: e.Error()})
	}
	for _, p := range c.spec.Params {
		flag("params."+p.Name+".query", p.Query, false)
		flag("params."+p.Name+".value", p.Value, false)
	}
	for i, sql := range c.spec.Setup {
		flag(fmt.Sprintf("setup[%d]", i), sql, true)
	}
	for i, st := range c.spec.Reward.Stages {
		flag(fmt.Sprintf("reward.stages[%d].query", i), st.Query, true)
	}
	if !c.spec.Reward.HasOnly {
		c.put(Problem{Task: c.spec.ID, Warning: true, Text: c.spec.src.errorf("reward",
			"without only, no change is collateral damage; list the tables that may change").Error()})
	}
}
