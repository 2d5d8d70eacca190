package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pommelgym/pommel/internal/fault"
)

// feed is the client's side of the row-change feed.
type feed struct {
	mu   sync.Mutex
	conn *pgconn.PgConn
	// seen is the end of the log when the feed was last read.
	seen    pglogrepl.LSN
	changes []Change
	commit  int
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

	// generatedColumns lists what pgoutput leaves out of its rows.
	generatedColumns = `SELECT a.attrelid, a.attname, a.atttypid, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attgenerated <> '' AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`
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
	j.feed.mu.Lock()
	defer j.feed.mu.Unlock()
	return end != j.feed.seen, nil
}

// Mark forgets all changes up to now.
func (j *Judge) Mark(ctx context.Context) error {
	f := &j.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	end, err := f.flushedEnd(ctx)
	if err != nil {
		return err
	}
	if end.confirmed < end.flushed {
		if _, err := queryAll(ctx, f.conn, []Statement{{SQL: skipChanges}}); err != nil {
			return fault.Wrap(fault.WorldLost, err, "skip row changes")
		}
	}
	f.seen, f.changes, f.commit = end.inserted, nil, 0
	return nil
}

// Changes reads what was committed since the last call and returns everything since Mark.
func (j *Judge) Changes(ctx context.Context) ([]Change, error) {
	f := &j.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	end, err := f.flushedEnd(ctx)
	if err != nil {
		return nil, err
	}
	if end.inserted != f.seen {
		if err := f.take(ctx); err != nil {
			return nil, fault.Wrap(fault.WorldLost, err, "read row changes")
		}
		f.seen = end.inserted
	}
	return f.changes[:len(f.changes):len(f.changes)], nil
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
		if _, err := queryAll(ctx, f.conn, []Statement{{SQL: flushLog}}); err != nil {
			return end, fault.Wrap(fault.WorldLost, err, "flush the log")
		}
	}
	return end, nil
}

func (f *feed) end(ctx context.Context) (p logPosition, err error) {
	rows, err := queryAll(ctx, f.conn, []Statement{{SQL: logEnd}})
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

// take decodes the new part of the log. What it has read from the slot is gone from
// there, so a failure after that point loses the feed.
func (f *feed) take(ctx context.Context) error {
	raw, generated, err := f.decodeLog(ctx)
	if err != nil {
		return err
	}
	p := parser{feed: f, types: pgtype.NewMap(), relations: map[uint32]*pglogrepl.RelationMessage{}}
	first := len(f.changes)
	for _, msg := range raw {
		if err := p.message(msg); err != nil {
			return err
		}
	}
	if err := p.fillGenerated(ctx, f.changes[first:], generated); err != nil {
		return err
	}
	for i := range f.changes[first:] {
		c := &f.changes[first+i]
		c.Old, c.New = c.OldRow.values(p.types), c.NewRow.values(p.types)
	}
	return nil
}

// decodeLog gives the messages of the output plugin and the generated columns of all tables.
func (f *feed) decodeLog(ctx context.Context) (raw [][]byte, generated *Rows, err error) {
	batch := &pgconn.Batch{}
	batch.ExecParams(takeChanges, nil, nil, nil, []int16{pgtype.BinaryFormatCode})
	batch.ExecParams(generatedColumns, nil, nil, nil, nil)
	res := f.conn.ExecBatch(ctx, batch)
	for n := 0; res.NextResult(); n++ {
		r := res.ResultReader()
		if n == 1 {
			if generated, err = readRows(pgtype.NewMap(), r); err != nil {
				break
			}
			continue
		}
		for r.NextRow() {
			raw = append(raw, append([]byte(nil), r.Values()[0]...))
		}
		if _, err = r.Close(); err != nil {
			break
		}
	}
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, nil, classify(ctx, err)
	}
	return raw, generated, nil
}
