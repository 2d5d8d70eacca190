// Package cell compares one cell of an SQL result with the value that a task expects.
//
// The type of the column decides: numbers compare by value (198.0 equals 198.00),
// timestamps with a zone as instants, dates as dates, JSON by value with its lists
// in order, text exactly. NULL equals NULL, and the empty text is not NULL. Modes
// loosen the comparison where a task asks for it.
package cell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// Want is an expected value.
type Want struct {
	Null bool
	// Text is a scalar as the author wrote it.
	Text string
	// Doc is a list or a mapping, as encoding/json with json.Number has it; Structured says that it is set.
	Doc        any
	Structured bool
}

// Modes are the modes of comparison of a column.
type Modes struct {
	CI, Trim, Regex, Contains, BlankIsNull, Set bool
}

// ParseModes reads the words that a task file uses.
func ParseModes(words ...string) Modes {
	has := func(w string) bool { return slices.Contains(words, w) }
	return Modes{CI: has("ci"), Trim: has("trim"), Regex: has("regex"), Contains: has("contains"), BlankIsNull: has("blank_is_null"), Set: has("set")}
}

// Equal says whether a cell, as PostgreSQL writes it, is what is wanted. The error is
// about the wanted value: it is none of the column's type.
func Equal(oid uint32, got *string, want Want, m Modes) (bool, error) {
	if m.BlankIsNull {
		got, want = blankToNull(got, want)
	}
	if want.Null || got == nil {
		return want.Null && got == nil, nil
	}
	switch oid {
	case pgtype.BoolOID:
		return equalBool(*got, want)
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.OIDOID:
		return equalNumber(*got, want)
	case pgtype.Float4OID, pgtype.Float8OID:
		return equalFloat(*got, want, oid == pgtype.Float4OID)
	case pgtype.DateOID:
		return equalTime(*got, want, dateLayouts, "a date, as 2024-03-10")
	case pgtype.TimestampOID:
		return equalTime(*got, want, timestampLayouts, "a date and time without a zone, as 2024-03-10 02:30:00")
	case pgtype.TimeOID:
		return equalTime(*got, want, timeLayouts, "a time of day, as 02:30:00")
	case pgtype.TimestamptzOID:
		return equalInstant(*got, want)
	case pgtype.JSONOID, pgtype.JSONBOID:
		return equalJSON(*got, want, m)
	case pgtype.UUIDOID:
		return strings.EqualFold(*got, strings.Trim(want.Text, "{}")), structured(want, "a UUID")
	case pgtype.ByteaOID:
		return strings.EqualFold(*got, want.Text), structured(want, `bytes, as \x00ff`)
	}
	if want.Structured {
		return equalArray(oid, *got, want, m)
	}
	if oid == pgtype.BPCharOID {
		// char(n) pads with blanks, which do not count in SQL either.
		return equalText(strings.TrimRight(*got, " "), strings.TrimRight(want.Text, " "), m)
	}
	return equalText(*got, want.Text, m)
}

// Check says whether a wanted value can be compared with a column of the type at all.
func Check(oid uint32, want Want, m Modes) error {
	sample := sampleOf(oid)
	_, err := Equal(oid, &sample, want, m)
	return err
}

// sampleOf is some value of the type, as PostgreSQL writes it.
func sampleOf(oid uint32) string {
	switch oid {
	case pgtype.BoolOID:
		return "t"
	case pgtype.DateOID:
		return "2000-01-01"
	case pgtype.TimestampOID:
		return "2000-01-01 00:00:00"
	case pgtype.TimestamptzOID:
		return "2000-01-01 00:00:00+00"
	case pgtype.TimeOID:
		return "00:00:00"
	case pgtype.JSONOID, pgtype.JSONBOID, pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID,
		pgtype.OIDOID, pgtype.Float4OID, pgtype.Float8OID:
		return "0"
	}
	return "{}"
}

func blankToNull(got *string, want Want) (*string, Want) {
	if got != nil && strings.TrimSpace(*got) == "" {
		got = nil
	}
	if !want.Structured && strings.TrimSpace(want.Text) == "" {
		want = Want{Null: true}
	}
	return got, want
}

func structured(want Want, expected string) error {
	if want.Structured {
		return fmt.Errorf("expected %s, got a list or a mapping", expected)
	}
	return nil
}

func notA(want Want, expected string) error {
	if err := structured(want, expected); err != nil {
		return err
	}
	return fmt.Errorf("%q is not %s", want.Text, expected)
}

func equalBool(got string, want Want) (bool, error) {
	switch strings.ToLower(want.Text) {
	case "true", "t", "yes", "on", "1":
		return got == "t", structured(want, "true or false")
	case "false", "f", "no", "off", "0":
		return got == "f", structured(want, "true or false")
	}
	return false, notA(want, "true or false")
}

func equalText(got, want string, m Modes) (bool, error) {
	if m.Trim {
		got, want = strings.TrimSpace(got), strings.TrimSpace(want)
	}
	switch {
	case m.Regex:
		flags := "(?s)"
		if m.CI {
			flags = "(?si)"
		}
		re, err := regexp.Compile(flags + want)
		if err != nil {
			return false, fmt.Errorf("%q is not a regular expression: %w", want, err)
		}
		return re.MatchString(got), nil
	case m.Contains && m.CI:
		return strings.Contains(strings.ToLower(got), strings.ToLower(want)), nil
	case m.Contains:
		return strings.Contains(got, want), nil
	case m.CI:
		return strings.EqualFold(got, want), nil
	}
	return got == want, nil
}

// equalArray compares an SQL array with a list, element by element.
func equalArray(oid uint32, got string, want Want, m Modes) (bool, error) {
	items, ok := want.Doc.([]any)
	if !ok {
		return false, fmt.Errorf("expected a single value, got a mapping")
	}
	types := pgtype.NewMap()
	t, known := types.TypeForOID(oid)
	codec, isArray := arrayCodec(t, known)
	if !isArray {
		return false, fmt.Errorf("expected a single value, got a list")
	}
	var elements []*string
	if err := scanArray(got, &elements); err != nil {
		return false, nil
	}
	if len(elements) != len(items) {
		return false, nil
	}
	same := func(i, k int) (bool, error) { return Equal(codec.ElementType.OID, elements[i], fromJSON(items[k]), m) }
	if m.Set {
		return Bag(len(items), same)
	}
	for i := range items {
		if ok, err := same(i, i); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func arrayCodec(t *pgtype.Type, known bool) (*pgtype.ArrayCodec, bool) {
	if !known {
		return nil, false
	}
	c, ok := t.Codec.(*pgtype.ArrayCodec)
	return c, ok
}

// scanArray reads the elements of a one-dimensional array as text.
func scanArray(text string, into *[]*string) error {
	types := pgtype.NewMap()
	return types.Scan(pgtype.TextArrayOID, pgtype.TextFormatCode, []byte(text), into)
}
