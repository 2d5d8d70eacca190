package candidate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/learn/instruction"
	"github.com/pommelgym/pommel/internal/learn/page"
)

// observe makes an observation of lines; everything with a bid and a role that can be used is interactive.
func observe(lines ...string) *gym.Observation {
	o := &gym.Observation{URL: "http://x/", Text: strings.Join(lines, "\n")}
	for i := range page.Parse(o).Nodes {
		n := page.Parse(o).Nodes[i]
		tag := map[string]string{"combobox": "input", "link": "a"}[n.Role]
		if len(n.Options) > 0 {
			tag = "select"
		}
		use := slices.Contains([]string{"link", "button", "textbox", "combobox", "spinbutton", "checkbox"}, n.Role)
		o.Elements = append(o.Elements, gym.Element{Bid: n.Bid, Role: n.Role, Name: n.Name, Tag: tag, Interactive: use})
	}
	return o
}

func list(o *gym.Observation, text string) []string {
	var out []string
	for _, c := range List(page.Parse(o), instruction.Parse(text), o, false) {
		out = append(out, c.Action)
	}
	return out
}

func has(t *testing.T, got []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no candidate %s in:\n%s", w, strings.Join(got, "\n"))
		}
	}
}

func lacks(t *testing.T, got []string, part string) {
	t.Helper()
	for _, g := range got {
		if strings.Contains(g, part) {
			t.Errorf("candidate %s; none with %s expected", g, part)
		}
	}
}

func TestFieldsTakeWhatFits(t *testing.T) {
	t.Parallel()
	got := list(observe(
		"[1] main ''", "\t[2] combobox 'Search'", "\t[3] spinbutton 'Quantity' value='1'", "\t[4] textbox 'From', type='date'",
		"\t[5] combobox 'Colour' value='red', options=['red', 'blue', 'green']", "\t[6] button 'Add', disabled",
	), `Put 3 of "Birch Tote" in blue into your cart in the year 2024.`)
	has(t, got, "fill(\"2\", \"Birch Tote\")\npress(\"2\", \"Enter\")", `fill("3", "3")`, `fill("4", "2024-01-01")`, `fill("4", "2024-12-31")`, `select_option("5", "blue")`)
	lacks(t, got, `fill("3", "Birch Tote")`)
	lacks(t, got, `"green"`)
	lacks(t, got, `click("6")`)
}

// TestCrowds: of many links, those that the instruction names stay, and a few.
func TestCrowds(t *testing.T) {
	t.Parallel()
	lines := []string{"[1] main ''", "\t[2] list ''"}
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("\t\t[%d] link 'Thing %c%c'", 10+i, 'a'+i/10, 'a'+i%10))
	}
	got := list(observe(lines...), `Open "Thing cd".`)
	has(t, got, `click("33")`, `click("10")`)
	if len(got) > 10 {
		t.Errorf("%d candidates for a list of 30 links; expected a few", len(got))
	}
}

func TestModalDialogHidesTheRest(t *testing.T) {
	t.Parallel()
	got := list(observe("[1] main ''", "\t[2] button 'Buy'", "[3] dialog 'Cookies', modal", "\t[4] button 'Accept'"), "Buy it.")
	has(t, got, `click("4")`)
	lacks(t, got, `click("2")`)
}

func TestScriptDialog(t *testing.T) {
	t.Parallel()
	o := observe("[1] main ''", "\t[2] button 'Buy'")
	o.Dialog = &gym.Dialog{Type: "confirm", Message: "Sure?"}
	if got := list(o, "Buy it."); !slices.Equal(got, []string{"dialog_accept()", "dialog_dismiss()"}) {
		t.Errorf("candidates %q; nothing else works while a dialog is open", got)
	}
}

func TestAnswersComeFromThePage(t *testing.T) {
	t.Parallel()
	o := observe("[1] main ''", "\t[2] list ''", "\t\t[3] term 'Shipping'", "\t\t[4] definition '$4.95'", "\t\t[5] term 'Total'", "\t\t[6] definition '$1,207.92'")
	got := list(o, "What did your order SO-10484 cost in total? Answer with the amount in US dollars.")
	has(t, got, `finish("1207.92")`, `finish("4.95")`)
	for _, c := range List(page.Parse(o), instruction.Parse("What is the total? Answer with the amount in US dollars."), o, false) {
		if c.Value == "1207.92" && c.Label != "Total" {
			t.Errorf("the answer is called %q; expected Total", c.Label)
		}
	}
	lacks(t, list(o, "Put it into your cart."), "finish")
}

// TestActionsParse: every candidate is an action of the grammar.
func TestActionsParse(t *testing.T) {
	t.Parallel()
	o := observe("[1] main ''", "\t[2] textbox 'He said \"no\"'", "\t[3] button 'x'")
	o.LastActionError = &gym.ActionError{}
	for _, a := range list(o, `Type "it's \ here" and 'that'.`) {
		if _, err := action.Parse(a); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}
