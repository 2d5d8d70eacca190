package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pommelgym/pommel/internal/fault"
)

// feed is the client's side of the row-change feed. Its fields are used by whoever holds the line.
type feed struct {
	line *line
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

	// domains maps a domain to its base type: pgoutput names columns by the domain.
	domains = `WITH RECURSIVE d(oid, base) AS (
	SELECT oid, typbasetype FROM pg_type WHERE typtype = 'd'
	UNION ALL SELECT d.oid, t.typbasetype FROM d JOIN pg_type t ON t.oid = d.base AND t.typtype = 'd')
SELECT d.oid, d.base FROM d JOIN pg_type t ON t.oid = d.base WHERE t.typtype <> 'd' AND d.oid >= 16384`
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
	f.seen, f.changes, f.commit = end.inserted, nil, 0
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
	end, err := f.flushedEnd(ctx)
	if err != nil || end.inserted == f.seen {
		return err
	}
	if err := f.take(ctx); err != nil {
		return fault.Wrap(fault.WorldLost, err, "read row changes")
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
		if _, err := queryAll(ctx, f.line.conn, []Statement{{SQL: flushLog}}); err != nil {
			return end, fault.Wrap(fault.WorldLost, err, "flush the log")
		}
	}
	return end, nil
}

func (f *feed) end(ctx context.Context) (p logPosition, err error) {
	rows, err := queryAll(ctx, f.line.conn, []Statement{{SQL: logEnd}})
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
	log, err := f.decodeLog(ctx)
	if err != nil {
		return err
	}
	p := parser{feed: f, types: pgtype.NewMap(), relations: map[uint32]*pglogrepl.RelationMessage{}}
	if p.base, err = idPairs(log.domains); err != nil {
		return err
	}
	first := len(f.changes)
	for _, msg := range log.messages {
		if err := p.message(msg); err != nil {
			return err
		}
	}
	if err := p.fillGenerated(ctx, f.changes[first:], log.generated); err != nil {
		return err
	}
	for i := range f.changes[first:] {
		c := &f.changes[first+i]
		c.Old, c.New = c.OldRow.values(p.types), c.NewRow.values(p.types)
	}
	return nil
}

// decodedLog is the new part of the log with what is needed to read it.
type decodedLog struct {
	// messages are those of the output plugin.
	messages [][]byte
	// generated lists the generated columns of all tables, domains the domains with their base types.
	generated, domains *Rows
}

func (f *feed) decodeLog(ctx context.Context) (*decodedLog, error) {
	batch := &pgconn.Batch{}
	batch.ExecParams(takeChanges, nil, nil, nil, []int16{pgtype.BinaryFormatCode})
	batch.ExecParams(generatedColumns, nil, nil, nil, nil)
	batch.ExecParams(domains, nil, nil, nil, nil)
	res := f.line.conn.ExecBatch(ctx, batch)
	log, err := readLog(res)
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, classify(err)
	}
	return log, nil
}

func readLog(res *pgconn.MultiResultReader) (*decodedLog, error) {
	log := &decodedLog{generated: &Rows{}, domains: &Rows{}}
	if res.NextResult() {
		r := res.ResultReader()
		for r.NextRow() {
			log.messages = append(log.messages, append([]byte(nil), r.Values()[0]...))
		}
		if _, err := r.Close(); err != nil {
			return nil, err
		}
	}
	for _, into := range []*Rows{log.generated, log.domains} {
		if !res.NextResult() {
			break
		}
		rows, err := readRows(pgtype.NewMap(), res.ResultReader())
		if err != nil {
			return nil, err
		}
		*into = *rows
	}
	return log, nil
}

// idPairs reads rows of two object ids.
func idPairs(rows *Rows) (map[uint32]uint32, error) {
	m := map[uint32]uint32{}
	for _, r := range rows.Text {
		var pair [2]uint32
		for i := range pair {
			id, err := strconv.ParseUint(*r[i], 10, 32)
			if err != nil {
				return nil, fmt.Errorf("read object id: %w", err)
			}
			pair[i] = uint32(id)
		}
		m[pair[0]] = pair[1]
	}
	return m, nil
}
