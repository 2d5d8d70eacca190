package answer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const monthNames = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`

// Forms of dates. Those with the month as a word are the same in every locale.
var (
	dayWord   = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th)?(?:\s+of)?[\s-]+(` + monthNames + `)\.?,?[\s-]+(\d{4})\b`)
	wordDay   = regexp.MustCompile(`(?i)\b(` + monthNames + `)\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b`)
	yearDigit = regexp.MustCompile(`\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b`)
	digitYear = regexp.MustCompile(`\b(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})\b`)
	weekday   = regexp.MustCompile(`(?i)\b(mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b`)
)

func parseISODate(s string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return t, fmt.Errorf("%q is not a date; write it as 2023-10-21", s)
	}
	return t, nil
}

// matchDate wants exactly one date in the text.
func matchDate(w Want, text string) (bool, string) {
	want, err := parseISODate(w.Value)
	if err != nil {
		return false, err.Error()
	}
	if utf8.RuneCountInString(text) > maxSentence {
		return false, fmt.Sprintf("the answer has more than %d characters", maxSentence)
	}
	found, bad := datesIn(text, w.Locale)
	if len(found) != 1 || bad {
		return false, fmt.Sprintf("the answer %q does not name exactly one date, expected %s", shorten(text), w.Value)
	}
	if name := weekday.FindString(text); name != "" && !strings.HasPrefix(strings.ToLower(found[0].Weekday().String()), strings.ToLower(name[:3])) {
		return false, fmt.Sprintf("the answer %q names a weekday that its date does not have", shorten(text))
	}
	return found[0].Equal(want), differs(found[0].Equal(want), text, w.Value)
}

// datesIn lists the dates of a text; bad is set when one of them does not exist.
func datesIn(text, locale string) (found []time.Time, bad bool) {
	take := func(year, month, day string) {
		t, ok := dateOf(year, month, day)
		if !ok {
			bad = true
			return
		}
		found = append(found, t)
	}
	for _, m := range dayWord.FindAllStringSubmatch(text, -1) {
		take(m[3], m[2], m[1])
	}
	for _, m := range wordDay.FindAllStringSubmatch(text, -1) {
		take(m[3], m[1], m[2])
	}
	for _, m := range yearDigit.FindAllStringSubmatch(text, -1) {
		take(m[1], m[2], m[3])
	}
	for _, m := range digitYear.FindAllStringSubmatch(text, -1) {
		if dateOrder(locale) == monthFirst {
			take(m[3], m[1], m[2])
		} else {
			take(m[3], m[2], m[1])
		}
	}
	return found, bad
}

func dateOf(year, month, day string) (time.Time, bool) {
	y, err1 := strconv.Atoi(year)
	d, err2 := strconv.Atoi(day)
	m, ok := monthOf(month)
	if err1 != nil || err2 != nil || !ok {
		return time.Time{}, false
	}
	t := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	// time.Date makes 2 March of 30 February.
	return t, t.Year() == y && t.Month() == m && t.Day() == d
}

func monthOf(s string) (time.Month, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return time.Month(n), n >= 1 && n <= 12
	}
	for m := time.January; m <= time.December; m++ {
		if len(s) >= 3 && strings.EqualFold(m.String()[:3], s[:3]) {
			return m, true
		}
	}
	return 0, false
}
