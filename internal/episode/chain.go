package episode

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"math"
	"slices"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/perturb"
	"github.com/pommelgym/pommel/internal/postgres"
)

// chain is a hash over everything that an episode has shown and done so far. Equal
// chains mean equal episodes, whichever views were asked for.
type chain [sha256.Size]byte

func (c *chain) String() string { return hex.EncodeToString(c[:]) }

// add takes one step in. Screenshots, HTML and the lists of elements stay out: they are
// there only when a caller asks for them, and the text names every element.
func (c *chain) add(o *browser.Observation, reward float64, changes []Change, struck []perturb.Event) {
	h := fields{sha256.New()}
	_, _ = h.Write(c[:])
	h.observation(o)
	h.number(reward)
	h.count(len(changes))
	for _, ch := range changes {
		h.text(ch.Table)
		h.text(ch.Op)
		h.row(ch.Old)
		h.row(ch.New)
	}
	h.struck(struck)
	h.Sum(c[:0])
}

// fields writes values so that no two different lists of them give the same bytes.
type fields struct{ hash.Hash }

func (h fields) count(n int) { h.word(uint64(n)) }

func (h fields) number(f float64) { h.word(math.Float64bits(f)) }

func (h fields) word(w uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], w)
	_, _ = h.Write(b[:])
}

func (h fields) text(s string) {
	h.count(len(s))
	_, _ = h.Write([]byte(s))
}

func (h fields) observation(o *browser.Observation) {
	h.text(o.URL)
	h.text(o.Title)
	h.text(o.FocusedBid)
	h.text(o.Text)
	h.count(len(o.Tabs))
	for _, t := range o.Tabs {
		h.text(t.URL)
		h.text(t.Title)
	}
	if o.Dialog != nil {
		h.text(o.Dialog.Type)
		h.text(o.Dialog.Message)
	}
	if o.LastActionError != nil {
		h.text(string(o.LastActionError.Kind))
	}
	h.number(o.VirtualTimeMS)
}

func (h fields) row(r map[string]*string) {
	h.count(len(r))
	for _, name := range slices.Sorted(maps.Keys(r)) {
		h.text(name)
		if cell := r[name]; cell != nil {
			h.text(*cell)
		} else {
			h.number(math.NaN()) // no length of a text
		}
	}
}

// struck takes perturbations in. None at all leave no mark: an episode in which nothing
// struck is the same as one without a profile.
func (h fields) struck(events []perturb.Event) {
	if len(events) == 0 {
		return
	}
	h.count(len(events))
	for _, e := range events {
		h.word(uint64(e.VirtualMS))
		h.count(e.Step)
		h.text(e.Rule)
		h.text(e.Kind)
		h.count(e.At)
		h.text(e.Target)
		h.text(e.Seen)
	}
}

func changesFrom(in []postgres.Change) []Change {
	var out []Change
	for _, c := range in {
		table := c.Table
		if c.Schema != "public" {
			table = c.Schema + "." + c.Table
		}
		out = append(out, Change{Table: table, Op: c.Op, Old: cells(c.OldRow), New: cells(c.NewRow)})
	}
	return out
}

func cells(r postgres.Row) map[string]*string {
	if r.Columns == nil {
		return nil
	}
	out := make(map[string]*string, len(r.Columns))
	for i, c := range r.Columns {
		out[c.Name] = r.Text[i]
	}
	return out
}
