package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgtype"
)

// parser turns the output plugin's messages into changes.
type parser struct {
	feed      *feed
	types     *pgtype.Map
	relations map[uint32]*relation
	catalog   *catalog
	// begun is set between the start of a transaction and its first row: one without
	// rows (of temporary tables, or of DDL) is sent by some versions and has no number.
	begun bool
	// from are the relations of the changes that finish has not seen yet.
	from []*relation
}

// relation is a table as the plugin describes it, with the columns that it leaves out.
type relation struct {
	schema, name string
	columns      []Column
	generated    []generatedColumn
}

func (p *parser) message(ctx context.Context, raw []byte) error {
	msg, err := pglogrepl.Parse(raw)
	if err != nil {
		return fmt.Errorf("parse row change: %w", err)
	}
	switch m := msg.(type) {
	case *pglogrepl.BeginMessage:
		p.begun = true
	case *pglogrepl.RelationMessage:
		return p.relation(ctx, m, raw)
	case *pglogrepl.InsertMessage:
		return p.row(ctx, "insert", m.RelationID, nil, m.Tuple)
	case *pglogrepl.UpdateMessage:
		return p.row(ctx, "update", m.RelationID, m.OldTuple, m.NewTuple)
	case *pglogrepl.DeleteMessage:
		return p.row(ctx, "delete", m.RelationID, m.OldTuple, nil)
	case *pglogrepl.TruncateMessage:
		for _, id := range m.RelationIDs {
			if err := p.row(ctx, "truncate", id, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *parser) relation(ctx context.Context, m *pglogrepl.RelationMessage, raw []byte) error {
	cat, err := p.describe(ctx, string(raw))
	if err != nil {
		return err
	}
	r := &relation{schema: m.Namespace, name: m.RelationName}
	sent := map[string]bool{}
	for _, c := range m.Columns {
		sent[c.Name] = true
		r.columns = append(r.columns, Column{Name: c.Name, OID: cat.baseType(c.DataType)})
	}
	for _, g := range cat.generated[m.RelationID] {
		// Newer servers can be told to send them.
		if !sent[g.column.Name] {
			r.generated = append(r.generated, g)
		}
	}
	p.relations[m.RelationID] = r
	return nil
}

func (p *parser) row(ctx context.Context, op string, id uint32, before, after *pglogrepl.TupleData) error {
	rel, ok := p.relations[id]
	if !ok {
		var err error
		if rel, err = p.lookUp(ctx, id); err != nil {
			return err
		}
		p.relations[id] = rel
	}
	if p.begun {
		p.begun = false
		p.feed.commit++
	}
	c := Change{Schema: rel.schema, Table: rel.name, Op: op, Commit: p.feed.commit, Seq: len(p.feed.changes) + 1}
	var err error
	if before != nil {
		if c.OldRow, err = rel.tuple(before, Row{}); err != nil {
			return err
		}
	}
	if after != nil {
		if c.NewRow, err = rel.tuple(after, c.OldRow); err != nil {
			return err
		}
	}
	p.feed.changes = append(p.feed.changes, c)
	p.from = append(p.from, rel)
	return nil
}

// tuple reads one row. A large value that an update left alone is not sent again: it is
// taken from the old row, which REPLICA IDENTITY FULL makes complete.
func (r *relation) tuple(t *pglogrepl.TupleData, old Row) (Row, error) {
	if len(t.Columns) != len(r.columns) {
		return Row{}, fmt.Errorf("parse row change: %s has %d columns, its row %d", r.name, len(r.columns), len(t.Columns))
	}
	row := Row{Columns: r.columns[:len(r.columns):len(r.columns)], Text: make([]*string, len(r.columns))}
	for i, col := range r.columns {
		switch cell := t.Columns[i]; cell.DataType {
		case pglogrepl.TupleDataTypeNull:
		case pglogrepl.TupleDataTypeText:
			s := string(cell.Data)
			row.Text[i] = &s
		case pglogrepl.TupleDataTypeToast:
			text, _, ok := old.Get(col.Name)
			if !ok {
				return Row{}, fmt.Errorf("parse row change: %s.%s was left out and no old row has it", r.name, col.Name)
			}
			row.Text[i] = text
		default:
			return Row{}, fmt.Errorf("parse row change: %s.%s has the unknown form %q", r.name, col.Name, cell.DataType)
		}
	}
	return row, nil
}

// finish completes the changes from number first on, once their messages are all there.
func (p *parser) finish(ctx context.Context, first int) error {
	changes := p.feed.changes[first:]
	if err := p.fillGenerated(ctx, changes); err != nil {
		return err
	}
	for i := range changes {
		changes[i].Old, changes[i].New = changes[i].OldRow.values(p.types), changes[i].NewRow.values(p.types)
	}
	p.from = nil
	return nil
}

// fillGenerated computes the generated columns, which the output plugin leaves out. Their
// expressions are immutable, so computing them again gives what the table holds.
func (p *parser) fillGenerated(ctx context.Context, changes []Change) error {
	var statements []Statement
	var targets []*Row
	var columns [][]generatedColumn
	for i := range changes {
		rel := p.from[i]
		for _, row := range []*Row{&changes[i].OldRow, &changes[i].NewRow} {
			if row.Columns == nil || len(rel.generated) == 0 {
				continue
			}
			s, err := rel.generatedQuery(*row)
			if err != nil {
				return err
			}
			statements, targets, columns = append(statements, s), append(targets, row), append(columns, rel.generated)
		}
	}
	if len(statements) == 0 {
		return nil
	}
	got, err := p.feed.askAll(ctx, statements)
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

func (r *relation) generatedQuery(row Row) (Statement, error) {
	text, err := row.JSON()
	if err != nil {
		return Statement{}, err
	}
	exprs := make([]string, len(r.generated))
	for i, g := range r.generated {
		exprs[i] = "(" + g.expr + ")"
	}
	return Statement{
		SQL: "SELECT " + strings.Join(exprs, ", ") + " FROM jsonb_populate_record(NULL::" +
			quoteIdent(r.schema) + "." + quoteIdent(r.name) + ", $1::jsonb) AS " + quoteIdent(r.name),
		Args: []any{text},
	}, nil
}
