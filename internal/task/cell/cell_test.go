package cell

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"
)

func doc(t *testing.T, text string) Want {
	t.Helper()
	v, ok := parseJSON(text)
	if !ok {
		t.Fatalf("%s is not JSON", text)
	}
	return Want{Doc: v, Structured: true}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	text := func(s string) Want { return Want{Text: s} }
	null := Want{Null: true}
	for _, c := range []struct {
		name  string
		oid   uint32
		got   string // NULL is no value
		want  Want
		modes string
		equal bool
	}{
		{"NULL is NULL", pgtype.TextOID, "NULL", null, "", true},
		{"NULL is not empty", pgtype.TextOID, "NULL", text(""), "", false},
		{"empty is not NULL", pgtype.TextOID, "", null, "", false},
		{"blank is NULL if asked", pgtype.TextOID, " ", null, "blank_is_null", true},
		{"NULL is blank if asked", pgtype.TextOID, "NULL", text(""), "blank_is_null", true},
		{"NULL is no number", pgtype.Int4OID, "NULL", text("0"), "", false},
		{"numeric by value", pgtype.NumericOID, "198.00", text("198.0"), "", true},
		{"numeric exactly", pgtype.NumericOID, "0.1", text("0.10000000000000000000001"), "", false},
		{"numeric with an exponent", pgtype.NumericOID, "1000", text("1e3"), "", true},
		{"numeric beyond floats", pgtype.NumericOID, "9007199254740993", text("9007199254740992"), "", false},
		{"NaN", pgtype.NumericOID, "NaN", text("nan"), "", true},
		{"int", pgtype.Int8OID, "-7", text("-7"), "", true},
		{"int and a fraction", pgtype.Int4OID, "7", text("7.0"), "", true},
		{"float", pgtype.Float8OID, "0.1", text("0.10"), "", true},
		{"real has few digits", pgtype.Float4OID, "0.1", text("0.1"), "", true},
		{"bool", pgtype.BoolOID, "t", text("true"), "", true},
		{"bool otherwise", pgtype.BoolOID, "f", text("yes"), "", false},
		{"text exactly", pgtype.TextOID, "Abc", text("abc"), "", false},
		{"text in any case", pgtype.TextOID, "ÀBC", text("àbc"), "ci", true},
		{"text trimmed", pgtype.TextOID, " abc\n", text("abc"), "trim", true},
		{"text contains", pgtype.TextOID, "xABCx", text("abc"), "ci contains", true},
		{"text matches", pgtype.TextOID, "ab\ncd", text("^ab.cd$"), "regex", true},
		{"text does not match", pgtype.TextOID, "abcd", text("^bc"), "regex", false},
		{"the text of a number", pgtype.TextOID, "0170", text("170"), "", false},
		{"char(n)", pgtype.BPCharOID, "ab   ", text("ab"), "", true},
		{"date", pgtype.DateOID, "2022-01-01", text("2022-01-01"), "", true},
		{"another date", pgtype.DateOID, "2022-01-02", text("2022-01-01"), "", false},
		{"a date BC", pgtype.DateOID, "0044-03-15 BC", text("2022-01-01"), "", false},
		{"timestamp", pgtype.TimestampOID, "2022-01-01 10:00:00", text("2022-01-01T10:00"), "", true},
		{"time", pgtype.TimeOID, "10:30:00", text("10:30"), "", true},
		{"instant in another zone", pgtype.TimestamptzOID, "2024-03-10 07:30:00+00", text("2024-03-10T03:30:00-04:00"), "", true},
		{"instant by the name of a zone", pgtype.TimestamptzOID, "2024-03-10 07:30:00+00", text("2024-03-10 03:30 America/New_York"), "", true},
		{"instant with parts of a second", pgtype.TimestamptzOID, "2024-03-10 07:30:00.25+00", text("2024-03-10T07:30:00.250Z"), "", true},
		{"another instant", pgtype.TimestamptzOID, "2024-03-10 07:30:00+00", text("2024-03-10T07:30:00-04:00"), "", false},
		{"infinity", pgtype.TimestamptzOID, "infinity", text("infinity"), "", true},
		{"uuid", pgtype.UUIDOID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", text("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"), "", true},
		{"bytes", pgtype.ByteaOID, `\x00ff`, text(`\x00FF`), "", true},
		{"json by value", pgtype.JSONBOID, `{"b": [1, 2], "a": 1.0}`, doc(t, `{"a": 1, "b": [1, 2]}`), "", true},
		{"json written as text", pgtype.JSONOID, `{"a":1}`, text(`{"a": 1}`), "", true},
		{"json text", pgtype.JSONBOID, `"abc"`, text(`abc`), "", true},
		{"json lists are ordered", pgtype.JSONBOID, `[1, 2]`, doc(t, `[2, 1]`), "", false},
		{"json lists as sets", pgtype.JSONBOID, `[1, 2, 2]`, doc(t, `[2, 1, 2]`), "set", true},
		{"json sets are bags", pgtype.JSONBOID, `[1, 1, 2]`, doc(t, `[2, 1, 2]`), "set", false},
		{"json null is not NULL", pgtype.JSONBOID, `null`, null, "", false},
		{"json one key more", pgtype.JSONBOID, `{"a": 1, "b": null}`, doc(t, `{"a": 1}`), "", false},
		{"json number and text", pgtype.JSONBOID, `1`, text(`"1"`), "", false},
		{"array", pgtype.TextArrayOID, `{a,"b c",NULL}`, doc(t, `["a", "b c", null]`), "", true},
		{"array of numbers", pgtype.NumericArrayOID, `{1.0,2}`, doc(t, `[1, 2.00]`), "", true},
		{"array in another order", pgtype.Int4ArrayOID, `{1,2}`, doc(t, `[2, 1]`), "", false},
		{"array as a set", pgtype.Int4ArrayOID, `{1,2}`, doc(t, `[2, 1]`), "set", true},
		{"array as text", pgtype.TextArrayOID, `{a,b}`, text(`{a,b}`), "", true},
		{"an unknown type", 99999, "placed", text("placed"), "", true},
	} {
		got := &c.got
		if c.got == "NULL" {
			got = nil
		}
		equal, err := Equal(c.oid, got, c.want, ParseModes(strings.Fields(c.modes)...))
		if err != nil || equal != c.equal {
			t.Errorf("%s: %v, %v, want %v", c.name, equal, err, c.equal)
		}
		if err := Check(c.oid, c.want, ParseModes(strings.Fields(c.modes)...)); err != nil {
			t.Errorf("%s: the wanted value is refused: %v", c.name, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		oid        uint32
		want, says string
	}{
		{pgtype.Int4OID, "many", "is not a number"}, {pgtype.NumericOID, "1,000", "is not a number"}, {pgtype.Float8OID, "x", "is not a number"},
		{pgtype.BoolOID, "maybe", "is not true or false"}, {pgtype.DateOID, "10/21/2023", "is not a date, as 2024-03-10"},
		{pgtype.TimestampOID, "2024-03-10T02:30Z", "without a zone"}, {pgtype.TimeOID, "noon", "is not a time of day"},
		{pgtype.TimestamptzOID, "2024-03-10 02:30", "names no time zone"}, {pgtype.TimestamptzOID, "2024-03-10", "names no time zone"},
		{pgtype.TimestamptzOID, "2024-03-10 02:30 America/New_York", "never show"}, {pgtype.TimestamptzOID, "2024-11-03 01:30 America/New_York", "twice"},
		{pgtype.TimestamptzOID, "2024-11-03 01:30 America/Atlantis", "unknown time zone"},
	} {
		if err := Check(c.oid, Want{Text: c.want}, Modes{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", c.want, err, c.says)
		}
	}
	for _, oid := range []uint32{pgtype.Int4OID, pgtype.BoolOID, pgtype.DateOID, pgtype.TimestamptzOID, pgtype.UUIDOID, pgtype.TextOID} {
		if Check(oid, doc(t, "[1]"), Modes{}) == nil {
			t.Errorf("a list is compared with type %d", oid)
		}
	}
	if Check(pgtype.TextOID, Want{Text: "("}, Modes{Regex: true}) == nil {
		t.Error("a broken pattern is accepted")
	}
}

// TestBags: rows in any order are the same bag, one more or another is not.
func TestBags(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 8).Draw(t, "a")
		b := rapid.Permutation(a).Draw(t, "b")
		same := func(i, j int) (bool, error) { return a[i] == b[j], nil }
		if ok, err := Bag(len(a), same); !ok || err != nil {
			t.Fatalf("%v and %v: %v, %v", a, b, ok, err)
		}
		if len(a) > 0 {
			b[0] = 9
			if ok, _ := Bag(len(a), same); ok {
				t.Fatalf("%v and %v are one bag", a, b)
			}
		}
	})
}

// TestPairsAreMany: the search finds as many pairs as there are, whatever the order.
func TestPairsAreMany(t *testing.T) {
	t.Parallel()
	// Wanted 0 fits only seen 0, which wanted 1 fits too.
	fits := [][]bool{{true, false}, {true, true}}
	pairs, err := Pairs(2, 2, func(i, j int) (bool, error) { return fits[j][i], nil })
	if err != nil || pairs[0] != 0 || pairs[1] != 1 {
		t.Errorf("pairs %v, %v", pairs, err)
	}
}

// FuzzEqual: no cell and no wanted value break a comparison, and a cell equals itself.
func FuzzEqual(f *testing.F) {
	for _, s := range []string{"1.5", "2024-03-10 02:30 America/New_York", `{"a": [1]}`, "{a,b}", "1e999999999", "infinity", ""} {
		f.Add(s, s)
	}
	oids := []uint32{pgtype.TextOID, pgtype.BoolOID, pgtype.NumericOID, pgtype.Float8OID, pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID,
		pgtype.TimeOID, pgtype.JSONBOID, pgtype.UUIDOID, pgtype.ByteaOID, pgtype.TextArrayOID, pgtype.BPCharOID}
	f.Fuzz(func(t *testing.T, got, want string) {
		for _, oid := range oids {
			for _, m := range []Modes{{}, {CI: true, Trim: true}, {Contains: true}, {BlankIsNull: true}, {Set: true}} {
				_, _ = Equal(oid, &got, Want{Text: want}, m)
				var v any
				if json.Unmarshal([]byte(want), &v) == nil {
					_, _ = Equal(oid, &got, Want{Doc: v, Structured: true}, m)
				}
			}
		}
		if ok, err := Equal(pgtype.TextOID, &got, Want{Text: got}, Modes{}); !ok || err != nil {
			t.Errorf("%q does not equal itself: %v", got, err)
		}
	})
}
