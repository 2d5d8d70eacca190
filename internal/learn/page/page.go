// Package page reads the text of an observation back into a tree, so that a policy
// can ask where an element stands: in which row, below which heading, in which dialog.
package page

import (
	"strings"

	"github.com/pommelgym/pommel/gym"
)

// Page is the active tab as a tree of nodes, in document order.
type Page struct {
	URL   string
	Title string
	Nodes []Node
}

// Node is one line of an observation's text.
type Node struct {
	Bid  string // "" for plain text
	Role string
	Name string
	// Value and the fields below are what the line says of a control.
	Value    string
	Type     string // of an input: date, number, email, ...
	Options  []string
	Checked  bool
	Disabled bool
	Current  bool // a link to the page that is shown
	Focused  bool
	Required bool
	Expanded bool
	Modal    bool
	// Tag, Interactive and InViewport come from the observation's elements.
	Tag         string
	Interactive bool
	InViewport  bool
	// Parent is the index of the node above it, -1 for the root; Depth its distance from there.
	Parent int
	Depth  int
	// End is the index behind the node's last descendant.
	End int
}

// Parse reads an observation. What it cannot read it leaves out: a policy must live
// with any page.
func Parse(o *gym.Observation) *Page {
	p := &Page{URL: o.URL, Title: o.Title}
	elements := make(map[string]*gym.Element, len(o.Elements))
	for i := range o.Elements {
		elements[o.Elements[i].Bid] = &o.Elements[i]
	}
	var open []int // the path from the root to the latest node
	for line := range strings.SplitSeq(o.Text, "\n") {
		n, ok := parseLine(line)
		if !ok {
			continue
		}
		for len(open) > 0 && p.Nodes[open[len(open)-1]].Depth >= n.Depth {
			p.Nodes[open[len(open)-1]].End = len(p.Nodes)
			open = open[:len(open)-1]
		}
		n.Parent = -1
		if len(open) > 0 {
			n.Parent = open[len(open)-1]
		}
		if e := elements[n.Bid]; e != nil {
			n.Tag, n.Interactive, n.InViewport = e.Tag, e.Interactive, e.InViewport
		}
		open = append(open, len(p.Nodes))
		p.Nodes = append(p.Nodes, n)
	}
	for _, i := range open {
		p.Nodes[i].End = len(p.Nodes)
	}
	return p
}

// Up is the nearest node above i for which is holds, or -1.
func (p *Page) Up(i int, is func(*Node) bool) int {
	for i = p.Nodes[i].Parent; i >= 0; i = p.Nodes[i].Parent {
		if is(&p.Nodes[i]) {
			return i
		}
	}
	return -1
}

// Item is the row, list item, article or fieldset that holds i: what is written there is
// about the same thing as i. -1 when there is none.
func (p *Page) Item(i int) int {
	return p.Up(i, func(n *Node) bool {
		return n.Role == "row" || n.Role == "listitem" || n.Role == "article" || n.Role == "group"
	})
}

// Dialog is the innermost dialog that holds i, or -1.
func (p *Page) Dialog(i int) int {
	return p.Up(i, func(n *Node) bool { return n.Role == "dialog" || n.Role == "alertdialog" })
}

// Landmark is the nearest part of the page with a role of its own that holds i, or -1.
func (p *Page) Landmark(i int) int {
	return p.Up(i, func(n *Node) bool {
		switch n.Role {
		case "banner", "navigation", "main", "complementary", "contentinfo", "search", "form", "region", "dialog", "alertdialog":
			return true
		}
		return false
	})
}

// Text is all that is written in the subtree of i.
func (p *Page) Text(i int) string {
	var b strings.Builder
	for _, n := range p.Nodes[i:p.Nodes[i].End] {
		if n.Name != "" {
			b.WriteString(n.Name)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// Main is the index of the main part of the page; 0 when there is none, -1 on an empty page.
func (p *Page) Main() int {
	for i := range p.Nodes {
		if p.Nodes[i].Role == "main" {
			return i
		}
	}
	if len(p.Nodes) == 0 {
		return -1
	}
	return 0
}

// TopDialog is the last open dialog of the page, or -1: what is opened last lies on top.
func (p *Page) TopDialog() int {
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		if r := p.Nodes[i].Role; r == "dialog" || r == "alertdialog" {
			return i
		}
	}
	return -1
}
