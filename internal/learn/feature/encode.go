// Package feature turns an observation and what is remembered of the episode into
// numbers: for each candidate a short dense vector and the places of its words in a
// hashed table (feature hashing: Weinberger et al., "Feature Hashing for Large Scale
// Multitask Learning", ICML 2009), and one such pair for the whole state.
//
// The features name no task and no world: they say how a thing relates to the instruction,
// where it stands, and what was done before.
package feature

import (
	"slices"

	"github.com/pommelgym/pommel/internal/learn/candidate"
	"github.com/pommelgym/pommel/internal/learn/instruction"
	"github.com/pommelgym/pommel/internal/learn/page"
)

// Version is raised when features change their meaning: a policy fits one version only.
const Version = 2

// Table is the size of the hashed table.
const Table = 1 << 15

// Input is one decision: a state and its candidates.
type Input struct {
	N     int
	Dense []float32 // N rows of Dense columns
	Words [][]uint32
	State []float32
	// StateWords are places in the same table.
	StateWords []uint32
}

// row builds a dense vector; each call of put takes the next column.
type row struct {
	v  []float32
	at int
}

func (r *row) put(x float64) {
	r.v[r.at] = float32(x)
	r.at++
}

func (r *row) bit(on bool) {
	if on {
		r.v[r.at] = 1
	}
	r.at++
}

func (r *row) oneOf(i, n int) {
	if i >= 0 && i < n {
		r.v[r.at+i] = 1
	}
	r.at += n
}

// Encode describes the candidates that See gave.
func (m *Memory) Encode(list []candidate.Candidate) *Input {
	in := &Input{N: len(list), Dense: make([]float32, len(list)*Columns), Words: make([][]uint32, len(list)), State: make([]float32, StateColumns)}
	v := m.survey(list)
	s := row{v: in.State}
	m.state(&s, v)
	in.StateWords = m.stateWords()
	for i := range list {
		r := row{v: in.Dense[i*Columns : (i+1)*Columns]}
		m.dense(&r, v, i)
		copy(r.v[r.at:], in.State)
		in.Words[i] = m.words(v, i)
	}
	return in
}

// view is what all candidates of a state share.
type view struct {
	list     []candidate.Candidate
	mainText string
	// items are the texts of the rows and cards that hold the candidates; slotsIn counts the slots in them.
	items   []string
	slotsIn []int
	best    int // most slots in any item
	pending bool
	// after is how many buttons stand between the field typed into last and each candidate; -1 before it.
	after []int
	// open counts fields that a slot fits by its words and that were not filled.
	open  int
	shown float64 // part of the slots that the page shows
}

func (m *Memory) survey(list []candidate.Candidate) *view {
	v := &view{list: list, items: make([]string, len(list)), slotsIn: make([]int, len(list)), after: make([]int, len(list)), pending: len(m.filled) > 0 || m.lastBid != ""}
	if at := m.page.Main(); at >= 0 {
		v.mainText = lower(m.page.Text(at))
	}
	texts := map[int]int{}
	node := -1
	if m.lastBid != "" {
		node = slices.IndexFunc(m.page.Nodes, func(n page.Node) bool { return n.Bid == m.lastBid })
	}
	buttons := 0
	for i, c := range list {
		v.after[i] = -1
		if c.Node < 0 {
			continue
		}
		if at := m.page.Item(c.Node); at >= 0 {
			v.items[i] = m.page.Text(at)
			if _, ok := texts[at]; !ok {
				texts[at] = m.In.SlotsIn(v.items[i])
			}
			v.slotsIn[i] = texts[at]
			v.best = max(v.best, v.slotsIn[i])
		}
		n := &m.page.Nodes[c.Node]
		if node >= 0 && c.Node > node && n.Role == "button" {
			v.after[i] = buttons
			buttons++
		}
		if c.Op == candidate.Fill && !m.filled[n.Bid] && m.fits(c) {
			v.open++
		}
	}
	v.shown = m.shown(v.mainText)
	return v
}

// shown is the part of the slots that a text holds.
func (m *Memory) shown(text string) float64 {
	n, of := 0, 0
	for i := range m.In.Slots {
		s := &m.In.Slots[i]
		if s.Part {
			continue
		}
		of++
		if instruction.Contains(text, s.Low) {
			n++
		}
	}
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// fits says that a field's label and the words beside a slot have one in common.
func (m *Memory) fits(c candidate.Candidate) bool {
	s := &m.In.Slots[c.Slot]
	for _, w := range instruction.Tokens(m.page.Nodes[c.Node].Name) {
		if slices.Contains(s.Before, w) || slices.Contains(s.After, w) {
			return true
		}
	}
	return false
}
