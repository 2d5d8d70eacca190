package postgres

import "context"

// Reader is the judge's view of a world's database: read-only, over the unix
// socket, as a role that the application and the page cannot use.
type Reader interface {
	// Query runs one read-only statement with bound parameters. A parameter has the type that
	// PostgreSQL infers from its place, as a quoted literal has.
	Query(ctx context.Context, sql string, args ...any) (*Rows, error)
	// QueryAll runs several statements in one round trip and on one snapshot of the database.
	// The error of a statement is a *StatementError.
	QueryAll(ctx context.Context, statements []Statement) ([]*Rows, error)
	// Changes returns all row changes committed since the last call to Mark, in commit order.
	Changes(ctx context.Context) ([]Change, error)
	// Mark forgets the changes up to now: the episode starts here.
	Mark(ctx context.Context) error
	// Dirty says cheaply whether anything may have been written since the last call to Changes or Mark.
	Dirty(ctx context.Context) (bool, error)
}

// Writer applies a task's seeded setup before the episode starts.
type Writer interface {
	Exec(ctx context.Context, sql string, args ...any) error
	// ExecAll runs statements in one transaction: all of them or none.
	ExecAll(ctx context.Context, statements []Statement) error
}

// Statement is one SQL statement with the values of its parameters $1, $2 ...
type Statement struct {
	SQL  string
	Args []any
}

// Rows is a whole result. Text holds each cell as PostgreSQL writes it, nil for NULL, under
// fixed session settings (UTC, ISO dates, all digits of floats). Values hold the same decoded
// by SQL type: what pgx decodes (int64, float64, pgtype.Numeric, time.Time, string, bool,
// []byte, nil), for json map and slice with numbers as json.Number.
type Rows struct {
	Columns []Column
	Values  [][]any
	Text    [][]*string
}

// Column is a result column.
type Column struct {
	Name string
	OID  uint32
}

// Change is one row change of the row-change feed.
type Change struct {
	Schema string         `json:"schema"`
	Table  string         `json:"table"`
	Op     string         `json:"op"` // insert, update, delete, truncate
	Old    map[string]any `json:"old,omitempty"`
	New    map[string]any `json:"new,omitempty"`
	// Commit numbers transactions in commit order from 1; Seq orders changes within the episode.
	Commit int `json:"commit"`
	Seq    int `json:"seq"`
	// OldRow and NewRow are the same rows with every cell as PostgreSQL writes it, in column order.
	OldRow Row `json:"-"`
	NewRow Row `json:"-"`
}

// Row is one row with its columns; Text[i] is nil for NULL.
type Row struct {
	Columns []Column
	Text    []*string
}
