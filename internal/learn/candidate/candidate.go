// Package candidate lists what a policy may do next: each candidate is an operation, an
// element and, where one is needed, a value out of the instruction or off the page.
package candidate

import (
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/learn/instruction"
	"github.com/pommelgym/pommel/internal/learn/page"
)

// Op is what a candidate does.
type Op uint8

// The operations.
const (
	Click Op = iota
	Fill
	Search // fill a search field and press Enter
	Select
	Answer
	Accept
	Dismiss
	Back
	Reload
	Wait
	NumOps
)

func (o Op) String() string {
	return [...]string{"click", "fill", "search", "select", "answer", "accept", "dismiss", "back", "reload", "wait"}[o]
}

// Candidate is one possible action.
type Candidate struct {
	Op Op
	// Node is the element's index on the page, or -1.
	Node int
	// Slot is the index of the instruction's slot that gave the value, or -1.
	Slot  int
	Value string
	// Label says what an answer's value is, where the page says so.
	Label string
	// Nth and Of place an answer among those of its kind.
	Nth, Of int
	// Action is the action string.
	Action string
	// Key is the same for the same thing on a page that was loaded again.
	Key string
}

// Max bounds how many candidates a page gives.
const Max = 96

// lister gathers candidates.
type lister struct {
	p   *page.Page
	in  *instruction.Instruction
	out []Candidate
	// doubles are keys that were listed.
	doubles map[string]bool
	siblings
}

// List gives the candidates of an observation, in the order of the page. Where something has gone
// wrong, one may also wait and load the page again.
func List(p *page.Page, in *instruction.Instruction, o *gym.Observation, trouble bool) []Candidate {
	l := &lister{p: p, in: in, doubles: map[string]bool{}}
	if o.Dialog != nil {
		l.global(Accept, "dialog_accept()")
		l.global(Dismiss, "dialog_dismiss()")
		return l.out
	}
	from, to := 0, len(p.Nodes)
	if d := p.TopDialog(); d >= 0 && p.Nodes[d].Modal {
		// What lies below a modal dialog cannot be used.
		from, to = d, p.Nodes[d].End
	}
	l.count(p, in, from, to)
	for i := from; i < to; i++ {
		l.element(i)
	}
	if len(l.out) > Max {
		l.out = l.out[:Max]
	}
	if in.Asks {
		l.answers()
	}
	l.global(Back, "go_back()")
	if trouble || len(l.out) < 5 {
		l.global(Wait, "noop(2000)")
		l.global(Reload, "goto("+action.Quote(p.URL)+")")
	}
	return l.out
}

func (l *lister) global(op Op, text string) {
	l.out = append(l.out, Candidate{Op: op, Node: -1, Slot: -1, Action: text, Key: op.String()})
}

// element lists what can be done with one element.
func (l *lister) element(i int) {
	n := &l.p.Nodes[i]
	if !n.Interactive || n.Disabled || n.Bid == "" {
		return
	}
	switch {
	case n.Tag == "select" || len(n.Options) > 0:
		l.options(i)
	case Typed(n):
		l.fills(i)
	case l.crowded(i):
	default:
		l.add(Candidate{Op: Click, Node: i, Slot: -1, Action: "click(" + action.Quote(n.Bid) + ")"})
	}
}

// Typed says that a node takes text.
func Typed(n *page.Node) bool {
	switch n.Role {
	case "textbox", "searchbox", "spinbutton":
		return true
	case "combobox":
		return n.Tag == "input"
	}
	return false
}

// SearchField says that text in it is looked up when Enter is pressed.
func SearchField(n *page.Node) bool { return n.Role == "searchbox" || n.Role == "combobox" }

func (l *lister) fills(i int) {
	n := &l.p.Nodes[i]
	for s := range l.in.Slots {
		slot := &l.in.Slots[s]
		values := []string{slot.Value}
		switch {
		case n.Type == "date":
			values = slot.Dates
		case n.Role == "spinbutton" || n.Type == "number":
			if slot.Kind != instruction.Number && slot.Kind != instruction.Money {
				continue
			}
		}
		for _, v := range values {
			l.fill(i, s, v)
		}
	}
}

func (l *lister) fill(i, slot int, value string) {
	n := &l.p.Nodes[i]
	c := Candidate{Op: Fill, Node: i, Slot: slot, Value: value, Action: "fill(" + action.Quote(n.Bid) + ", " + action.Quote(value) + ")"}
	if SearchField(n) {
		c.Op = Search
		c.Action += "\npress(" + action.Quote(n.Bid) + `, "Enter")`
	} else if n.Value == value {
		return
	}
	l.add(c)
}

// options lists the choices of a select: those that the instruction names; if it names none, the first few.
func (l *lister) options(i int) {
	n := &l.p.Nodes[i]
	var named, rest []Candidate
	for _, o := range n.Options {
		if o == n.Value || o == "" {
			continue
		}
		c := Candidate{Op: Select, Node: i, Slot: l.in.Naming(o), Value: o, Action: "select_option(" + action.Quote(n.Bid) + ", " + action.Quote(o) + ")"}
		switch {
		case c.Slot >= 0 || l.in.Mentions(o):
			named = append(named, c)
		case len(rest) < maxUnnamed:
			rest = append(rest, c)
		}
	}
	if len(named) == 0 && !l.in.Mentions(n.Value) {
		named = rest
	}
	for _, c := range named {
		l.add(c)
	}
}

// maxUnnamed is how many things of a row of many are listed that the instruction does not name.
const maxUnnamed = 6

// add lists a candidate unless the same thing stands there already: pages link twice to one place.
func (l *lister) add(c Candidate) {
	n := &l.p.Nodes[c.Node]
	item := ""
	if at := l.p.Item(c.Node); at >= 0 {
		item = l.p.Text(at)
	}
	if at := l.p.Landmark(c.Node); at >= 0 && n.Role != "link" {
		// Two links of one name lead to one place; two buttons of one name do different things.
		item += "|" + l.p.Nodes[at].Role + l.p.Nodes[at].Name
	}
	c.Key = strings.Join([]string{c.Op.String(), n.Role, n.Name, c.Value, item}, "|")
	if l.doubles[c.Key] {
		return
	}
	l.doubles[c.Key] = true
	l.out = append(l.out, c)
}
