package feature

import (
	"slices"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/candidate"
)

// product is a page with more controls than an error page has.
func product(button string, more ...string) *gym.Observation {
	return observe("http://x/p/lamp", append([]string{
		"[1] main ''", "\t[2] link 'Start'", "\t[3] link 'Cart'", "\t[4] link 'Orders'", "\t[5] link 'Help'", "\t[6] textbox 'Quantity'", "\t[7] button 'Add to cart'" + button,
	}, more...)...)
}

func waitable(list []candidate.Candidate) bool {
	return slices.ContainsFunc(list, func(c candidate.Candidate) bool { return c.Op == candidate.Wait })
}

// TestTroubleIsSeen: what has gone wrong is told apart, and only then one may wait or load again.
func TestTroubleIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, then *gym.Observation
		want        trouble
	}{
		"a request is under way":      {product(""), product(", disabled=True"), busy},
		"a button does not work yet":  {product(", disabled=True"), product(", disabled=True", "\t[8] link 'More'"), held},
		"nothing happened":            {product(""), product(""), still},
		"the server failed":           {product(""), observe("http://x/cart/add", "[1] heading '503 Service Unavailable'", "[2] link 'Home'"), broken},
		"an alert came up":            {product(""), product("", "\t[8] alert 'Sold out'"), alert},
		"the alert was there already": {product("", "\t[8] alert 'Sold out'"), product("", "\t[8] alert 'Sold out'", "\t[9] link 'More'"), none},
		"all is well":                 {product(""), product("", "\t[8] status 'In your cart'"), none},
	} {
		m := NewMemory(`Put "Lamp" into your cart.`, 20)
		list := m.See(c.first)
		if strings.Contains(c.first.Text, "disabled") {
			m.Act(list[pick(t, list, `click("2")`)])
		} else {
			m.Act(list[pick(t, list, `click("7")`)])
		}
		list = m.See(c.then)
		if m.trouble != c.want || waitable(list) != (c.want != none) {
			t.Errorf("%s: trouble %v, waiting is offered: %v; expected %v", name, m.trouble, waitable(list), c.want)
		}
		if at := StateColumns - int(numTroubles) + int(c.want); m.Encode(list).State[at] != 1 {
			t.Errorf("%s: the state's column %d does not say so", name, at)
		}
	}
}

// TestFailuresAreTriedAgain: what failed through no fault of its own is not taken for a circle.
func TestFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	m := NewMemory(`Put "Lamp" into your cart.`, 20)
	tries := 0
	for range 10 {
		list := m.See(product(""))
		if !slices.ContainsFunc(list, func(c candidate.Candidate) bool { return c.Action == `click("7")` }) {
			break
		}
		m.Act(list[pick(t, list, `click("7")`)])
		tries++
		list = m.See(observe("http://x/cart/add", "[1] heading '503 Service Unavailable'"))
		m.Act(list[pick(t, list, "go_back()")])
	}
	if tries != patience+rounds {
		t.Errorf("a request that fails is sent %d times; expected %d", tries, patience+rounds)
	}
}

// TestDialogButtonsAreTold: of a dialog's buttons the first and the last are marked.
func TestDialogButtonsAreTold(t *testing.T) {
	t.Parallel()
	m := NewMemory(`Put "Lamp" into your cart.`, 20)
	list := m.See(product("", "[10] dialog 'Are you sure?'", "\t[11] button 'Cancel'", "\t[12] button 'Yes'"))
	in := m.Encode(list)
	first, last := pick(t, list, `click("11")`), pick(t, list, `click("12")`)
	if column(in, first, atAsked) != 1 || column(in, first, atAsked+1) != 0 || column(in, last, atAsked) != 0 || column(in, last, atAsked+1) != 1 {
		t.Error("the first and the last button of the dialog are not told apart")
	}
}
