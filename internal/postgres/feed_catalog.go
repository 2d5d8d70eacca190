package postgres

import (
	"context"
	"fmt"
	"strconv"
)

const (
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

// catalog is what the feed must know about tables beyond what the output plugin says. It
// is read when a table is seen in a form that was not there when it was last read.
type catalog struct {
	generated map[uint32][]generatedColumn
	base      map[uint32]uint32
	// known are the plugin's descriptions of tables for which this was read.
	known map[string]bool
}

type generatedColumn struct {
	column Column
	expr   string
}

// describe gives the catalog in a state that knows a table's description.
func (p *parser) describe(ctx context.Context, description string) (*catalog, error) {
	if p.catalog != nil && p.catalog.known[description] {
		return p.catalog, nil
	}
	rows, err := p.feed.ask(ctx, generatedColumns, domains)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	c := &catalog{generated: map[uint32][]generatedColumn{}, base: map[uint32]uint32{}, known: map[string]bool{}}
	for _, r := range rows[1].Text {
		ids, err := objectIDs(r[0], r[1])
		if err != nil {
			return nil, err
		}
		c.base[ids[0]] = ids[1]
	}
	for _, r := range rows[0].Text {
		ids, err := objectIDs(r[0], r[2])
		if err != nil {
			return nil, err
		}
		g := generatedColumn{Column{Name: *r[1], OID: c.baseType(ids[1])}, *r[3]}
		c.generated[ids[0]] = append(c.generated[ids[0]], g)
	}
	if p.catalog != nil {
		c.known = p.catalog.known
	}
	c.known[description] = true
	p.catalog = c
	return c, nil
}

// lookUp describes a table from the catalog. The server describes each table once in a
// stream's life; after it was put back it may take for known what this side has forgotten.
func (p *parser) lookUp(ctx context.Context, id uint32) (*relation, error) {
	cat, err := p.describe(ctx, fmt.Sprint("table ", id))
	if err != nil {
		return nil, err
	}
	rows, err := p.feed.askAll(ctx, []Statement{
		{SQL: "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1", Args: []any{id}},
		{SQL: "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum", Args: []any{id}},
	})
	if err != nil {
		return nil, fmt.Errorf("look up table %d: %w", id, err)
	}
	if len(rows[0].Text) != 1 {
		return nil, fmt.Errorf("table %d has changed rows but is not in the catalog", id)
	}
	r := &relation{schema: *rows[0].Text[0][0], name: *rows[0].Text[0][1], generated: cat.generated[id]}
	for _, c := range rows[1].Text {
		ids, err := objectIDs(c[1])
		if err != nil {
			return nil, err
		}
		r.columns = append(r.columns, Column{Name: *c[0], OID: cat.baseType(ids[0])})
	}
	return r, nil
}

// baseType is the type itself, for a domain the type that it restricts.
func (c *catalog) baseType(oid uint32) uint32 {
	if base, ok := c.base[oid]; ok {
		return base
	}
	return oid
}

func objectIDs(cells ...*string) ([]uint32, error) {
	out := make([]uint32, len(cells))
	for i, cell := range cells {
		id, err := strconv.ParseUint(*cell, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read object id: %w", err)
		}
		out[i] = uint32(id)
	}
	return out, nil
}
