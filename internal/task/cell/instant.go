package cell

import (
	"fmt"
	"strings"
	"time"
)

var (
	dateLayouts      = []string{"2006-01-02"}
	timestampLayouts = []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04", "2006-01-02T15:04"}
	timeLayouts      = []string{"15:04:05.999999999", "15:04"}
	zonedLayouts     = []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07",
		"2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00", "2006-01-02 15:04:05.999999999-07:00:00"}
)

func parseAny(s string, layouts []string) (time.Time, bool) {
	for _, l := range layouts {
		if t, err := time.Parse(l, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func equalTime(got string, want Want, layouts []string, expected string) (bool, error) {
	text := strings.TrimSpace(want.Text)
	w, ok := parseAny(text, layouts)
	if !ok || want.Structured {
		if isInfinite(text) {
			return strings.EqualFold(got, text), nil
		}
		return false, notA(want, expected)
	}
	// A date that Go does not write (BC, above the year 9999) equals no other.
	g, ok := parseAny(got, layouts)
	return ok && g.Equal(w), nil
}

// isInfinite knows PostgreSQL's ends of time.
func isInfinite(s string) bool { return strings.EqualFold(strings.TrimPrefix(s, "-"), "infinity") }

func equalInstant(got string, want Want) (bool, error) {
	if isInfinite(want.Text) {
		return strings.EqualFold(got, want.Text), nil
	}
	if want.Structured {
		return false, notA(want, "an instant")
	}
	w, err := ParseInstant(want.Text)
	if err != nil {
		return false, err
	}
	g, ok := parseAny(got, zonedLayouts)
	return ok && g.Equal(w), nil
}

// ParseInstant reads a date and time with its zone: an offset (2024-03-10T02:30:00-05:00, ...Z) or
// the name of a zone after a blank (2024-03-10 03:30 America/New_York). What a wall clock in the
// named zone never shows, or shows twice, is refused: the task must say which instant it means.
func ParseInstant(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	if t, ok := parseAny(s, zonedLayouts); ok {
		return t, nil
	}
	if cut := strings.LastIndexByte(s, ' '); cut > 0 && strings.Contains(s[cut:], "/") {
		return parseNamedZone(s[:cut], s[cut+1:])
	}
	if _, ok := parseAny(s, append(append([]string(nil), dateLayouts...), timestampLayouts...)); ok {
		return time.Time{}, fmt.Errorf("%q names no time zone, so it is a different instant in each; write 2024-03-10T07:30:00Z, 2024-03-10 03:30-04:00 or 2024-03-10 03:30 America/New_York", s)
	}
	return time.Time{}, fmt.Errorf("%q is not an instant, as 2024-03-10T07:30:00Z", s)
}

func parseNamedZone(clock, zone string) (time.Time, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("unknown time zone %q", zone)
	}
	wall, ok := parseAny(clock, timestampLayouts)
	if !ok {
		return time.Time{}, fmt.Errorf("%q is not a date and time, as 2024-03-10 03:30", clock)
	}
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), loc)
	if !sameClock(t, wall) {
		return time.Time{}, fmt.Errorf("the clocks of %s never show %s: they are put forward; name the instant by its offset", zone, clock)
	}
	// The other side of a change of the clocks, if there is one near.
	for _, shift := range []time.Duration{-2 * time.Hour, -time.Hour, -30 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour} {
		if other := t.Add(shift); sameClock(other.In(loc), wall) {
			return time.Time{}, fmt.Errorf("the clocks of %s show %s twice: they are put back; name the instant by its offset", zone, clock)
		}
	}
	return t, nil
}

func sameClock(a, b time.Time) bool {
	return a.Format("2006-01-02 15:04:05.999999999") == b.Format("2006-01-02 15:04:05.999999999")
}
