package postgres

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// encodeArgs writes parameters as text of unknown type: PostgreSQL infers the type.
func encodeArgs(args []any) ([][]byte, error) {
	out := make([][]byte, len(args))
	for i, a := range args {
		b, err := encodeArg(a)
		if err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
		out[i] = b
	}
	return out, nil
}

func encodeArg(a any) ([]byte, error) {
	switch v := a.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(v), nil
	case []byte:
		return []byte(`\x` + hex.EncodeToString(v)), nil
	case bool:
		return strconv.AppendBool(nil, v), nil
	case time.Time:
		return []byte(v.Format(time.RFC3339Nano)), nil
	case float32:
		return strconv.AppendFloat(nil, float64(v), 'g', -1, 32), nil
	case float64:
		return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Append(nil, v), nil
	case []string:
		return []byte(arrayLiteral(v)), nil
	case fmt.Stringer:
		return []byte(v.String()), nil
	}
	return nil, fmt.Errorf("cannot pass a %T to the database", a)
}

// arrayLiteral writes a text[] as PostgreSQL reads it.
func arrayLiteral(items []string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

// decode turns a cell into a Go value by its type; a type without a codec stays text.
func decode(types *pgtype.Map, oid uint32, text string) any {
	if oid == pgtype.JSONOID || oid == pgtype.JSONBOID {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			return v
		}
		return text
	}
	t, ok := types.TypeForOID(oid)
	if !ok {
		return text
	}
	v, err := t.Codec.DecodeValue(types, oid, pgtype.TextFormatCode, []byte(text))
	if err != nil {
		return text
	}
	return v
}

// QuoteTable quotes schema.table, or the name of a table of public, for use in SQL. The schema
// is always written: pg_catalog comes first and has types such as line and box.
func QuoteTable(name string) string {
	if schema, table, ok := strings.Cut(name, "."); ok {
		return quoteIdent(schema) + "." + quoteIdent(table)
	}
	return quoteIdent("public") + "." + quoteIdent(name)
}

// JSON writes the row as an object that jsonb_populate_record reads back exactly: each cell
// as the text that its type's input function takes, JSON itself as it is.
func (r Row) JSON() (string, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, c := range r.Columns {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(c.Name)
		if err != nil {
			return "", fmt.Errorf("write row: %w", err)
		}
		b.Write(name)
		b.WriteByte(':')
		switch {
		case r.Text[i] == nil:
			b.WriteString("null")
		case c.OID == pgtype.JSONOID || c.OID == pgtype.JSONBOID:
			b.WriteString(*r.Text[i])
		default:
			value, err := json.Marshal(*r.Text[i])
			if err != nil {
				return "", fmt.Errorf("write row: %w", err)
			}
			b.Write(value)
		}
	}
	b.WriteByte('}')
	return b.String(), nil
}

// Get is the cell of a column; ok is false when the row has no such column.
func (r Row) Get(column string) (text *string, oid uint32, ok bool) {
	for i, c := range r.Columns {
		if c.Name == column {
			return r.Text[i], c.OID, true
		}
	}
	return nil, 0, false
}

// values is the row as decoded Go values by column.
func (r Row) values(types *pgtype.Map) map[string]any {
	if r.Columns == nil {
		return nil
	}
	m := make(map[string]any, len(r.Columns))
	for i, c := range r.Columns {
		if r.Text[i] == nil {
			m[c.Name] = nil
			continue
		}
		m[c.Name] = decode(types, c.OID, *r.Text[i])
	}
	return m
}
