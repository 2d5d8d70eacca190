package answer

import (
	"math/big"
	"strings"
)

// unit is a unit of measure: 1 of it is factor of its dimension's base unit.
type unit struct {
	dimension string
	factor    string
	names     string
}

// units lists what is converted. Names are exact where case matters (MB, Mb), as written here.
var units = []unit{
	{"length", "0.001", "mm millimeter millimeters millimetre millimetres"},
	{"length", "0.01", "cm centimeter centimeters centimetre centimetres"},
	{"length", "1", "m meter meters metre metres"},
	{"length", "1000", "km kilometer kilometers kilometre kilometres"},
	{"length", "0.0254", `in inch inches " ″ ''`},
	{"length", "0.3048", "ft foot feet ' ′"},
	{"length", "0.9144", "yd yard yards"},
	{"length", "1609.344", "mi mile miles"},
	{"mass", "0.001", "mg milligram milligrams"},
	{"mass", "1", "g gram grams"},
	{"mass", "1000", "kg kilogram kilograms kilo kilos"},
	{"mass", "1000000", "t tonne tonnes"},
	{"mass", "28.349523125", "oz ounce ounces"},
	{"mass", "453.59237", "lb lbs pound pounds"},
	{"time", "0.001", "ms millisecond milliseconds"},
	{"time", "1", "s sec secs second seconds"},
	{"time", "60", "min mins minute minutes"},
	{"time", "3600", "h hr hrs hour hours"},
	{"time", "86400", "d day days"},
	{"time", "604800", "week weeks"},
	{"volume", "0.001", "ml mL milliliter milliliters millilitre millilitres"},
	{"volume", "1", "l L liter liters litre litres"},
	{"volume", "3.785411784", "gal gallon gallons"},
	{"data", "1", "B byte bytes"},
	{"data", "1000", "kB KB kilobyte kilobytes"},
	{"data", "1000000", "MB megabyte megabytes"},
	{"data", "1000000000", "GB gigabyte gigabytes"},
	{"data", "1000000000000", "TB terabyte terabytes"},
	{"data", "1024", "KiB"},
	{"data", "1048576", "MiB"},
	{"data", "1073741824", "GiB"},
}

// findUnit knows a unit by one of its names: exactly, else without regard to case for words.
func findUnit(name string) (unit, bool) {
	for _, u := range units {
		for _, n := range strings.Fields(u.names) {
			if n == name || len(n) > 2 && strings.EqualFold(n, name) {
				return u, true
			}
		}
	}
	return unit{}, false
}

// unitAfter is the unit that is written after a number.
func unitAfter(after string) string {
	s := strings.TrimLeft(after, " \u00a0\u202f-")
	for _, sign := range []string{"''", `"`, "″", "'", "′"} {
		if strings.HasPrefix(s, sign) {
			return sign
		}
	}
	return nextWord(after)
}

// unitMark: a unit of the same dimension is wanted, another is not, and a word that is no
// unit is no mark.
func (w Want) unitMark(c candidate) markKind {
	name := unitAfter(c.after)
	got, known := findUnit(name)
	want, wantKnown := findUnit(w.Unit)
	switch {
	case known && wantKnown && got.dimension == want.dimension, name != "" && sameWord(name, w.Unit):
		return wanted
	case known, glued(c, false):
		return other
	}
	return none
}

func sameWord(a, b string) bool {
	return strings.EqualFold(a, b) || strings.EqualFold(strings.TrimSuffix(a, "s"), strings.TrimSuffix(b, "s"))
}

// convert gives a marked quantity in the wanted unit.
func convert(c candidate, wantUnit string) *big.Rat {
	got, ok := findUnit(unitAfter(c.after))
	want, wantOK := findUnit(wantUnit)
	if !ok || !wantOK || got.factor == want.factor {
		return c.value
	}
	from, _ := new(big.Rat).SetString(got.factor)
	to, _ := new(big.Rat).SetString(want.factor)
	v := new(big.Rat).Mul(c.value, from)
	return v.Quo(v, to)
}
