package cell

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var decimalPattern = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?$`)

// maxDigits bounds a number: PostgreSQL's numeric has at most 131072 digits before the point.
const maxDigits = 1 << 17

// ParseDecimal reads a decimal number exactly.
func ParseDecimal(s string) (*big.Rat, bool) {
	if len(s) > maxDigits || !decimalPattern.MatchString(s) {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

func equalNumber(got string, want Want) (bool, error) {
	w, ok := ParseDecimal(strings.TrimSpace(want.Text))
	if !ok || want.Structured {
		// NaN and Infinity of numeric.
		if isSpecial(want.Text) && !want.Structured {
			return strings.EqualFold(got, strings.TrimPrefix(want.Text, "+")), nil
		}
		return false, notA(want, "a number")
	}
	g, ok := ParseDecimal(got)
	return ok && g.Cmp(w) == 0, nil
}

func isSpecial(s string) bool {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "nan", "infinity", "inf":
		return true
	}
	return false
}

func equalFloat(got string, want Want, single bool) (bool, error) {
	bits := 64
	if single {
		bits = 32
	}
	w, err := strconv.ParseFloat(strings.TrimSpace(want.Text), bits)
	if err != nil || want.Structured {
		return false, notA(want, "a number")
	}
	g, err := strconv.ParseFloat(got, bits)
	return err == nil && (g == w || g != g && w != w), nil
}
