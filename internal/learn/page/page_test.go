package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pommelgym/pommel/gym"
)

const sample = `RootWebArea 'Cart · Shop', focused
	[1] banner ''
		[2] combobox 'Search products' value='lamp', expanded=False, focused
	[3] main ''
		[4] heading "The owner's cart", level=1
		[5] table 'Articles'
			[6] row 'Article | Quantity', header
			[7] row 'Birch Tote | 2'
				[8] spinbutton 'Quantity of "Birch Tote"' value='2', type='number', min='1', max='20', required
				[9] button 'Remove Birch Tote', disabled
			[10] row 'it\'s "both" | 1'
		[11] combobox 'Sort' value='Best match', options=['Best match', 'Price: low, then high', 'Gone' (disabled)]
		[12] checkbox 'In stock only', checked='true'
		StaticText 'Total: $12.00'
	[13] dialog 'Really?', modal
		[14] button 'Yes'
(page of 1280 x 1965 px; in view: x 0 to 1280, y 0 to 720)`

func parse(t *testing.T) *Page {
	t.Helper()
	return Parse(&gym.Observation{URL: "http://x/cart", Text: sample, Elements: []gym.Element{{Bid: "8", Tag: "input", Interactive: true, InViewport: true}}})
}

func find(t *testing.T, p *Page, bid string) int {
	t.Helper()
	for i := range p.Nodes {
		if p.Nodes[i].Bid == bid {
			return i
		}
	}
	t.Fatalf("no node [%s]", bid)
	return -1
}

func TestParseReadsLines(t *testing.T) {
	t.Parallel()
	p := parse(t)
	if got, want := len(p.Nodes), 16; got != want {
		t.Errorf("%d nodes; expected %d", got, want)
	}
	for _, c := range []struct {
		bid  string
		want Node
	}{
		{"4", Node{Role: "heading", Name: "The owner's cart"}},
		{"8", Node{Role: "spinbutton", Name: `Quantity of "Birch Tote"`, Value: "2", Type: "number", Required: true, Tag: "input", Interactive: true, InViewport: true}},
		{"9", Node{Role: "button", Name: "Remove Birch Tote", Disabled: true}},
		{"10", Node{Role: "row", Name: `it's "both" | 1`}},
		{"11", Node{Role: "combobox", Name: "Sort", Value: "Best match", Options: []string{"Best match", "Price: low, then high"}}},
		{"12", Node{Role: "checkbox", Name: "In stock only", Checked: true}},
		{"13", Node{Role: "dialog", Name: "Really?", Modal: true}},
	} {
		got := p.Nodes[find(t, p, c.bid)]
		got.Bid, got.Parent, got.Depth, got.End = "", 0, 0, 0
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("[%s] (-expected +read):\n%s", c.bid, d)
		}
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	p := parse(t)
	item := p.Item(find(t, p, "9"))
	if item < 0 || p.Nodes[item].Bid != "7" {
		t.Fatalf("the item of [9] is %d; expected the row [7]", item)
	}
	if got, want := p.Text(item), `Birch Tote | 2 Quantity of "Birch Tote" Remove Birch Tote `; got != want {
		t.Errorf("text of [7] is %q; expected %q", got, want)
	}
	if at := p.Landmark(find(t, p, "12")); p.Nodes[at].Role != "main" {
		t.Errorf("landmark of [12] is %s", p.Nodes[at].Role)
	}
	if d := p.TopDialog(); d < 0 || p.Nodes[d].Bid != "13" || p.Dialog(find(t, p, "14")) != d {
		t.Errorf("dialog of [14] was not found")
	}
	if end := p.Nodes[0].End; end != len(p.Nodes) {
		t.Errorf("the root ends at %d of %d", end, len(p.Nodes))
	}
}

// FuzzParse: a hostile page must not end a training.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("[1] link 'open")
	f.Add("\t\t\t[x] row '\\")
	f.Fuzz(func(t *testing.T, text string) {
		p := Parse(&gym.Observation{Text: text})
		for i := range p.Nodes {
			if n := p.Nodes[i]; n.Parent >= i || n.End <= i || n.End > len(p.Nodes) {
				t.Fatalf("node %d has parent %d, end %d of %d", i, n.Parent, n.End, len(p.Nodes))
			}
			p.Text(i)
			p.Item(i)
		}
	})
}
