package answer

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pommelgym/pommel/internal/task/cell"
)

// candidate is one number in a text, with what stands directly around it.
type candidate struct {
	value *big.Rat
	// plain is set for digits alone, as an id is written.
	plain bool
	// before and after are the texts around it, sign and number left out.
	before, after string
}

// run finds what looks like a number: digits with what may stand inside a number. The
// blanks are the ordinary one and those that typesetters use between thousands.
var run = regexp.MustCompile("(?:\\d[\\d.,'\u2019 \u00a0\u2009\u202f]*\\d|\\d|[.,]\\d+)(?:[eE][+-]?\\d{1,3}\\b)?")

// matchAmount matches number, integer, id, money, percent and quantity.
func matchAmount(w Want, text string) (bool, string) {
	found, broken := candidates(text, w.Locale)
	alone := len(found) == 1 && len(broken) == 0 && standsAlone(w, found[0])
	if !alone && utf8.RuneCountInString(text) > maxSentence {
		return false, fmt.Sprintf("the answer has more than %d characters and is not a value alone", maxSentence)
	}
	var marked, bare []candidate
	for _, c := range found {
		switch w.mark(c) {
		case wanted:
			marked = append(marked, c)
		case none:
			bare = append(bare, c)
		}
	}
	pick := marked
	if len(marked) == 0 {
		pick = bare
		if len(broken) > 0 || len(bare) != len(found) {
			return false, w.unread(text)
		}
	}
	if len(pick) != 1 {
		return false, w.unread(text)
	}
	got := pick[0]
	if w.Type == Quantity && len(marked) == 1 {
		got.value = convert(got, w.Unit)
	}
	if !w.suits(got) || !w.near(got.value) {
		return false, fmt.Sprintf("the answer is %q, expected %s", shorten(text), w.describe())
	}
	return true, ""
}

// suits checks the form that a type asks for beyond the value.
func (w Want) suits(c candidate) bool {
	switch w.Type {
	case Integer:
		return c.value.IsInt()
	case ID:
		return c.plain
	}
	return true
}

func (w Want) unread(text string) string {
	return fmt.Sprintf("the answer %q does not name exactly one %s, expected %s", shorten(text), w.Type, w.describe())
}

func (w Want) describe() string {
	switch {
	case w.Type == Percent:
		return w.Value + " %"
	case w.Currency != "":
		return w.Value + " " + w.Currency
	case w.Unit != "":
		return w.Value + " " + w.Unit
	}
	return w.Value
}

// candidates lists the numbers of a text, and what has digits but is no number of the locale.
func candidates(text, locale string) (found []candidate, broken []string) {
	for _, m := range run.FindAllStringIndex(text, -1) {
		c := candidate{before: text[:m[0]], after: text[m[1]:]}
		token := text[m[0]:m[1]]
		value, ok := parseNumber(token, locale)
		switch {
		case partOfWord(c):
			continue
		case !ok || touchesNumber(c):
			broken = append(broken, token)
			continue
		}
		c.value, c.plain = value, strings.Trim(token, "0123456789") == ""
		if before, minus := cutSign(c.before); minus {
			c.before, c.plain = before, false
			c.value.Neg(c.value)
		}
		found = append(found, c)
	}
	return found, broken
}

// partOfWord: A10 is a name, not the number 10.
func partOfWord(c candidate) bool {
	r, _ := utf8.DecodeLastRuneInString(c.before)
	return unicode.IsLetter(r) && !endsInCode(c.before) || r == '_'
}

// endsInCode: USD10 is an amount.
func endsInCode(before string) bool {
	word := before[strings.LastIndexFunc(before, func(r rune) bool { return !unicode.IsLetter(r) })+1:]
	_, ok := currencyOf(word)
	return ok
}

// touchesNumber: 10:30, 1/2, 2023-10-21 and 3-5 are no plain numbers.
func touchesNumber(c candidate) bool {
	next := []rune(c.after + "\x00\x00")
	if strings.ContainsRune(":/-\u2013", next[0]) && unicode.IsDigit(next[1]) {
		return true
	}
	prev := []rune("\x00\x00" + c.before)
	n := len(prev)
	return strings.ContainsRune(":/-\u2013.,", prev[n-1]) && unicode.IsDigit(prev[n-2])
}

// cutSign takes a minus off the end of what stands before a number, also before a currency.
func cutSign(before string) (string, bool) {
	mark := strings.TrimRight(before, "$€£¥₹")
	for _, minus := range []string{"-", "\u2212"} {
		if rest, ok := strings.CutSuffix(mark, minus); ok {
			if r, _ := utf8.DecodeLastRuneInString(rest); rest == "" || !isWord(r) {
				return rest + before[len(mark):], true
			}
		}
	}
	return before, false
}

// parseNumber reads a number with the separators of the locale.
func parseNumber(token, locale string) (*big.Rat, bool) {
	decimal, group := ".", ","
	if decimalComma(locale) {
		decimal, group = ",", "."
	}
	mantissa, exponent := token, ""
	if i := strings.IndexAny(token, "eE"); i >= 0 {
		mantissa, exponent = token[:i], token[i:]
	}
	whole, fraction, hasFraction := strings.Cut(mantissa, decimal)
	if hasFraction && (fraction == "" || strings.Trim(fraction, "0123456789") != "") {
		return nil, false
	}
	digits, ok := ungroup(whole, group)
	if !ok {
		return nil, false
	}
	if digits == "" {
		digits = "0"
	}
	if hasFraction {
		digits += "." + fraction
	}
	return cell.ParseDecimal(digits + exponent)
}

var blanks = strings.NewReplacer("\u00a0", " ", "\u2009", " ", "\u202f", " ", "\u2019", "'")

// ungroup takes out the separators of thousands: one kind, after each third digit.
func ungroup(whole, group string) (string, bool) {
	whole = blanks.Replace(whole)
	for _, sep := range []string{group, " ", "'"} {
		parts := strings.Split(whole, sep)
		if len(parts) == 1 {
			continue
		}
		for i, p := range parts {
			if strings.Trim(p, "0123456789") != "" || i > 0 && len(p) != 3 || i == 0 && (len(p) < 1 || len(p) > 3) {
				return "", false
			}
		}
		return strings.Join(parts, ""), true
	}
	return whole, strings.Trim(whole, "0123456789") == ""
}

// markKind says what the text around a number tells about its kind.
type markKind int

const (
	none markKind = iota
	wanted
	other
)

// mark reads the currency, unit or sign beside a number.
func (w Want) mark(c candidate) markKind {
	switch w.Type {
	case Money:
		return w.moneyMark(c)
	case Percent:
		return percentMark(c)
	case Quantity:
		return w.unitMark(c)
	}
	if glued(c, w.Type == ID) {
		return other
	}
	return none
}

// glued: a number that touches a sign or letters is not a plain number: $10, 10%, 10k, 10th.
func glued(c candidate, hash bool) bool {
	prev, _ := utf8.DecodeLastRuneInString(c.before)
	next, _ := utf8.DecodeRuneInString(c.after)
	if prev == '#' && hash {
		prev = ' '
	}
	return strings.ContainsRune("$€£¥₹#%", prev) || strings.ContainsRune("%°$€£¥₹", next) || unicode.IsLetter(next)
}

func percentMark(c candidate) markKind {
	word := strings.ToLower(nextWord(c.after))
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(c.after, " \u00a0\u202f"))
	rest := strings.ToLower(strings.TrimLeft(c.after, " \u00a0"))
	switch {
	case next == '%' || word == "percent" || word == "pct" || strings.HasPrefix(rest, "per cent"):
		return wanted
	case glued(c, false):
		return other
	}
	return none
}

// nextWord is the run of letters after a number, over a blank or a hyphen.
func nextWord(after string) string {
	s := strings.TrimLeft(after, " \u00a0\u202f-")
	end := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != 'µ' })
	if end < 0 {
		end = len(s)
	}
	return s[:end]
}

// prevWord is the run of letters before a number, over a blank.
func prevWord(before string) string {
	s := strings.TrimRight(before, " \u00a0\u202f")
	return s[strings.LastIndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })+1:]
}

// standsAlone says that nothing but the number and its mark is there.
func standsAlone(w Want, c candidate) bool {
	return utf8.RuneCountInString(c.before) <= 4 && utf8.RuneCountInString(c.after) <= 16
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}
func isDigit(b byte) bool { return b >= '0' && b <= '9' }
