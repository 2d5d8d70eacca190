package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pommelgym/pommel/internal/fault"
)

// feed is the client's side of the row-change feed. Its fields are used by whoever holds
// the line. Decoding makes a server process forget its caches, so everything but decoding
// is asked over the line of the queries, whose caches stay warm.
type feed struct {
	line, queries *line
	// seen is the end of the log when the feed was last read.
	seen    pglogrepl.LSN
	changes []Change
	commit  int
	catalog *catalog
	// broken is set when changes were taken from the slot and then lost.
	broken error
}

const (
	// logEnd tells how far the log was written, how far it was flushed, and how far the
	// slot has confirmed it.
	logEnd = `SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn(), s.confirmed_flush_lsn
FROM pg_replication_slots s WHERE s.slot_name = '` + feedName + `'`

	insertEnd = `SELECT pg_current_wal_insert_lsn()`

	// takeChanges decodes what was committed since the last call and moves the slot on.
	takeChanges = `SELECT data FROM pg_logical_slot_get_binary_changes('` + feedName + `', NULL, NULL,
'proto_version', '1', 'publication_names', '` + feedName + `')`

	// skipChanges moves the slot to the end of the log without decoding rows.
	skipChanges = `SELECT pg_replication_slot_advance('` + feedName + `', pg_current_wal_flush_lsn())`

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
	if err := j.feed.line.do(ctx, func(context.Context) error {
		seen = j.feed.seen
		return nil
	}); err != nil {
		return false, err
	}
	return end != seen, nil
}

// Mark forgets all changes up to now.
func (j *Judge) Mark(ctx context.Context) error { return j.feed.line.do(ctx, j.feed.mark) }

func (f *feed) mark(ctx context.Context) error {
	end, err := f.flushedEnd(ctx)
	if err != nil {
		return err
	}
	if end.confirmed < end.flushed {
		if _, err := queryAll(ctx, f.line.conn, []Statement{{SQL: skipChanges}}); err != nil {
			return fault.Wrap(fault.WorldLost, err, "skip row changes")
		}
	}
	*f = feed{line: f.line, queries: f.queries, seen: end.inserted}
	return nil
}

// Changes reads what was committed since the last call and returns everything since Mark.
func (j *Judge) Changes(ctx context.Context) ([]Change, error) {
	var all []Change
	err := j.feed.line.do(ctx, func(ctx context.Context) error {
		err := j.feed.read(ctx)
		all = j.feed.changes[:len(j.feed.changes):len(j.feed.changes)]
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (f *feed) read(ctx context.Context) error {
	if f.broken != nil {
		return f.broken
	}
	end, err := f.flushedEnd(ctx)
	if err != nil || end.inserted == f.seen {
		return err
	}
	if err := f.take(ctx); err != nil {
		f.broken = fault.Wrap(fault.WorldLost, err, "read row changes")
		return f.broken
	}
	f.seen = end.inserted
	return nil
}

type logPosition struct {
	inserted, flushed, confirmed pglogrepl.LSN
}

// flushedEnd is the end of the log, once all of it is flushed.
func (f *feed) flushedEnd(ctx context.Context) (logPosition, error) {
	const tries = 5
	var end logPosition
	for range tries {
		var err error
		if end, err = f.end(ctx); err != nil {
			return end, fault.Wrap(fault.WorldLost, err, "read the end of the log")
		}
		if end.flushed >= end.inserted {
			break
		}
		if _, err := f.ask(ctx, flushLog); err != nil {
			return end, fault.Wrap(fault.WorldLost, err, "flush the log")
		}
	}
	return end, nil
}

func (f *feed) end(ctx context.Context) (p logPosition, err error) {
	rows, err := f.ask(ctx, logEnd)
	if err != nil {
		return p, err
	}
	if len(rows[0].Text) != 1 {
		return p, fault.New(fault.Internal, "the database was not prepared for the row-change feed")
	}
	for i, into := range []*pglogrepl.LSN{&p.inserted, &p.flushed, &p.confirmed} {
		if *into, err = pglogrepl.ParseLSN(*rows[0].Text[0][i]); err != nil {
			return p, err
		}
	}
	return p, nil
}

// ask runs statements over the line of the queries.
func (f *feed) ask(ctx context.Context, statements ...string) (rows []*Rows, err error) {
	list := make([]Statement, len(statements))
	for i, sql := range statements {
		list[i].SQL = sql
	}
	return f.askAll(ctx, list)
}

func (f *feed) askAll(ctx context.Context, statements []Statement) (rows []*Rows, err error) {
	var got []*Rows
	if err := f.queries.do(ctx, func(ctx context.Context) (err error) {
		got, err = queryAll(ctx, f.queries.conn, statements)
		return err
	}); err != nil {
		return nil, err
	}
	return got, nil
}

// take decodes the new part of the log.
func (f *feed) take(ctx context.Context) error {
	messages, err := f.decodeLog(ctx)
	if err != nil {
		return err
	}
	p := parser{feed: f, types: pgtype.NewMap(), relations: map[uint32]*relation{}}
	first := len(f.changes)
	for _, msg := range messages {
		if err := p.message(ctx, msg); err != nil {
			return err
		}
	}
	if err := p.fillGenerated(ctx, f.changes[first:]); err != nil {
		return err
	}
	for i := range f.changes[first:] {
		c := &f.changes[first+i]
		c.Old, c.New = c.OldRow.values(p.types), c.NewRow.values(p.types)
	}
	return nil
}

// decodeLog gives the messages of the output plugin.
func (f *feed) decodeLog(ctx context.Context) (messages [][]byte, err error) {
	r := f.line.conn.ExecParams(ctx, takeChanges, nil, nil, nil, []int16{pgtype.BinaryFormatCode})
	for r.NextRow() {
		messages = append(messages, append([]byte(nil), r.Values()[0]...))
	}
	if _, err := r.Close(); err != nil {
		return nil, classify(err)
	}
	return messages, nil
}
