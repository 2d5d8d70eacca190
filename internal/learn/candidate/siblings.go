package candidate

import (
	"github.com/pommelgym/pommel/internal/learn/instruction"
	"github.com/pommelgym/pommel/internal/learn/page"
)

// siblings counts things of one kind that stand in a row: the links of a list, the boxes
// of a filter. Of many, only those are worth a try that the instruction names, and the first.
type siblings struct {
	group map[int]groupKey
	many  map[groupKey]int
	shown map[groupKey]int
	named map[int]bool
}

type groupKey struct {
	container int
	role      string
}

// Crowd is how many things of one kind make a crowd.
const Crowd = 8

func (s *siblings) count(p *page.Page, in *instruction.Instruction, from, to int) {
	s.group, s.many, s.shown, s.named = map[int]groupKey{}, map[groupKey]int{}, map[groupKey]int{}, map[int]bool{}
	for i := from; i < to; i++ {
		n := &p.Nodes[i]
		if !n.Interactive || Typed(n) || len(n.Options) > 0 {
			continue
		}
		k := groupKey{container(p, i), n.Role}
		s.group[i] = k
		s.many[k]++
		s.named[i] = names(p, in, i)
	}
}

// container is the list, table or landmark that holds a node.
func container(p *page.Page, i int) int {
	return p.Up(i, func(n *page.Node) bool {
		switch n.Role {
		case "list", "table", "listbox", "grid", "menu", "navigation", "region", "main", "complementary", "dialog":
			return true
		}
		return false
	})
}

// names says that the instruction speaks of a node, or of the row or card that it is in.
func names(p *page.Page, in *instruction.Instruction, i int) bool {
	if in.Mentions(p.Nodes[i].Name) {
		return true
	}
	item := p.Item(i)
	return item >= 0 && in.SlotsIn(p.Text(item)) > 0
}

// crowded says that i is one of many and not worth a candidate.
func (s *siblings) crowded(i int) bool {
	k, ok := s.group[i]
	if !ok || s.many[k] <= Crowd || s.named[i] {
		return false
	}
	s.shown[k]++
	return s.shown[k] > maxUnnamed
}
