package feature

import (
	"hash/fnv"
	"net/url"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/candidate"
	"github.com/pommelgym/pommel/internal/learn/instruction"
	"github.com/pommelgym/pommel/internal/learn/page"
)

// Memory is what a policy remembers of the running episode.
type Memory struct {
	In    *instruction.Instruction
	step  int
	limit int // the steps that an episode is reckoned to have

	page *page.Page
	// Kind is the page's address without what differs from thing to thing.
	Kind    string
	look    uint64 // of all that the page shows
	arrived bool   // the page is another than before
	changed bool   // the last action changed what the page shows
	failed  string // the kind of the last action's error
	trouble trouble
	alerts  map[string]bool // of the page
	dialog  bool
	before  map[string]bool // bids of the observation before

	last    *candidate.Candidate
	lastTag string // operation and name of the last action
	// lastDeed is its operation and the role of what it was done to, lastLabel that role and the name.
	lastDeed, lastLabel string
	tried               map[string]int
	named               map[string]int
	visits              map[string]int
	looks               map[uint64]int
	dead                map[uint64]map[string]int
	gone                map[uint64]map[string]int
	spared              map[uint64]map[string]int
	used                map[int]bool    // slots that were typed or chosen
	filled              map[string]bool // fields that were typed into since the page was reached
	lastBid             string          // of the field typed into last on this page
}

// NewMemory begins an episode that is reckoned to have limit steps.
func NewMemory(instructionText string, limit int) *Memory {
	return &Memory{
		In: instruction.Parse(instructionText), limit: max(1, limit), before: map[string]bool{},
		tried: map[string]int{}, named: map[string]int{}, visits: map[string]int{}, looks: map[uint64]int{},
		dead: map[uint64]map[string]int{}, gone: map[uint64]map[string]int{}, spared: map[uint64]map[string]int{}, used: map[int]bool{}, filled: map[string]bool{},
	}
}

// See takes in an observation and gives the candidates that are worth a try.
func (m *Memory) See(o *gym.Observation) []candidate.Candidate {
	p := page.Parse(o)
	look := lookOf(p, o)
	kind := KindOf(o.URL)
	m.before = map[string]bool{}
	if m.page != nil {
		for i := range m.page.Nodes {
			m.before[m.page.Nodes[i].Bid] = true
		}
	}
	m.changed = m.page == nil || look != m.look
	m.arrived = m.page == nil || p.URL != m.page.URL || m.last != nil && m.last.Op == candidate.Reload
	m.failed = ""
	if o.LastActionError != nil {
		m.failed = string(o.LastActionError.Kind)
	}
	before := m.look
	if m.arrived {
		m.visits[kind]++
		m.filled, m.lastBid = map[string]bool{}, ""
	}
	m.page, m.look, m.Kind, m.dialog = p, look, kind, o.Dialog != nil || p.TopDialog() >= 0
	alerts := m.alertsOf()
	m.trouble, m.alerts = m.wrong(alerts), alerts
	m.fruit(before)
	m.looks[look]++
	return m.worth(candidate.List(p, m.In, o, m.trouble != none))
}

// fruit notes what came of the last action, which was made on a page that looked like before: what
// changed nothing is not tried again in the same place, and nobody goes round in circles for long.
func (m *Memory) fruit(before uint64) {
	switch {
	case m.last == nil:
	case m.changed && m.last.Op == candidate.Click && m.trouble.hurts() && m.spared[before][m.last.Key] < patience:
		count(m.spared, before, m.last.Key) // it was not the way that was wrong
	case m.changed || m.last.Op == candidate.Wait:
		count(m.gone, before, m.last.Key)
		if !m.changed {
			delete(m.dead, before) // what failed a while ago may not now
		}
	default:
		count(m.dead, before, m.last.Key)
	}
}

func count(in map[uint64]map[string]int, look uint64, key string) {
	if in[look] == nil {
		in[look] = map[string]int{}
	}
	in[look][key]++
}

const (
	// patience is how often an action that fails may be tried in the same place: what lies in its way may go.
	patience = 2
	// rounds is how often the same way may be taken from the same place, waits how often it may be waited there.
	rounds, waits = 2, 6
)

// worth leaves out what has changed nothing here before, and ways that led back here.
func (m *Memory) worth(all []candidate.Candidate) []candidate.Candidate {
	dead, gone := m.dead[m.look], m.gone[m.look]
	if len(dead) == 0 && len(gone) == 0 {
		return all
	}
	limit := 1
	if m.failed != "" {
		limit = patience
	}
	var out []candidate.Candidate
	for _, c := range all {
		if dead[c.Key] < limit && gone[c.Key] < m.most(&c) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// most is how often a candidate that does something may be taken in the same place.
func (m *Memory) most(c *candidate.Candidate) int {
	switch {
	case c.Op == candidate.Wait, m.trouble == broken && c.Node < 0:
		return waits
	case c.Op == candidate.Fill && m.filled[m.page.Nodes[c.Node].Bid]:
		return 1 // it would write over what was written over it
	}
	return rounds
}

// Act notes the candidate that was chosen.
func (m *Memory) Act(c candidate.Candidate) {
	m.step++
	m.last = &c
	m.tried[c.Key]++
	m.lastTag, m.lastDeed, m.lastLabel = c.Op.String(), c.Op.String(), ""
	if c.Node >= 0 {
		n := &m.page.Nodes[c.Node]
		m.lastDeed, m.lastLabel = m.lastDeed+" "+n.Role, n.Role+"|"+n.Name
		m.named[m.lastLabel]++
		m.lastTag += " " + strings.Join(m.masked(n.Name), " ")
		switch c.Op {
		case candidate.Fill, candidate.Select:
			m.filled[n.Bid] = true
			m.lastBid = n.Bid
		case candidate.Click:
			if n.Role == "radio" || n.Role == "checkbox" {
				m.lastBid = n.Bid
			}
		}
	}
	if c.Slot >= 0 {
		m.used[c.Slot] = true
	}
}

// Novel says how often this page, as it looks, has been seen in this episode.
func (m *Memory) Novel() bool { return m.looks[m.look] == 1 }

// Look is a hash of what the page shows.
func (m *Memory) Look() uint64 { return m.look }

// Step is how many actions were chosen.
func (m *Memory) Step() int { return m.step }

// lookOf hashes what a page shows. What merely moved or has the focus makes no difference.
func lookOf(p *page.Page, o *gym.Observation) uint64 {
	h := fnv.New64a()
	write := func(s string) {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	write(p.URL)
	if o.Dialog != nil {
		write(o.Dialog.Message)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		write(n.Role)
		write(n.Name)
		write(n.Value)
		flags := []byte{0}
		for bit, on := range []bool{n.Checked, n.Disabled, n.Expanded} {
			if on {
				flags[0] |= 1 << bit
			}
		}
		_, _ = h.Write(flags)
	}
	return h.Sum64()
}

// KindOf is an address without host, query, and what names a single thing.
func KindOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	for i, s := range parts {
		if strings.ContainsAny(s, "0123456789-_.") || len(s) > 14 || i > 0 && len(parts[i-1]) == 1 && parts[i-1] != "*" {
			parts[i] = "*"
		}
	}
	return "/" + strings.Join(parts, "/")
}

// BidOf is the bid of the element of a candidate of the page that was seen last.
func (m *Memory) BidOf(c candidate.Candidate) string {
	if c.Node < 0 {
		return ""
	}
	return m.page.Nodes[c.Node].Bid
}
