package candidate

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/learn/instruction"
	"github.com/pommelgym/pommel/internal/learn/page"
)

var valueOf = map[instruction.Answer]*regexp.Regexp{
	instruction.AnswerMoney: regexp.MustCompile(`\$\d[\d,]*(?:\.\d\d)?`),
	instruction.AnswerDate:  regexp.MustCompile(`\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December) \d{4}|\d{4}-\d\d-\d\d`),
	instruction.AnswerCount: regexp.MustCompile(`(?:^|\s)(\d+)(?:$| [a-z])`), // not the day of "9 March"
	instruction.AnswerCode:  regexp.MustCompile(`\b[A-Z]+-?\d{3,}[A-Z0-9-]*\b`),
}

// maxAnswers bounds how many answers a page gives: a wrong one ends the episode.
const maxAnswers = 8

// answers lists the values of the main part that could be what the instruction asks for.
func (l *lister) answers() {
	main := l.p.Main()
	if main < 0 {
		return
	}
	var header []string
	label := ""
	first := len(l.out)
	for i := main; i < l.p.Nodes[main].End; i++ {
		n := &l.p.Nodes[i]
		switch {
		case n.Role == "row" && len(header) == 0 && i+1 < len(l.p.Nodes):
			header = strings.Split(n.Name, " | ")
			continue
		case n.Role == "table":
			header = nil
		case n.Role == "term":
			label = n.Name
			continue
		case n.Interactive || n.Role == "meter":
			continue
		}
		if n.Role == "row" {
			l.cells(i, header)
		} else {
			l.values(i, n.Name, labelFor(n, label))
		}
	}
	l.out = append(l.out[:first], l.likeliest(l.out[first:])...)
	of := len(l.out) - first
	for i := range l.out[first:] {
		l.out[first+i].Nth, l.out[first+i].Of = i, of
	}
}

// likeliest keeps the answers that stand in a row that the instruction speaks of, or that
// are called what it asks for, and of the others the first, up to maxAnswers.
func (l *lister) likeliest(all []Candidate) []Candidate {
	score := func(c Candidate) float64 {
		share, _ := l.in.Share(c.Label)
		return share + float64(l.in.SlotsIn(l.p.Nodes[c.Node].Name))
	}
	if len(all) <= maxAnswers {
		return all
	}
	scores := make([]float64, len(all))
	for i, c := range all {
		scores[i] = score(c)
	}
	sorted := slices.Sorted(slices.Values(scores))
	least := sorted[len(sorted)-maxAnswers]
	var out []Candidate
	room := maxAnswers
	for _, s := range scores {
		if s > least {
			room--
		}
	}
	for i, c := range all {
		switch {
		case scores[i] > least:
			out = append(out, c)
		case scores[i] == least && room > 0:
			room--
			out = append(out, c)
		}
	}
	return out
}

// labelFor is what a page calls a text: the term before a definition, else the text itself.
func labelFor(n *page.Node, term string) string {
	if n.Role == "definition" {
		return term
	}
	return n.Role + " " + n.Name
}

// cells lists the values in a table's row; the header names them.
func (l *lister) cells(i int, header []string) {
	for at, cell := range strings.Split(l.p.Nodes[i].Name, " | ") {
		label := "row"
		if at < len(header) {
			label = header[at]
		}
		l.values(i, cell, label)
	}
}

func (l *lister) values(i int, text, label string) {
	for _, m := range valueOf[l.in.Answer].FindAllStringSubmatch(text, -1) {
		v := m[len(m)-1]
		if len(l.out) >= Max+64 || l.in.Has[strings.ToLower(v)] {
			return
		}
		v = plain(v)
		c := Candidate{Op: Answer, Node: i, Slot: -1, Value: v, Label: label, Action: "finish(" + action.Quote(v) + ")"}
		c.Key = "answer|" + label + "|" + v
		if !l.doubles[c.Key] {
			l.doubles[c.Key] = true
			l.out = append(l.out, c)
		}
	}
}

// plain writes a value without what is only for the eye.
func plain(v string) string {
	if t, err := time.Parse("2 January 2006", v); err == nil {
		return t.Format(time.DateOnly)
	}
	if strings.HasPrefix(v, "$") {
		return strings.NewReplacer("$", "", ",", "").Replace(v)
	}
	return v
}
