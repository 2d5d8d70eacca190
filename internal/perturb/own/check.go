package own

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

// Files are the paths of the files with a world's kinds, in the order of their names.
func Files(world string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(world, Dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list the world's perturbations: %w", err)
	}
	return paths, nil
}

// Check tries the SQL of a world's kinds on its database, in the state in which episodes
// start, without changing anything. It returns what is wrong, by place; the error is one of
// the database's connection.
func Check(ctx context.Context, world string, db postgres.Reader) (yamlfile.Errors, error) {
	paths, err := Files(world)
	if err != nil {
		return nil, err
	}
	var found yamlfile.Errors
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("read perturbation: %w", err)
		}
		k, err := Parse(p, data)
		if err != nil || k.SQL == nil {
			continue // Load says what is wrong with it
		}
		f, err := yamlfile.Parse(p, data)
		if err != nil {
			return nil, err
		}
		c := checker{file: f, db: db, known: Values{}}
		c.query(ctx, "needs", k.SQL.Needs)
		c.text("tell", k.SQL.Tell)
		c.query(ctx, "when", k.SQL.When)
		c.statements(ctx, "sql", k.SQL.Run)
		c.statements(ctx, "undo", k.SQL.Undo)
		c.text("seen", k.SQL.Seen)
		if c.lost != nil {
			return nil, c.lost
		}
		found = append(found, c.found...)
	}
	return found, nil
}

// checker tries one file.
type checker struct {
	file *yamlfile.File
	db   postgres.Reader
	// known are the columns that ${...} may name so far, all of them null.
	known Values
	found yamlfile.Errors
	lost  error
}

func (c *checker) query(ctx context.Context, field, sql string) {
	if sql == "" {
		return
	}
	rows := c.try(ctx, field, sql, "")
	if rows == nil {
		return
	}
	for _, col := range rows.Columns {
		c.known[col.Name] = nil
	}
}

// planned are the statements that EXPLAIN takes. Others are not tried.
var planned = regexp.MustCompile(`(?i)^\s*(insert|update|delete|merge|select|with|values)\b`)

func (c *checker) statements(ctx context.Context, field string, texts []string) {
	for i, sql := range texts {
		at, prefix := fmt.Sprintf("%s[%d]", field, i), "EXPLAIN "
		if !planned.MatchString(sql) {
			c.text(at, sql)
			continue
		}
		c.try(ctx, at, sql, prefix)
	}
}

// text looks at what a text names.
func (c *checker) text(at, text string) {
	if _, err := c.known.Fill(text); err != nil {
		c.unknown(at, err)
	}
}

func (c *checker) unknown(at string, err error) {
	e := c.file.Errorf(at, "%v", err)
	e.Hint = "they give " + strings.Join(slices.Sorted(maps.Keys(c.known)), ", ")
	if len(c.known) == 0 {
		e.Hint = "they give none so far"
	}
	c.found = append(c.found, e)
}

// try has PostgreSQL plan or run a statement with nulls in the place of values. The reader may
// not write, and is told so only after everything in the statement was found.
func (c *checker) try(ctx context.Context, at, sql, prefix string) *postgres.Rows {
	if c.lost != nil {
		return nil
	}
	s, err := c.known.Bind(sql)
	if err != nil {
		c.unknown(at, err)
		return nil
	}
	rows, err := c.db.Query(ctx, prefix+s.SQL, s.Args...)
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return rows
	case !errors.As(err, &pg) || notTheStatement.MatchString(pg.Code):
		c.lost = fmt.Errorf("try %s: %w", at, err)
	case prefix != "" && pg.Code == insufficientPrivilege:
	default:
		e := c.file.Errorf(at, "%s", pg.Message)
		if e.Hint = pg.Hint; e.Hint == "" && untyped[pg.Code] {
			e.Hint = "a ${...} has no type of its own; write a cast, as ${id}::int"
		}
		c.found = append(c.found, e)
	}
	return nil
}

// notTheStatement are SQLSTATEs of connection, resources, operator and system.
var notTheStatement = regexp.MustCompile(`^(08|53|57|58|XX)`)

const insufficientPrivilege = "42501"

// untyped are the SQLSTATEs of a parameter whose type cannot be told.
var untyped = map[string]bool{"42P18": true, "42725": true, "42883": true}
