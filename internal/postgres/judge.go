package postgres

import "context"

// Reader is the judge's view of a world's database: read-only, over the unix
// socket, as a role that the application and the page cannot use.
type Reader interface {
	// Query runs one read-only statement with bound parameters.
	Query(ctx context.Context, sql string, args ...any) (*Rows, error)
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
}

// Rows is a whole result. Values keep their SQL type by OID; Values[i][j] is what
// pgx decodes (int64, float64, pgtype.Numeric, time.Time, string, bool, []byte, nil,
// map/slice for json).
type Rows struct {
	Columns []Column
	Values  [][]any
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
}
