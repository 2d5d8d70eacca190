package feature

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/learn/candidate"
	"github.com/pommelgym/pommel/internal/learn/instruction"
	"github.com/pommelgym/pommel/internal/learn/page"
)

// Columns of a candidate's dense vector: its own, then the state's.
const (
	StateColumns = 11 + int(numTroubles)
	ownColumns   = int(candidate.NumOps) + 9 + 9 + 9 + 12 + int(instruction.NumKinds) + 13 + 6 + 4 + 6 + 3
	Columns      = ownColumns + StateColumns
)

func lower(s string) string { return strings.ToLower(s) }

// state describes what all candidates share.
func (m *Memory) state(r *row, v *view) {
	r.put(min(1, float64(m.step)/float64(m.limit)))
	r.bit(m.dialog)
	r.bit(m.failed != "")
	r.bit(!m.changed)
	r.bit(v.pending)
	r.put(float64(min(m.visits[m.Kind], 4)) / 4)
	r.put(float64(min(m.looks[m.look], 3)) / 3)
	r.put(v.shown)
	r.put(m.usedShare())
	r.put(float64(min(v.open, 4)) / 4)
	r.bit(m.In.Asks)
	r.oneOf(int(m.trouble), int(numTroubles))
}

func (m *Memory) usedShare() float64 {
	if len(m.In.Slots) == 0 {
		return 0
	}
	return float64(len(m.used)) / float64(len(m.In.Slots))
}

// dense describes candidate i.
func (m *Memory) dense(r *row, v *view, i int) {
	c := &v.list[i]
	r.oneOf(int(c.Op), int(candidate.NumOps))
	if c.Node < 0 {
		r.at = ownColumns
		return
	}
	n := &m.page.Nodes[c.Node]
	r.oneOf(slices.Index(roles, n.Role), len(roles))
	m.place(r, c.Node)
	m.condition(r, n, c)
	m.overlap(r, v, i)
	m.slot(r, v, c)
	m.history(r, c, n)
	m.form(r, v, i)
	m.order(r, v, i)
	m.asked(r, v, i)
}

var roles = []string{"link", "button", "radio", "checkbox", "textbox", "combobox", "spinbutton", "option", "menuitem"}

// place says in which parts of the page a node stands.
func (m *Memory) place(r *row, i int) {
	at := r.at
	for up := m.page.Nodes[i].Parent; up >= 0; up = m.page.Nodes[up].Parent {
		if k := slices.Index(places, m.page.Nodes[up].Role); k >= 0 {
			r.v[at+k] = 1
		}
	}
	r.at += len(places)
}

var places = []string{"banner", "navigation", "main", "complementary", "contentinfo", "search", "row", "dialog", "article"}

// condition says in which state a node is.
func (m *Memory) condition(r *row, n *page.Node, c *candidate.Candidate) {
	r.bit(n.Checked)
	r.bit(n.Current)
	r.bit(n.Expanded)
	r.bit(n.Focused)
	r.bit(n.Required)
	r.bit(n.InViewport)
	typed := candidate.Typed(n)
	r.bit(typed && n.Value == "")
	r.bit(typed && n.Value != "" && m.In.Naming(n.Value) < 0)
	r.bit(n.Value != "" && m.In.Naming(n.Value) >= 0 && c.Op != candidate.Click)
}

// overlap says how a node and what stands around it relate to the instruction.
func (m *Memory) overlap(r *row, v *view, i int) {
	n := &m.page.Nodes[v.list[i].Node]
	share, words := m.In.Share(n.Name)
	r.put(share)
	r.bit(words > 0 && share == 1)
	r.bit(m.In.Naming(n.Name) >= 0)
	inName := m.In.SlotsIn(n.Name)
	r.bit(inName > 0)
	most := 0
	for _, s := range v.slotsIn {
		most = max(most, s)
	}
	r.bit(v.slotsIn[i] > 0)
	r.bit(v.slotsIn[i] > 0 && v.slotsIn[i] == most)
	r.bit(v.slotsIn[i] == 0 && most > 0 && v.items[i] != "")
	r.put(m.wordShare(n.Name))
	heading := ""
	if at := m.page.Landmark(v.list[i].Node); at >= 0 {
		heading = m.page.Nodes[at].Name
	}
	r.put(m.wordShare(heading))
	above, below := m.measure(v.items[i])
	r.bit(above)
	r.bit(below)
	r.bit(v.items[i] != "")
}

// wordShare is the part of a text's words that the instruction has outside of its slots.
func (m *Memory) wordShare(text string) float64 {
	hit, n := 0, 0
	for _, w := range instruction.Tokens(text) {
		if instruction.Stop(w) {
			continue
		}
		n++
		if slices.Contains(m.In.Words, w) {
			hit++
		}
	}
	if n == 0 {
		return 0
	}
	return float64(hit) / float64(n)
}

var number = regexp.MustCompile(`\d+(?:\.\d+)?`)

// measure compares a number of the instruction with one of the text that is followed by
// the same word: "a rating of 4.2 out of 5", "4.4 out of 5".
func (m *Memory) measure(text string) (above, below bool) {
	if text == "" {
		return false, false
	}
	for i := range m.In.Slots {
		s := &m.In.Slots[i]
		if s.Kind != instruction.Number || len(s.After) == 0 {
			continue
		}
		want, err := strconv.ParseFloat(s.Text, 64)
		if err != nil {
			continue
		}
		rest := m.In.Rest(i)
		for _, at := range number.FindAllStringIndex(text, -1) {
			if rest == "" || !strings.HasPrefix(text[at[1]:], rest) {
				continue
			}
			have, _ := strconv.ParseFloat(text[at[0]:at[1]], 64)
			return have >= want, have < want
		}
	}
	return false, false
}

// slot says what the value is and how it fits the field.
func (m *Memory) slot(r *row, v *view, c *candidate.Candidate) {
	n := &m.page.Nodes[c.Node]
	kinds := int(instruction.NumKinds)
	if c.Slot < 0 {
		r.at += kinds
		share, _ := m.In.Share(c.Value)
		r.put(share)
		r.at += 12
		return
	}
	s := &m.In.Slots[c.Slot]
	r.oneOf(int(s.Kind), kinds)
	share, _ := m.In.Share(c.Value)
	r.put(share)
	label := instruction.Tokens(n.Name)
	r.bit(common(label, s.Before))
	r.bit(common(label, s.After))
	r.bit(len(s.Before) > 0 && slices.Contains(label, s.Before[0]))
	r.bit(m.used[c.Slot])
	r.bit(instruction.Contains(v.mainText, s.Low))
	r.bit(s.Part)
	r.bit(m.filled[n.Bid])
	r.bit(s.Kind == instruction.Email && slices.Contains(label, "mail"))
	r.bit(n.Role == "spinbutton" || n.Type == "number")
	r.bit(n.Type == "date")
	r.put(1 / float64(1+c.Slot))
	r.bit(c.Slot == len(m.In.Slots)-1)
}

func common(a, b []string) bool {
	return slices.ContainsFunc(a, func(w string) bool { return slices.Contains(b, w) })
}

// history says what was done with a node before.
func (m *Memory) history(r *row, c *candidate.Candidate, n *page.Node) {
	r.put(float64(min(m.tried[c.Key], 3)) / 3)
	r.bit(m.tried[c.Key] > 0)
	r.put(float64(min(m.named[n.Role+"|"+n.Name], 3)) / 3)
	r.bit(m.last != nil && m.last.Key == c.Key)
	r.bit(!m.arrived && len(m.before) > 0 && !m.before[n.Bid])
	r.bit(m.page.Dialog(c.Node) >= 0)
}

// form says how a node stands to the fields that were filled.
func (m *Memory) form(r *row, v *view, i int) {
	r.bit(v.after[i] == 0)
	r.bit(v.after[i] > 0)
	same := v.after[i] == 0 && v.open == 0
	r.bit(same)
	r.bit(m.sameItem(v, i))
}

// sameItem says that the field typed into last is in the same row or card.
func (m *Memory) sameItem(v *view, i int) bool {
	if m.lastBid == "" || v.items[i] == "" {
		return false
	}
	at := m.page.Item(v.list[i].Node)
	for j := at; j < m.page.Nodes[at].End; j++ {
		if m.page.Nodes[j].Bid == m.lastBid {
			return true
		}
	}
	return false
}

// order says where a candidate stands among those like it, and for answers what they are called.
func (m *Memory) order(r *row, v *view, i int) {
	c := &v.list[i]
	n := &m.page.Nodes[c.Node]
	rank := 0
	for j := i - 1; j >= 0 && v.list[j].Node >= 0; j-- {
		o := &m.page.Nodes[v.list[j].Node]
		if o.Role == n.Role && v.list[j].Op == c.Op && v.list[j].Node != c.Node {
			rank++
		}
	}
	r.put(1 / float64(1+rank))
	if c.Op != candidate.Answer {
		r.at += 5
		return
	}
	label, _ := m.In.Share(c.Label)
	r.put(label)
	r.bit(m.In.SlotsIn(n.Name) > 0)
	r.bit(c.Nth == 0)
	r.bit(c.Nth == c.Of-1)
	r.bit(c.Of == 1)
}

// asked says where a candidate stands among the buttons of its dialog.
func (m *Memory) asked(r *row, v *view, i int) {
	c := &v.list[i]
	if m.page.Dialog(c.Node) < 0 || m.page.Nodes[c.Node].Role != "button" {
		r.at += 3
		return
	}
	before, after := m.beside(v, i)
	r.bit(before == 0)
	r.bit(after == 0)
	r.bit(before+after == 0)
}

// beside counts the buttons before and after a candidate in its dialog.
func (m *Memory) beside(v *view, i int) (before, after int) {
	at, own := m.page.Dialog(v.list[i].Node), v.list[i].Node
	for j := range v.list {
		k := v.list[j].Node
		switch {
		case k < 0 || k == own || m.page.Nodes[k].Role != "button" || m.page.Dialog(k) != at:
		case k < own:
			before++
		default:
			after++
		}
	}
	return before, after
}
