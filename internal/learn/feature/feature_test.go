package feature

import (
	"slices"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/candidate"
)

// observe makes an observation of lines in which all links, buttons and fields can be used.
func observe(url string, lines ...string) *gym.Observation {
	o := &gym.Observation{URL: url, Text: strings.Join(lines, "\n")}
	for _, l := range lines {
		l = strings.TrimLeft(l, "\t")
		bid, rest, _ := strings.Cut(strings.TrimPrefix(l, "["), "] ")
		role, _, _ := strings.Cut(rest, " ")
		use := slices.Contains([]string{"link", "button", "textbox"}, role)
		o.Elements = append(o.Elements, gym.Element{Bid: bid, Role: role, Interactive: use, InViewport: true})
	}
	return o
}

func pick(t *testing.T, list []candidate.Candidate, action string) int {
	t.Helper()
	i := slices.IndexFunc(list, func(c candidate.Candidate) bool { return c.Action == action })
	if i < 0 {
		t.Fatalf("no candidate %s", action)
	}
	return i
}

func column(in *Input, i, at int) float32 { return in.Dense[i*Columns+at] }

func cart() *gym.Observation {
	return observe("http://x/cart", "[1] main ''", "\t[2] row 'Birch Tote | 2'", "\t\t[3] button 'Remove'", "\t[4] row 'Lamp | 1'", "\t\t[5] button 'Remove'")
}

// TestRowsAreToldApart: two buttons of one name differ by the row that they stand in.
func TestRowsAreToldApart(t *testing.T) {
	t.Parallel()
	m := NewMemory(`Take "Lamp" out of your cart.`, 20)
	list := m.See(cart())
	in := m.Encode(list)
	tote, lamp := pick(t, list, `click("3")`), pick(t, list, `click("5")`)
	if column(in, lamp, atOverlap+5) != 1 || column(in, tote, atOverlap+6) != 1 {
		t.Errorf("the lamp's row has %v, the tote's %v; expected 1 and 1", column(in, lamp, atOverlap+5), column(in, tote, atOverlap+6))
	}
	if slices.Equal(in.Words[tote], in.Words[lamp]) {
		t.Error("the words of both rows are the same")
	}
}

// TestFruitlessActionsAreNotRepeated: what changed nothing is no candidate in the same place.
func TestFruitlessActionsAreNotRepeated(t *testing.T) {
	t.Parallel()
	m := NewMemory(`Take "Lamp" out of your cart.`, 20)
	list := m.See(cart())
	n := len(list)
	m.Act(list[pick(t, list, `click("3")`)])
	again := m.See(cart())
	if len(again) != n-1 {
		t.Errorf("%d candidates after a click that did nothing; expected %d", len(again), n-1)
	}
	// After a wait it may be tried again.
	m.Act(candidate.Candidate{Op: candidate.Wait, Node: -1, Slot: -1, Key: "wait"})
	if waited := m.See(cart()); len(waited) != n {
		t.Errorf("%d candidates after waiting; expected %d", len(waited), n)
	}
}

// TestCirclesEnd: a way that led back is taken twice, and waiting has an end.
func TestCirclesEnd(t *testing.T) {
	t.Parallel()
	m := NewMemory(`Take "Lamp" out of your cart.`, 20)
	asked := observe("http://x/cart", "[1] main ''", "[7] dialog 'Are you sure?'", "\t[8] button 'Remove it'", "\t[9] button 'Cancel'")
	offers := func(list []candidate.Candidate, action string) bool {
		return slices.ContainsFunc(list, func(c candidate.Candidate) bool { return c.Action == action })
	}
	for turn := range 3 {
		list := m.See(cart())
		if !offers(list, `click("3")`) {
			if turn != 2 {
				t.Fatalf("turn %d: the button that asks is left out", turn)
			}
			break
		}
		m.Act(list[pick(t, list, `click("3")`)])
		list = m.See(asked)
		if got := offers(list, `click("9")`); got != (turn < 2) || !offers(list, `click("8")`) {
			t.Fatalf("turn %d: Cancel is offered: %v", turn, got)
		}
		m.Act(list[pick(t, list, `click("9")`)])
	}
	m.See(cart())
	for range waits {
		m.Act(candidate.Candidate{Op: candidate.Wait, Node: -1, Slot: -1, Key: "wait"})
		m.See(cart())
	}
	if offers(m.See(cart()), "noop(2000)") {
		t.Errorf("after %d waits it can still be waited", waits)
	}
}

// TestSeedsShareWords: what is learnt of one product holds for another.
func TestSeedsShareWords(t *testing.T) {
	t.Parallel()
	words := func(product string) []uint32 {
		m := NewMemory(`Take "`+product+`" out of your cart.`, 20)
		o := observe("http://x/cart", "[1] main ''", "\t[3] button 'Remove "+product+"'")
		list := m.See(o)
		return m.Encode(list).Words[pick(t, list, `click("3")`)]
	}
	if !slices.Equal(words("Lamp"), words("Birch Tote")) {
		t.Error("the same button has other words for another product")
	}
}

func TestFormsAreFollowed(t *testing.T) {
	t.Parallel()
	m := NewMemory(`Change the city in your profile to "Oakhaven".`, 20)
	form := func(city string) *gym.Observation {
		value := ""
		if city != "" {
			value = " value='" + city + "'"
		}
		return observe("http://x/profile", "[1] main ''", "\t[2] textbox 'City'"+value, "\t[3] textbox 'Street'", "\t[4] button 'Save'", "\t[5] button 'Delete'")
	}
	list := m.See(form(""))
	in := m.Encode(list)
	city, street := pick(t, list, `fill("2", "Oakhaven")`), pick(t, list, `fill("3", "Oakhaven")`)
	if column(in, city, atSlot+1) != 1 || column(in, street, atSlot+1) != 0 {
		t.Error("the label City stands before the value in the instruction; Street does not")
	}
	m.Act(list[city])
	list = m.See(form("Oakhaven"))
	in = m.Encode(list)
	if column(in, pick(t, list, `click("4")`), atForm) != 1 || column(in, pick(t, list, `click("5")`), atForm) != 0 {
		t.Error("Save is the first button behind the field that was filled; Delete is not")
	}
	if column(in, pick(t, list, `fill("3", "Oakhaven")`), atSlot+4) != 1 {
		t.Error("the value was used")
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	m := NewMemory("Find a product that has a rating of 4.2 out of 5 or more.", 20)
	for text, want := range map[string][2]bool{"4.4 out of 5 (21 reviews)": {true, false}, "3.9 out of 5": {false, true}, "4 pieces": {false, false}} {
		if above, below := m.measure(text); above != want[0] || below != want[1] {
			t.Errorf("%s: above %v, below %v", text, above, below)
		}
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://x/": "/", "http://x/p/birch-tote": "/p/*", "http://x/account/orders/SO-10138/return?q=1": "/account/orders/*/return", "http://x/c/lighting": "/c/*",
	} {
		if got := KindOf(url); got != want {
			t.Errorf("%s is of kind %s; expected %s", url, got, want)
		}
	}
}

func TestPriorFitsColumns(t *testing.T) {
	t.Parallel()
	if got := len(Prior()); got != Columns {
		t.Errorf("the prior has %d columns; expected %d", got, Columns)
	}
	if atAsked+3 != ownColumns {
		t.Errorf("the groups end at column %d; expected %d", atAsked+3, ownColumns)
	}
}
