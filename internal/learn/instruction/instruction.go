// Package instruction reads what a task asks for: its words, and the spans in it that
// may have to be typed, chosen or found on a page.
package instruction

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Kind says what a slot looks like.
type Kind uint8

// The kinds of slots.
const (
	Quoted Kind = iota // between quotes
	Email
	Date
	Money
	Code   // letters and digits: an order's number, a telephone number
	Number // digits alone
	Place  // a number and capitalised words, as in an address
	Name   // capitalised words
	NumKinds
)

func (k Kind) String() string {
	return [...]string{"quoted", "email", "date", "money", "code", "number", "place", "name"}[k]
}

// Slot is a span of the instruction that names something.
type Slot struct {
	Kind Kind
	// Text is the span as written, Value what is typed for it.
	Text, Value string
	// Low is Text in lower case.
	Low string
	// Dates are the days that the span names, as date fields take them.
	Dates []string
	// Before and After are the words that stand next to it, nearest first.
	Before, After []string
	// Part says that a longer slot holds this one.
	Part bool

	from, to int
}

// Instruction is a task's text, taken apart.
type Instruction struct {
	Text  string
	Slots []Slot
	// Words are the words outside of slots that carry meaning, in order, without doubles.
	Words []string
	// Has holds all words, those in slots too.
	Has map[string]bool
	// Asks says that an answer is wanted; Answer what it looks like.
	Asks   bool
	Answer Answer
}

// Answer is what kind of answer a question wants.
type Answer uint8

// The kinds of answers.
const (
	AnswerCode Answer = iota
	AnswerMoney
	AnswerDate
	AnswerCount
)

const maxSlots = 14

var (
	months  = `January|February|March|April|May|June|July|August|September|October|November|December`
	pattern = []struct {
		kind Kind
		re   *regexp.Regexp
	}{
		{Quoted, regexp.MustCompile(`"([^"]+)"`)},
		{Email, regexp.MustCompile(`([\w.+-]+@[\w-]+(?:\.[\w-]+)+)`)},
		{Date, regexp.MustCompile(`(\d{1,2} (?:` + months + `) \d{4}|\d{4}-\d\d-\d\d)`)},
		{Money, regexp.MustCompile(`\$(\d[\d,]*(?:\.\d+)?)`)},
		{Code, regexp.MustCompile(`([A-Za-z0-9]+(?:-[A-Za-z0-9]+)+|[A-Z]+[0-9]+[A-Z0-9]*)`)},
		{Place, regexp.MustCompile(`(\d+(?: [A-Z][a-z]+)+)`)},
		{Number, regexp.MustCompile(`(\d+(?:\.\d+)?)`)},
		{Name, regexp.MustCompile(`([A-Z][\p{L}]+(?: (?:& )?[A-Z][\p{L}]+)*)`)},
	}
	digit = regexp.MustCompile(`\d`)
)

// Parse takes an instruction apart.
func Parse(text string) *Instruction {
	in := &Instruction{Text: text, Has: map[string]bool{}}
	taken := make([]bool, len(text))
	for _, p := range pattern {
		for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
			in.addSlot(p.kind, m, taken)
		}
	}
	slices.SortStableFunc(in.Slots, func(a, b Slot) int { return a.from - b.from })
	in.Slots = dropDoubles(in.Slots)
	in.words(text, taken)
	in.question()
	return in
}

// addSlot keeps a match unless a stronger kind has taken its place. The parts of an
// address stay slots beside the whole: pages ask for either.
func (in *Instruction) addSlot(kind Kind, m []int, taken []bool) {
	from, to := m[2], m[3]
	span := in.Text[from:to]
	switch {
	case kind == Code && !digit.MatchString(span):
		return
	case (kind == Number || kind == Code || kind == Place) && from > 0 && isWord(in.Text[from-1]):
		return
	case kind == Name && (startsSentence(in.Text, from) || len(span) < 3):
		return
	}
	if slices.Contains(taken[m[0]:m[1]], true) && kind != Number && kind != Name {
		return
	}
	part := false
	for _, s := range in.Slots {
		if s.from <= from && to <= s.to {
			if s.Kind != Place {
				return
			}
			part = true
		}
	}
	for i := m[0]; i < m[1]; i++ {
		taken[i] = true
	}
	s := Slot{Kind: kind, Text: span, Value: strings.ReplaceAll(span, ",", ""), Low: strings.ToLower(span), Part: part, from: from, to: to}
	if kind != Money {
		s.Value = span
	}
	s.Dates = days(kind, span)
	s.Before, s.After = around(in.Text, m[0], m[1])
	in.Slots = append(in.Slots, s)
}

func isWord(c byte) bool {
	return c == '-' || c == '.' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// startsSentence: a capital letter there says nothing.
func startsSentence(text string, at int) bool {
	before := strings.TrimRight(text[:at], " ")
	return before == "" || strings.ContainsAny(before[len(before)-1:], ".?!:")
}

// days are the dates that a span names: a day is itself, a year its first and last day.
func days(kind Kind, span string) []string {
	switch {
	case kind == Date:
		for _, layout := range []string{"2 January 2006", time.DateOnly} {
			if t, err := time.Parse(layout, span); err == nil {
				return []string{t.Format(time.DateOnly)}
			}
		}
	case kind == Number && len(span) == 4 && (strings.HasPrefix(span, "19") || strings.HasPrefix(span, "20")):
		return []string{span + "-01-01", span + "-12-31"}
	}
	return nil
}

const nearby = 3

// around gives the words on both sides of a span.
func around(text string, from, to int) (before, after []string) {
	before = Tokens(lastSentence(text[:from]))
	slices.Reverse(before)
	after = Tokens(firstSentence(text[to:]))
	return meaning(before), meaning(after)
}

func lastSentence(s string) string {
	if i := strings.LastIndexAny(s, ".?!"); i >= 0 && i < len(s)-1 && s[i+1] == ' ' {
		return s[i+1:]
	}
	return s
}

func firstSentence(s string) string {
	for _, end := range []string{". ", "? ", "! "} {
		if i := strings.Index(s, end); i >= 0 {
			s = s[:i]
		}
	}
	return s
}

// meaning keeps the nearest words that are no stop words.
func meaning(words []string) []string {
	var out []string
	for _, w := range words {
		if !stop[w] && len(out) < nearby {
			out = append(out, w)
		}
	}
	return out
}

// dropDoubles keeps one of several slots with one text.
func dropDoubles(slots []Slot) []Slot {
	seen := map[string]bool{}
	out := slots[:0]
	for _, s := range slots {
		if !seen[s.Low] && len(out) < maxSlots {
			seen[s.Low] = true
			out = append(out, s)
		}
	}
	return out
}

func (in *Instruction) words(text string, taken []bool) {
	outside := []byte(text)
	for i, t := range taken {
		if t {
			outside[i] = ' '
		}
	}
	seen := map[string]bool{}
	for _, w := range Tokens(string(outside)) {
		if !stop[w] && !seen[w] {
			seen[w] = true
			in.Words = append(in.Words, w)
		}
	}
	for _, w := range Tokens(text) {
		if !stop[w] {
			in.Has[w] = true
		}
	}
}

var (
	asksCount = regexp.MustCompile(`(?i)\bhow many\b`)
	asksMoney = regexp.MustCompile(`(?i)\b(dollars|amount|how much|price)\b`)
	asksDate  = regexp.MustCompile(`(?i)\b(date|when|which day)\b`)
)

func (in *Instruction) question() {
	in.Asks = strings.Contains(in.Text, "?") || strings.Contains(in.Text, "Answer with")
	switch {
	case asksCount.MatchString(in.Text):
		in.Answer = AnswerCount
	case asksMoney.MatchString(in.Text):
		in.Answer = AnswerMoney
	case asksDate.MatchString(in.Text):
		in.Answer = AnswerDate
	}
}

// Tokens are the words of a text in lower case: runs of letters and digits.
func Tokens(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

var stop = set("a an the and or of to in on at by for from with is are be it its that this as not no your you my i me we our have has had do does did will any all one out put take give up so than which what who only exactly just new there")

func set(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// Stop says that a word carries no meaning of its own.
func Stop(w string) bool { return stop[w] }
