package task

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
)

// stream is the random stream of one parameter. It hangs on nothing but the three
// keys, so neither other parameters nor their order shift it.
func stream(taskID, param string, seed int64) *rand.Rand {
	h := sha256.New()
	for _, part := range []string{"pommel parameter 1", taskID, param} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	var s [8]byte
	binary.BigEndian.PutUint64(s[:], uint64(seed))
	h.Write(s[:])
	return rand.New(rand.NewChaCha8([32]byte(h.Sum(nil))))
}

// draw takes the value of the next parameter.
func (in *instantiator) draw(ctx context.Context, p Param) error {
	rng := stream(in.spec.ID, p.Name, in.seed)
	path := "params." + p.Name
	var v Value
	switch {
	case p.Query != "":
		return in.drawRow(ctx, path+".query", p, rng)
	case p.Value != "":
		return in.drawValue(ctx, path+".value", p)
	case p.Int != nil:
		v = Value{Kind: Int, Text: fmt.Sprint(between(rng, p.Int[0], p.Int[1]))}
	case p.Choice != nil:
		f := filler{in: in}
		if v = f.value(path+".choice", p.Choice[rng.IntN(len(p.Choice))]); f.err != nil {
			return f.err
		}
	case p.Token > 0:
		v = TextValue(token(rng, p.Token))
	}
	in.drawn = append(in.drawn, Drawn{Name: p.Name, Fields: []Field{{Name: p.Name, Value: v}}})
	return nil
}

// between is uniform over lo..hi, also when that is the whole range of int64.
func between(rng *rand.Rand, lo, hi int64) int64 {
	span := uint64(hi) - uint64(lo)
	if span == ^uint64(0) {
		return int64(rng.Uint64())
	}
	return int64(uint64(lo) + rng.Uint64N(span+1))
}

func token(rng *rand.Rand, digits int) string {
	raw := make([]byte, (digits+1)/2)
	for i := range raw {
		raw[i] = byte(rng.Uint32())
	}
	return hex.EncodeToString(raw)[:digits]
}

func (in *instantiator) drawRow(ctx context.Context, path string, p Param, rng *rand.Rand) error {
	rows, err := in.query(ctx, path, p.Query)
	if err != nil {
		return err
	}
	src := in.spec.src
	if len(rows.Text) == 0 {
		return withHint(src.errorf(path, "the query gives no row to choose from%s", in.context()), "seed the world so that there is one, or narrow the parameters before it")
	}
	if len(rows.Text) > 1 && !scanSQL(p.Query).ordered() {
		return withHint(src.errorf(path, "the query gives %d rows in no defined order", len(rows.Text)), "add ORDER BY, so that the same seed always chooses the same row")
	}
	d := Drawn{Name: p.Name, Row: true}
	row := rows.Text[rng.IntN(len(rows.Text))]
	for i, c := range rows.Columns {
		d.Fields = append(d.Fields, Field{Name: c.Name, Value: FromSQL(c.OID, row[i])})
	}
	in.drawn = append(in.drawn, d)
	return nil
}

func (in *instantiator) drawValue(ctx context.Context, path string, p Param) error {
	rows, err := in.query(ctx, path, p.Value)
	if err != nil {
		return err
	}
	if len(rows.Text) != 1 || len(rows.Columns) != 1 {
		return in.spec.src.errorf(path, "expected one row with one column, got %d rows with %d columns%s", len(rows.Text), len(rows.Columns), in.context())
	}
	v := FromSQL(rows.Columns[0].OID, rows.Text[0][0])
	in.drawn = append(in.drawn, Drawn{Name: p.Name, Fields: []Field{{Name: p.Name, Value: v}}})
	return nil
}

func (in *instantiator) query(ctx context.Context, path, sql string) (*postgres.Rows, error) {
	f := filler{in: in}
	st := f.statement(path, sql)
	if f.err != nil {
		return nil, f.err
	}
	if in.db == nil {
		return nil, fault.New(fault.Internal, "parameters with queries need a database")
	}
	rows, err := in.db.Query(ctx, st.SQL, st.Args...)
	if err != nil {
		return nil, in.spec.sqlError(path, sql, err)
	}
	return rows, nil
}

// lookup is the value of a reference.
func (in *instantiator) lookup(r reference) (Value, error) {
	for _, d := range in.drawn {
		if d.Name != r.Name {
			continue
		}
		if r.Column == "" {
			if v, ok := d.Value(); ok {
				return v, nil
			}
			return Value{}, fmt.Errorf("%s is a row with %d columns; write %s", r, len(d.Fields), columnsHint(d))
		}
		for _, f := range d.Fields {
			if f.Name == r.Column {
				return f.Value, nil
			}
		}
		return Value{}, fmt.Errorf("%s: the query of %s has no column %q; write %s", r, r.Name, r.Column, columnsHint(d))
	}
	return Value{}, fmt.Errorf("%s names no parameter that stands before it", r)
}

func columnsHint(d Drawn) string {
	var names []string
	for _, f := range d.Fields {
		names = append(names, "${"+d.Name+"."+f.Name+"}")
	}
	return orList(names)
}

// context shows the parameters that were drawn so far.
func (in *instantiator) context() string {
	var parts []string
	for _, d := range in.drawn {
		for _, f := range d.Fields {
			name := d.Name
			if d.Row {
				name += "." + f.Name
			}
			parts = append(parts, name+" = "+f.Value.String())
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (with " + strings.Join(parts, ", ") + ")"
}

// FromSQL makes a Value of one cell as PostgreSQL writes it.
func FromSQL(oid uint32, cell *string) Value {
	if cell == nil {
		return Value{Kind: Null}
	}
	switch oid {
	case pgtype.BoolOID:
		return Value{Kind: Bool, Text: strconv.FormatBool(*cell == "t")}
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		return Value{Kind: Int, Text: *cell}
	case pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID:
		return Value{Kind: Float, Text: *cell}
	}
	return TextValue(*cell)
}
