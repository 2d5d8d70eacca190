package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pommelgym/pommel/internal/fault"
)

// session are settings that verdicts rest on. They are sent when the connection starts and
// so win over what the application set for its database or its roles.
var session = map[string]string{
	"application_name":   "",
	"client_encoding":    "UTF8",
	"timezone":           "UTC",
	"datestyle":          "ISO, YMD",
	"intervalstyle":      "postgres",
	"extra_float_digits": "1",
	"bytea_output":       "hex",
	"xmloption":          "content",
	"lc_monetary":        "C",
	"lc_numeric":         "C",
	"lc_time":            "C",

	"standard_conforming_strings": "on",
	"client_min_messages":         "warning",
	"row_security":                "on",
	"jit":                         "off",
}

// judgeSession are the settings of the judge's own connections.
var judgeSession = map[string]string{
	"search_path":                   "pg_catalog, public",
	"default_transaction_read_only": "on",
	// All statements of one round trip see one state of the database.
	"default_transaction_isolation": "repeatable read",
	// What is committed is flushed, and only what is flushed is decoded.
	"synchronous_commit":                  "on",
	"statement_timeout":                   fmt.Sprint(statementTimeout.Milliseconds()),
	"idle_in_transaction_session_timeout": "0",
}

// Judge holds the judge's connections: it implements Reader. It keeps nothing on the
// server between two calls but the place of the feed, which belongs to the server's state:
// the server may be put back to an earlier state under it, after which Rewound must be
// called. It may be used by many goroutines. Queries run one after the other, and beside
// them the calls about the feed.
type Judge struct {
	queries *line
	feed    *feed
}

var _ Reader = (*Judge)(nil)

// Dialer makes a connection to the server where a DSN's address cannot be reached from
// here. Each call must give another one.
type Dialer func(ctx context.Context) (net.Conn, error)

// OpenJudge connects as the judge and forgets the changes up to now.
func OpenJudge(ctx context.Context, dsn string) (*Judge, error) { return OpenJudgeVia(ctx, dsn, nil) }

// OpenJudgeVia is OpenJudge over the connections of a dialer.
func OpenJudgeVia(ctx context.Context, dsn string, dial Dialer) (*Judge, error) {
	queries, err := openLine(ctx, dsn, judgeSession, dial)
	if err != nil {
		return nil, err
	}
	changes, err := openStream(ctx, dsn, dial)
	if err != nil {
		queries.close(ctx)
		return nil, err
	}
	j := &Judge{queries: queries, feed: &feed{turn: newTurn(), stream: changes, queries: queries}}
	j.feed.parser = newParser(j.feed)
	if err := j.Mark(ctx); err != nil {
		return nil, errors.Join(err, j.Close(ctx))
	}
	return j, nil
}

// Close ends the connections.
func (j *Judge) Close(ctx context.Context) error {
	j.queries.close(ctx)
	j.feed.close()
	return nil
}

// Query runs one read-only statement.
func (j *Judge) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	rows, err := j.QueryAll(ctx, []Statement{{SQL: sql, Args: args}})
	if err != nil {
		return nil, onlyStatement(err)
	}
	return rows[0], nil
}

// onlyStatement takes the number off the error of a single statement.
func onlyStatement(err error) error {
	var se *StatementError
	if errors.As(err, &se) {
		return se.Err
	}
	return err
}

// StatementError says which of several statements failed.
type StatementError struct {
	Index int
	Err   error
}

func (e *StatementError) Error() string { return fmt.Sprintf("statement %d: %v", e.Index+1, e.Err) }
func (e *StatementError) Unwrap() error { return e.Err }

// QueryAll runs several read-only statements in one round trip, on one snapshot.
func (j *Judge) QueryAll(ctx context.Context, statements []Statement) ([]*Rows, error) {
	var rows []*Rows
	err := j.queries.do(ctx, func(ctx context.Context) (err error) {
		rows, err = queryAll(ctx, j.queries.conn, statements)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// queryAll sends unnamed statements and one Sync: PostgreSQL makes one transaction of them.
func queryAll(ctx context.Context, conn *pgconn.PgConn, statements []Statement) ([]*Rows, error) {
	batch := &pgconn.Batch{}
	for i, s := range statements {
		args, err := encodeArgs(s.Args)
		if err != nil {
			return nil, &StatementError{i, err}
		}
		batch.ExecParams(s.SQL, args, nil, nil, nil)
	}
	res := conn.ExecBatch(ctx, batch)
	types := pgtype.NewMap()
	var out []*Rows
	for res.NextResult() {
		rows, err := readRows(types, res.ResultReader())
		if err != nil {
			_ = res.Close()
			return nil, &StatementError{len(out), classify(err)}
		}
		out = append(out, rows)
	}
	if err := res.Close(); err != nil {
		return nil, &StatementError{len(out), classify(err)}
	}
	if len(out) != len(statements) {
		return nil, fault.New(fault.Internal, "%d statements gave %d results", len(statements), len(out))
	}
	return out, nil
}

// classify gives an error its kind. An error about the statement stays without one.
func classify(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && !strings.HasPrefix(pg.Code, "57P") {
		return err
	}
	return fault.Wrap(fault.WorldLost, err, "query the database")
}

func readRows(types *pgtype.Map, r *pgconn.ResultReader) (*Rows, error) {
	rows := &Rows{}
	for _, f := range r.FieldDescriptions() {
		rows.Columns = append(rows.Columns, Column{Name: f.Name, OID: f.DataTypeOID})
	}
	for r.NextRow() {
		text := make([]*string, len(rows.Columns))
		values := make([]any, len(rows.Columns))
		for i, raw := range r.Values() {
			if raw == nil {
				continue
			}
			s := string(raw)
			text[i] = &s
			values[i] = decode(types, rows.Columns[i].OID, s)
		}
		rows.Text = append(rows.Text, text)
		rows.Values = append(rows.Values, values)
	}
	_, err := r.Close()
	return rows, err
}
