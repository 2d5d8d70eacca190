package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pommelgym/pommel/internal/fault"
)

// feed is the client's side of the row-change feed. Its fields are used by whoever has the turn.
type feed struct {
	turn    turn
	stream  *stream
	queries *line
	// seen is the end of the log when the feed was last read.
	seen    pglogrepl.LSN
	changes []Change
	commit  int
	parser  *parser
	// broken is set when changes arrived and were lost: only a new start mends that.
	broken error
}

const (
	insertEnd = `SELECT pg_current_wal_insert_lsn()`

	// logEnd tells how far the log was written and how far it was flushed.
	logEnd = `SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()`

	// flushLog commits a transaction that leaves nothing but a message that nobody reads.
	// Its commit flushes the log, and with it those commits of the application that did
	// not wait for the disk (synchronous_commit = off): only what is flushed is decoded.
	flushLog = `SELECT pg_logical_emit_message(true, '` + feedName + `', '')`
)

// Dirty asks for the end of the log, and nothing else. Every committed transaction that
// wrote moves it; so may a few other things, which make an idle world look dirty at times.
func (j *Judge) Dirty(ctx context.Context) (bool, error) {
	rows, err := j.Query(ctx, insertEnd)
	if err != nil {
		return false, fault.Wrap(fault.WorldLost, err, "read the end of the log")
	}
	end, err := pglogrepl.ParseLSN(*rows.Text[0][0])
	if err != nil {
		return false, fmt.Errorf("read the end of the log: %w", err)
	}
	var seen pglogrepl.LSN
	if err := j.feed.turn.do(ctx, func(context.Context) error {
		seen = j.feed.seen
		return nil
	}); err != nil {
		return false, err
	}
	return end != seen, nil
}

// Mark forgets all changes up to now.
func (j *Judge) Mark(ctx context.Context) error {
	return j.feed.turn.do(ctx, func(ctx context.Context) error {
		f := j.feed
		if err := f.read(ctx); err != nil {
			return err
		}
		f.changes, f.commit = nil, 0
		return nil
	})
}

// Changes reads what was committed since the last call and returns everything since Mark.
func (j *Judge) Changes(ctx context.Context) ([]Change, error) {
	var all []Change
	err := j.feed.turn.do(ctx, func(ctx context.Context) error {
		f := j.feed
		err := f.read(ctx)
		all = f.changes[:len(f.changes):len(f.changes)]
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Rewound tells the judge that the server was put back to an earlier state in place, with
// its connections open. It must be called before anything else is asked after that. What
// the server had sent of the undone future is dropped, and the feed starts anew.
func (j *Judge) Rewound(ctx context.Context) error {
	return j.feed.turn.do(ctx, func(context.Context) error {
		f := j.feed
		if err := f.stream.forget(); err != nil {
			return fault.Wrap(fault.WorldLost, err, "start the row-change feed anew")
		}
		f.seen, f.changes, f.commit, f.parser, f.broken = 0, nil, 0, newParser(f), nil
		return nil
	})
}

// read takes in all that is committed by now.
func (f *feed) read(ctx context.Context) error {
	if f.broken != nil {
		return f.broken
	}
	end, err := f.flushedEnd(ctx)
	if err != nil || end == f.seen {
		return err
	}
	first := len(f.changes)
	err = f.stream.until(ctx, end, func(msg []byte) error { return f.parser.message(ctx, msg) })
	if err == nil {
		err = f.parser.finish(ctx, first)
	}
	if err != nil {
		f.broken = fault.Wrap(fault.WorldLost, err, "read row changes")
		return f.broken
	}
	f.seen = end
	return nil
}

// flushedEnd is the end of the log, once all of it is flushed.
func (f *feed) flushedEnd(ctx context.Context) (pglogrepl.LSN, error) {
	const tries = 5
	var end pglogrepl.LSN
	for range tries {
		rows, err := f.ask(ctx, logEnd)
		if err != nil {
			return 0, fault.Wrap(fault.WorldLost, err, "read the end of the log")
		}
		inserted, err1 := pglogrepl.ParseLSN(*rows[0].Text[0][0])
		flushed, err2 := pglogrepl.ParseLSN(*rows[0].Text[0][1])
		if err := errors.Join(err1, err2); err != nil {
			return 0, fmt.Errorf("read the end of the log: %w", err)
		}
		if end = inserted; flushed >= inserted {
			return end, nil
		}
		if _, err := f.ask(ctx, flushLog); err != nil {
			return 0, fault.Wrap(fault.WorldLost, err, "flush the log")
		}
	}
	// The application writes faster than the log is flushed. What is flushed now is what
	// can be had now.
	rows, err := f.ask(ctx, `SELECT pg_current_wal_flush_lsn()`)
	if err != nil {
		return 0, fault.Wrap(fault.WorldLost, err, "read the end of the log")
	}
	return pglogrepl.ParseLSN(*rows[0].Text[0][0])
}

// ask runs statements over the line of the queries.
func (f *feed) ask(ctx context.Context, statements ...string) ([]*Rows, error) {
	list := make([]Statement, len(statements))
	for i, sql := range statements {
		list[i].SQL = sql
	}
	return f.askAll(ctx, list)
}

func (f *feed) askAll(ctx context.Context, statements []Statement) ([]*Rows, error) {
	var got []*Rows
	if err := f.queries.do(ctx, func(ctx context.Context) (err error) {
		got, err = queryAll(ctx, f.queries.conn, statements)
		return err
	}); err != nil {
		return nil, err
	}
	return got, nil
}

func (f *feed) close() { _ = f.stream.conn.Close() }

func newParser(f *feed) *parser {
	return &parser{feed: f, types: pgtype.NewMap(), relations: map[uint32]*relation{}}
}
