package feature

import (
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/learn/candidate"
	"github.com/pommelgym/pommel/internal/learn/instruction"
)

// hasher gathers places in the table. FNV-1a over the parts of a feature: fixed for all
// time, because stored policies depend on it.
type hasher struct {
	out  []uint32
	seen map[uint32]bool
}

func (h *hasher) add(parts ...string) {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	for _, p := range parts {
		for i := 0; i < len(p); i++ {
			sum = (sum ^ uint64(p[i])) * prime
		}
		sum = (sum ^ 0x1f) * prime
	}
	at := uint32(sum^sum>>32) % Table
	if !h.seen[at] {
		h.seen[at] = true
		h.out = append(h.out, at)
	}
}

// masked are a text's words with what belongs to this episode alone taken out: the words
// of slots become their kind, numbers a sign. What is learnt with one seed holds for others.
func (m *Memory) masked(text string) []string {
	low := lower(text)
	var out []string
	for i := range m.In.Slots {
		s := &m.In.Slots[i]
		if s.Kind != instruction.Number && instruction.Contains(low, s.Low) {
			low = strings.ReplaceAll(low, s.Low, " ")
			out = append(out, "<"+s.Kind.String()+">")
		}
	}
	for _, w := range instruction.Tokens(low) {
		switch {
		case w[0] >= '0' && w[0] <= '9':
			out = append(out, "#")
		case len(out) < maxWords:
			out = append(out, w)
		}
	}
	return out
}

const maxWords = 6

// words are the hashed features of candidate i.
func (m *Memory) words(v *view, i int) []uint32 {
	c := &v.list[i]
	h := hasher{seen: map[uint32]bool{}}
	op := c.Op.String()
	if c.Node < 0 {
		h.add(op, m.Kind)
		h.add(op, m.failed)
		h.add("trouble", op, m.trouble.String())
		h.add("trouble after", op, m.trouble.String(), m.lastDeed)
		h.add("takes no clicks", op, strconv.FormatBool(m.trouble == busy || m.trouble == held))
		return h.out
	}
	n := &m.page.Nodes[c.Node]
	name := m.masked(n.Name)
	if len(name) == 0 {
		name = []string{"?"}
	}
	if c.Op == candidate.Answer {
		name = m.masked(c.Label)
	}
	place := ""
	if at := m.page.Landmark(c.Node); at >= 0 {
		place = m.page.Nodes[at].Role + " " + strings.Join(m.masked(m.page.Nodes[at].Name), " ")
	}
	slot := ""
	if c.Slot >= 0 {
		slot = m.In.Slots[c.Slot].Kind.String()
	}
	whole := strings.Join(name, " ")
	h.add("place", op, place)
	h.add("place rank", op, place, n.Role, rankOf(v, i))
	h.add("whole", op, whole, m.Kind)
	h.add("whole last", op, whole, m.lastTag)
	h.add("whole pending", op, whole, strconv.FormatBool(v.pending), m.Kind)
	h.add("value", op, whole, strings.Join(m.masked(c.Value), " "))
	h.add("slot", op, slot, whole)
	for _, w := range name {
		h.add("name", op, n.Role, w)
		for _, t := range m.In.Words {
			h.add("cross", op, w, t)
		}
	}
	if m.page.Dialog(c.Node) >= 0 {
		// A window that answers a press is another thing than one that came by itself.
		h.add("dialog after", op, n.Role, m.lastDeed, sideOf(m.beside(v, i)))
		h.add("dialog", op, n.Role, whole)
		for _, w := range name {
			h.add("dialog name", op, n.Role, w)
		}
	}
	if m.trouble != none {
		h.add("trouble", op, m.trouble.String(), n.Role, strconv.FormatBool(m.last != nil && m.last.Key == c.Key))
		h.add("trouble name", op, m.trouble.String(), whole)
	}
	m.valueWords(&h, c, op, whole)
	for _, w := range m.masked(firstWords(v.items[i])) {
		h.add("item", op, n.Role, w)
	}
	return h.out
}

// sideOf names where a button stands among those of its dialog.
func sideOf(before, after int) string {
	switch {
	case before == 0 && after == 0:
		return "only"
	case before == 0:
		return "first"
	case after == 0:
		return "last"
	}
	return "between"
}

// valueWords pair a field with the words beside its value.
func (m *Memory) valueWords(h *hasher, c *candidate.Candidate, op, whole string) {
	if c.Slot >= 0 {
		s := &m.In.Slots[c.Slot]
		for k, w := range s.Before {
			h.add("before", op, whole, w)
			if k == 0 {
				h.add("just before", op, whole, w)
			}
		}
		for _, w := range s.After {
			h.add("after", op, whole, w)
		}
		return
	}
	if c.Op == candidate.Select || c.Op == candidate.Answer {
		for _, t := range m.In.Words {
			h.add("choice", op, c.Label, strings.Join(m.masked(c.Value), " "), t)
		}
	}
}

// firstWords bounds a text; pages hold rows of any length.
func firstWords(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most]
	}
	return s
}

// rankOf is a candidate's number among those of its role that stand in the same part, up to 3.
func rankOf(v *view, i int) string {
	rank := 0
	for j := i - 1; j >= 0 && rank < 3; j-- {
		if v.list[j].Op == v.list[i].Op && v.list[j].Node != v.list[i].Node {
			rank++
		}
	}
	return strconv.Itoa(rank)
}

// stateWords are the hashed features of the state, for the value.
func (m *Memory) stateWords() []uint32 {
	h := hasher{seen: map[uint32]bool{}}
	h.add("kind", m.Kind)
	h.add("kind after", m.Kind, m.lastTag)
	for _, t := range m.In.Words {
		h.add("ask", t)
		h.add("ask at", t, m.Kind)
	}
	return h.out
}
