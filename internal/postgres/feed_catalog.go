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
func (f *feed) describe(ctx context.Context, description []byte) (*catalog, error) {
	if f.catalog != nil && f.catalog.known[string(description)] {
		return f.catalog, nil
	}
	rows, err := f.ask(ctx, generatedColumns, domains)
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
	if f.catalog != nil {
		c.known = f.catalog.known
	}
	c.known[string(description)] = true
	f.catalog = c
	return c, nil
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
