package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pommelgym/pommel/internal/fault"
)

// feed is the client's side of the row-change feed.
type feed struct {
	// seen is the end of the log when the feed was last read.
	seen    pglogrepl.LSN
	changes []Change
	commit  int
}

const (
	logEnd = `SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()`

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
	j.mu.Lock()
	defer j.mu.Unlock()
	end, _, err := j.end(ctx)
	return end != j.feed.seen, err
}

// end is how far the log was written and how far it was flushed.
func (j *Judge) end(ctx context.Context) (inserted, flushed pglogrepl.LSN, err error) {
	rows, err := queryAll(ctx, j.conn, []Statement{{SQL: logEnd}})
	if err != nil {
		return 0, 0, err
	}
	return parseEnd(rows[0])
}

func parseEnd(rows *Rows) (inserted, flushed pglogrepl.LSN, err error) {
	if inserted, err = pglogrepl.ParseLSN(*rows.Text[0][0]); err != nil {
		return 0, 0, fmt.Errorf("read the end of the log: %w", err)
	}
	if flushed, err = pglogrepl.ParseLSN(*rows.Text[0][1]); err != nil {
		return 0, 0, fmt.Errorf("read the end of the log: %w", err)
	}
	return inserted, flushed, nil
}

// Mark forgets all changes up to now.
func (j *Judge) Mark(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	end, err := j.flushedEnd(ctx)
	if err != nil {
		return err
	}
	if _, err := queryAll(ctx, j.conn, []Statement{{SQL: skipChanges}}); err != nil {
		return fault.Wrap(fault.WorldLost, err, "skip row changes")
	}
	j.feed = feed{seen: end}
	return nil
}

// flushedEnd is the end of the log, once all of it is flushed.
func (j *Judge) flushedEnd(ctx context.Context) (pglogrepl.LSN, error) {
	const tries = 5
	var end pglogrepl.LSN
	for range tries {
		inserted, flushed, err := j.end(ctx)
		if err != nil {
			return 0, fault.Wrap(fault.WorldLost, err, "read the end of the log")
		}
		if end = inserted; flushed >= inserted {
			break
		}
		if _, err := queryAll(ctx, j.conn, []Statement{{SQL: flushLog}}); err != nil {
			return 0, fault.Wrap(fault.WorldLost, err, "flush the log")
		}
	}
	return end, nil
}

// Changes reads what was committed since the last call and returns everything since Mark.
func (j *Judge) Changes(ctx context.Context) ([]Change, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	end, err := j.flushedEnd(ctx)
	if err != nil {
		return nil, err
	}
	if end != j.feed.seen {
		if err := j.take(ctx); err != nil {
			return nil, fault.Wrap(fault.WorldLost, err, "read row changes")
		}
		j.feed.seen = end
	}
	return j.feed.changes[:len(j.feed.changes):len(j.feed.changes)], nil
}

// take decodes the new part of the log. What it has read from the slot is gone from
// there, so a failure after that point loses the feed.
func (j *Judge) take(ctx context.Context) error {
	raw, generated, err := j.decodeLog(ctx)
	if err != nil {
		return err
	}
	p := parser{feed: &j.feed, types: pgtype.NewMap(), relations: map[uint32]*pglogrepl.RelationMessage{}}
	first := len(j.feed.changes)
	for _, msg := range raw {
		if err := p.message(msg); err != nil {
			return err
		}
	}
	if err := j.fillGenerated(ctx, p, j.feed.changes[first:], generated); err != nil {
		return err
	}
	for i := range j.feed.changes[first:] {
		c := &j.feed.changes[first+i]
		c.Old, c.New = c.OldRow.values(p.types), c.NewRow.values(p.types)
	}
	return nil
}

// decodeLog gives the messages of the output plugin and the generated columns of all tables.
func (j *Judge) decodeLog(ctx context.Context) (raw [][]byte, generated *Rows, err error) {
	batch := &pgconn.Batch{}
	batch.ExecParams(takeChanges, nil, nil, nil, []int16{pgtype.BinaryFormatCode})
	batch.ExecParams(generatedColumns, nil, nil, nil, nil)
	res := j.conn.ExecBatch(ctx, batch)
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
