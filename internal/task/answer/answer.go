// Package answer decides whether what an agent said is the answer that a task expects.
//
// The type of the answer is declared by the task and never guessed from the text. An
// answer may stand alone ("10", "$1,234.50") or in a short sentence ("The total is
// 10."), but then it must be the only candidate in it: a text that holds several
// numbers does not name one of them.
package answer

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/pommelgym/pommel/internal/task/cell"
)

// Types of answers.
const (
	Number   = "number"
	Integer  = "integer"
	ID       = "id"
	Text     = "text"
	Money    = "money"
	Percent  = "percent"
	Quantity = "quantity"
	Date     = "date"
	URL      = "url"
	Set      = "set"
	Choice   = "choice"
)

// Want is one right answer.
type Want struct {
	Type string
	// Value is the answer; Values the elements of a set.
	Value  string
	Values []string
	// Currency is an ISO code; Unit as in, kg, min.
	Currency, Unit string
	// Locale says how numbers and dates are written; "" is en-US.
	Locale string
	// Options are the possible choices.
	Options []string
	// Of is the type of the elements of a set.
	Of string
	// Within is the allowed distance, a decimal number; "" is none.
	Within string
	Modes  cell.Modes
	// Base is what a relative URL is relative to.
	Base string
}

// maxSentence is the longest text, in characters, in which an answer is looked for. What
// is longer is a page that was read out, not an answer.
const maxSentence = 200

// Match says whether the text is the answer, and if not, why in words.
func Match(w Want, text string) (ok bool, why string) {
	text = strings.TrimSpace(text)
	switch w.Type {
	case Text:
		ok, err := cell.Equal(0, &text, cell.Want{Text: strings.TrimSpace(w.Value)}, w.Modes)
		if err != nil {
			return false, err.Error()
		}
		return ok, differs(ok, text, w.Value)
	case URL:
		return matchURL(w, strings.Trim(text, `<>"'`))
	case Choice:
		return matchChoice(w, text)
	case Set:
		return matchSet(w, text)
	case Date:
		return matchDate(w, text)
	}
	return matchAmount(w, text)
}

// Check says what is wrong with an expected answer, before any episode.
func Check(w Want) error {
	if w.Within != "" {
		if d, ok := cell.ParseDecimal(w.Within); !ok || d.Sign() < 0 {
			return fmt.Errorf("within: %q is not a distance", w.Within)
		}
	}
	switch w.Type {
	case Number, Money, Percent, Quantity:
		if _, ok := cell.ParseDecimal(w.Value); !ok {
			return fmt.Errorf("%q is not a number; write digits and a point, as 1234.5", w.Value)
		}
	case Integer, ID:
		if r, ok := cell.ParseDecimal(w.Value); !ok || !r.IsInt() {
			return fmt.Errorf("%q is not a whole number; for an id with other characters use type: text", w.Value)
		}
	case Date:
		if _, err := parseISODate(w.Value); err != nil {
			return err
		}
	case URL:
		if _, err := url.Parse(w.Value); err != nil {
			return fmt.Errorf("%q is not a URL", w.Value)
		}
	case Choice:
		for _, o := range w.Options {
			if o == w.Value {
				return nil
			}
		}
		return fmt.Errorf("%q is none of the options", w.Value)
	case Set:
		for _, v := range w.Values {
			if err := Check(w.element(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

func differs(ok bool, got, want string) string {
	if ok {
		return ""
	}
	return fmt.Sprintf("the answer is %q, expected %q", shorten(got), shorten(want))
}

func shorten(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "..."
}

// element is the expected answer for one element of a set.
func (w Want) element(value string) Want {
	w.Type, w.Value, w.Values, w.Of = w.Of, value, nil, ""
	return w
}

// matchSet compares the elements as a bag, under each sensible way to split the text.
func matchSet(w Want, text string) (bool, string) {
	for _, parts := range splits(text) {
		if len(parts) != len(w.Values) {
			continue
		}
		ok, _ := cell.Bag(len(parts), func(i, j int) (bool, error) {
			ok, _ := Match(w.element(w.Values[j]), parts[i])
			return ok, nil
		})
		if ok {
			return true, ""
		}
	}
	return false, fmt.Sprintf("the answer is %q, expected these elements in any order: %s", shorten(text), strings.Join(w.Values, "; "))
}

// splits lists the ways to read a text as a list.
func splits(text string) [][]string {
	var fromJSON []any
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &fromJSON) == nil {
		var parts []string
		for _, v := range fromJSON {
			parts = append(parts, fmt.Sprint(v))
		}
		return [][]string{parts}
	}
	if text == "" {
		return [][]string{{}}
	}
	out := [][]string{{text}}
	if strings.Contains(text, "\n") {
		out = append(out, clean(strings.Split(text, "\n")))
	}
	if strings.Contains(text, ";") {
		out = append(out, clean(strings.Split(text, ";")))
	}
	commas := clean(splitCommas(text))
	out = append(out, commas)
	last := commas[len(commas)-1]
	if rest, ok := strings.CutPrefix(last, "and "); ok {
		out = append(out, append(commas[:len(commas)-1:len(commas)-1], strings.TrimSpace(rest)))
	} else if a, b, ok := strings.Cut(last, " and "); ok {
		out = append(out, append(commas[:len(commas)-1:len(commas)-1], strings.TrimSpace(a), strings.TrimSpace(b)))
	}
	return out
}

// splitCommas splits at commas, but not inside 1,000.
func splitCommas(text string) []string {
	var parts []string
	start := 0
	for i := range len(text) {
		inNumber := i > 0 && i+1 < len(text) && isDigit(text[i-1]) && isDigit(text[i+1])
		if text[i] == ',' && !inNumber {
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

// clean drops empty elements, bullets and the full stop of a sentence.
func clean(parts []string) []string {
	var out []string
	for _, p := range parts {
		p = strings.TrimSpace(p)
		for _, bullet := range []string{"- ", "* ", "• "} {
			p = strings.TrimSpace(strings.TrimPrefix(p, bullet))
		}
		if p != "" {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], ".")
	return out
}

// matchChoice wants exactly one of the options to be named.
func matchChoice(w Want, text string) (bool, string) {
	for _, o := range w.Options {
		if strings.EqualFold(strings.Trim(text, " .!\"'"), o) {
			return strings.EqualFold(o, w.Value), differs(strings.EqualFold(o, w.Value), text, w.Value)
		}
	}
	var named []string
	if utf8.RuneCountInString(text) <= maxSentence {
		for _, o := range w.Options {
			if containsWord(text, o) && !partOfNamed(text, o, w.Options) {
				named = append(named, o)
			}
		}
	}
	switch len(named) {
	case 0:
		return false, fmt.Sprintf("the answer %q names none of the options", shorten(text))
	case 1:
		ok := named[0] == w.Value
		return ok, differs(ok, text, w.Value)
	}
	return false, fmt.Sprintf("the answer %q names several options: %s", shorten(text), strings.Join(named, ", "))
}

// partOfNamed says whether an option occurs only inside a longer option that is named too.
func partOfNamed(text, option string, options []string) bool {
	rest := strings.ToLower(text)
	longer := false
	for _, o := range options {
		if len(o) > len(option) && containsWord(o, option) && containsWord(text, o) {
			rest = strings.ReplaceAll(rest, strings.ToLower(o), " ")
			longer = true
		}
	}
	return longer && !containsWord(rest, option)
}

func containsWord(text, word string) bool {
	t, w := strings.ToLower(text), strings.ToLower(word)
	for from := 0; w != ""; {
		i := strings.Index(t[from:], w)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(t[:i])
		after, _ := utf8.DecodeRuneInString(t[i+len(w):])
		if !isWord(before) && !isWord(after) {
			return true
		}
		from = i + 1
	}
	return false
}

// near says whether a number is the wanted one, within the allowed distance.
func (w Want) near(got *big.Rat) bool {
	want, ok := cell.ParseDecimal(w.Value)
	if !ok {
		return false
	}
	distance := new(big.Rat).Sub(got, want)
	allowed := new(big.Rat)
	if w.Within != "" {
		if allowed, ok = cell.ParseDecimal(w.Within); !ok {
			return false
		}
	}
	return distance.Abs(distance).Cmp(allowed) <= 0
}
