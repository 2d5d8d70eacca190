package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgtype"
)

// parser turns the output plugin's messages into changes. Relation messages come again
// in every decoding session, before the first row of their table.
type parser struct {
	feed      *feed
	types     *pgtype.Map
	relations map[uint32]*pglogrepl.RelationMessage
	// base maps domains to their base types.
	base map[uint32]uint32
	// begun is set between the start of a transaction and its first row: one without
	// rows (of temporary tables, or of DDL) is sent by some versions and has no number.
	begun bool
	// from are the relations of the parsed changes, for what comes after parsing.
	from []uint32
}

func (p *parser) message(raw []byte) error {
	msg, err := pglogrepl.Parse(raw)
	if err != nil {
		return fmt.Errorf("parse row change: %w", err)
	}
	switch m := msg.(type) {
	case *pglogrepl.BeginMessage:
		p.begun = true
	case *pglogrepl.RelationMessage:
		for _, c := range m.Columns {
			c.DataType = p.baseType(c.DataType)
		}
		p.relations[m.RelationID] = m
	case *pglogrepl.InsertMessage:
		return p.row("insert", m.RelationID, nil, m.Tuple)
	case *pglogrepl.UpdateMessage:
		return p.row("update", m.RelationID, m.OldTuple, m.NewTuple)
	case *pglogrepl.DeleteMessage:
		return p.row("delete", m.RelationID, m.OldTuple, nil)
	case *pglogrepl.TruncateMessage:
		for _, id := range m.RelationIDs {
			if err := p.row("truncate", id, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// baseType is the type itself, for a domain the type that it restricts.
func (p *parser) baseType(oid uint32) uint32 {
	if base, ok := p.base[oid]; ok {
		return base
	}
	return oid
}

func (p *parser) row(op string, relation uint32, before, after *pglogrepl.TupleData) error {
	rel, ok := p.relations[relation]
	if !ok {
		return fmt.Errorf("parse row change: relation %d was not described", relation)
	}
	if p.begun {
		p.begun = false
		p.feed.commit++
	}
	c := Change{Schema: rel.Namespace, Table: rel.RelationName, Op: op, Commit: p.feed.commit, Seq: len(p.feed.changes) + 1}
	var err error
	if before != nil {
		if c.OldRow, err = tuple(rel, before, Row{}); err != nil {
			return err
		}
	}
	if after != nil {
		if c.NewRow, err = tuple(rel, after, c.OldRow); err != nil {
			return err
		}
	}
	p.feed.changes = append(p.feed.changes, c)
	p.from = append(p.from, relation)
	return nil
}

// tuple reads one row. A large value that an update left alone is not sent again: it is
// taken from the old row, which REPLICA IDENTITY FULL makes complete.
func tuple(rel *pglogrepl.RelationMessage, t *pglogrepl.TupleData, old Row) (Row, error) {
	if len(t.Columns) != len(rel.Columns) {
		return Row{}, fmt.Errorf("parse row change: %s has %d columns, its row %d", rel.RelationName, len(rel.Columns), len(t.Columns))
	}
	row := Row{Columns: make([]Column, len(rel.Columns)), Text: make([]*string, len(rel.Columns))}
	for i, col := range rel.Columns {
		row.Columns[i] = Column{Name: col.Name, OID: col.DataType}
		switch cell := t.Columns[i]; cell.DataType {
		case pglogrepl.TupleDataTypeNull:
		case pglogrepl.TupleDataTypeText:
			s := string(cell.Data)
			row.Text[i] = &s
		case pglogrepl.TupleDataTypeToast:
			text, _, ok := old.Get(col.Name)
			if !ok {
				return Row{}, fmt.Errorf("parse row change: %s.%s was left out and no old row has it", rel.RelationName, col.Name)
			}
			row.Text[i] = text
		default:
			return Row{}, fmt.Errorf("parse row change: %s.%s has the unknown form %q", rel.RelationName, col.Name, cell.DataType)
		}
	}
	return row, nil
}

type generatedColumn struct {
	column Column
	expr   string
}

// fillGenerated computes the generated columns, which the output plugin leaves out. Their
// expressions are immutable, so computing them again gives what the table holds.
func (p *parser) fillGenerated(ctx context.Context, changes []Change, listed *Rows) error {
	byRelation := map[uint32][]generatedColumn{}
	for _, r := range listed.Text {
		relation, err1 := strconv.ParseUint(*r[0], 10, 32)
		oid, err2 := strconv.ParseUint(*r[2], 10, 32)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("list generated columns: %q and %q are no ids", *r[0], *r[2])
		}
		byRelation[uint32(relation)] = append(byRelation[uint32(relation)],
			generatedColumn{Column{Name: *r[1], OID: p.baseType(uint32(oid))}, *r[3]})
	}
	var statements []Statement
	var targets []*Row
	var columns [][]generatedColumn
	for i := range changes {
		missing := missingFrom(byRelation[p.from[i]], p.relations[p.from[i]])
		for _, row := range []*Row{&changes[i].OldRow, &changes[i].NewRow} {
			if row.Columns == nil || len(missing) == 0 {
				continue
			}
			s, err := generatedQuery(p.relations[p.from[i]], *row, missing)
			if err != nil {
				return err
			}
			statements, targets, columns = append(statements, s), append(targets, row), append(columns, missing)
		}
	}
	if len(statements) == 0 {
		return nil
	}
	got, err := queryAll(ctx, p.feed.line.conn, statements)
	if err != nil {
		return fmt.Errorf("compute generated columns: %w", err)
	}
	for i, row := range targets {
		for k, g := range columns[i] {
			row.Columns = append(row.Columns, g.column)
			row.Text = append(row.Text, got[i].Text[0][k])
		}
	}
	return nil
}

// missingFrom leaves out what the plugin did send: newer servers can publish some.
func missingFrom(all []generatedColumn, rel *pglogrepl.RelationMessage) []generatedColumn {
	var out []generatedColumn
	for _, g := range all {
		sent := false
		for _, c := range rel.Columns {
			sent = sent || c.Name == g.column.Name
		}
		if !sent {
			out = append(out, g)
		}
	}
	return out
}

func generatedQuery(rel *pglogrepl.RelationMessage, row Row, missing []generatedColumn) (Statement, error) {
	text, err := row.JSON()
	if err != nil {
		return Statement{}, err
	}
	exprs := make([]string, len(missing))
	for i, g := range missing {
		exprs[i] = "(" + g.expr + ")"
	}
	table := quoteIdent(rel.Namespace) + "." + quoteIdent(rel.RelationName)
	return Statement{
		SQL:  "SELECT " + strings.Join(exprs, ", ") + " FROM jsonb_populate_record(NULL::" + table + ", $1::jsonb) AS " + quoteIdent(rel.RelationName),
		Args: []any{text},
	}, nil
}
