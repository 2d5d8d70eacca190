package agent

import (
	"regexp"
	"strings"

	"github.com/pommelgym/pommel/gym"
)

// line is one node of an observation's text.
type line struct {
	depth           int
	bid, role, name string
}

var lineForm = regexp.MustCompile(`^(\t*)(?:\[([^\]]+)\] )?(\w+)(?: '((?:[^'\\]|\\.)*)')?`)

func parseText(text string) []line {
	var out []line
	for raw := range strings.Lines(text) {
		if m := lineForm.FindStringSubmatch(strings.TrimRight(raw, "\n")); m != nil {
			out = append(out, line{depth: len(m[1]), bid: m[2], role: m[3], name: m[4]})
		}
	}
	return out
}

// overlay is a part of the page that lies over the rest: the buttons in it.
type overlay struct {
	role, name string
	buttons    []line
	bids       []string
}

// inOverlays are the bids of all that stands in overlays.
func inOverlays(o *gym.Observation) map[string]bool {
	out := map[string]bool{}
	for _, v := range overlays(o) {
		for _, bid := range v.bids {
			out[bid] = true
		}
	}
	return out
}

// overlays finds what stands at the end of the page, outside of its landmarks.
func overlays(o *gym.Observation) []overlay {
	lines := parseText(o.Text)
	top := 1
	var out []overlay
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if l.depth != top || (l.role != "dialog" && l.role != "alertdialog" && l.role != "region" && l.role != "status" && l.role != "complementary") {
			continue
		}
		v := overlay{role: l.role, name: l.name}
		for j := i + 1; j < len(lines) && lines[j].depth > l.depth; j++ {
			if lines[j].bid != "" {
				v.bids = append(v.bids, lines[j].bid)
			}
			if lines[j].role == "button" {
				v.buttons = append(v.buttons, lines[j])
			}
		}
		if len(v.buttons) > 0 {
			out = append(out, v)
		}
	}
	return out
}

var declines = regexp.MustCompile(`(?i)^(no\b|not\b|skip|maybe|later|close|dismiss|decline|reject|only|just the|hide|ask me later|cancel|another time|i would rather|i will pass)`)

// inTheWay is the button that closes what covers the page, the nearest to the user first; ""
// when there is none.
func inTheWay(o *gym.Observation) string {
	all := overlays(o)
	if len(all) == 0 {
		return ""
	}
	v := topmost(all)
	for _, b := range v.buttons {
		if declines.MatchString(b.name) {
			return b.bid
		}
	}
	return v.buttons[len(v.buttons)-1].bid
}

// topmost is the last window, or else the last of the rest.
func topmost(all []overlay) overlay {
	for i := len(all) - 1; i >= 0; i-- {
		if strings.Contains(all[i].role, "dialog") {
			return all[i]
		}
	}
	return all[len(all)-1]
}

// confirming is the button that goes ahead in a window that has just come up; "" when there
// is none.
func confirming(o *gym.Observation) string {
	all := overlays(o)
	if len(all) == 0 {
		return ""
	}
	v := topmost(all)
	if !strings.Contains(v.role, "dialog") {
		return ""
	}
	return v.buttons[len(v.buttons)-1].bid
}
