package action

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	type args = map[string]any
	left := func(more args) args {
		more["button"], more["modifiers"] = "left", []any{}
		return more
	}
	for in, want := range map[string][]Call{
		`click('12')`:                                   {{Name: "click", Args: left(args{"bid": "12"})}},
		`click("a12", button="right")`:                  {{Name: "click", Args: args{"bid": "a12", "button": "right", "modifiers": []any{}}}},
		`click(12)`:                                     {{Name: "click", Args: left(args{"bid": "12"})}},
		`click(selector="#submit-order")`:               {{Name: "click", Args: left(args{"selector": "#submit-order"})}},
		`click("#submit-order")`:                        {{Name: "click", Args: left(args{"selector": "#submit-order"})}},
		`click("text=Add to cart")`:                     {{Name: "click", Args: left(args{"selector": "text=Add to cart"})}},
		`click('3', 'left', ['Shift', "Alt"],)`:         {{Name: "click", Args: args{"bid": "3", "button": "left", "modifiers": []any{"Shift", "Alt"}}}},
		`fill('5', 'it\'s\n\u00e9\x41\U0001F600')`:      {{Name: "fill", Args: args{"bid": "5", "value": "it's\né" + "A😀", "enable_autocomplete_menu": false}}},
		`fill('5', '\ud83d\ude00 \ud83d')`:              {{Name: "fill", Args: args{"bid": "5", "value": "😀 \uFFFD", "enable_autocomplete_menu": false}}},
		`fill('5', "a" 'b')`:                            {{Name: "fill", Args: args{"bid": "5", "value": "ab", "enable_autocomplete_menu": false}}},
		"fill('5', '''two\nlines''')":                   {{Name: "fill", Args: args{"bid": "5", "value": "two\nlines", "enable_autocomplete_menu": false}}},
		`select_option('7', ["A", "B"])`:                {{Name: "select_option", Args: args{"bid": "7", "options": []any{"A", "B"}}}},
		`scroll(0, -200.5)`:                             {{Name: "scroll", Args: args{"delta_x": 0.0, "delta_y": -200.5}}},
		`scroll(0, 600, selector="#pane")`:              {{Name: "scroll", Args: args{"delta_x": 0.0, "delta_y": 600.0, "selector": "#pane"}}},
		`drag_and_drop(from_selector="#a", to_bid="4")`: {{Name: "drag_and_drop", Args: args{"from_selector": "#a", "to_bid": "4"}}},
		`noop()`:           {{Name: "noop", Args: args{"wait_ms": 1000.0}}},
		`finish()`:         {{Name: "finish", Args: args{}}},
		`finish("$12.50")`: {{Name: "finish", Args: args{"answer": "$12.50"}}},
		`finish(42)`:       {{Name: "finish", Args: args{"answer": 42.0}}},
		"go_back()  # once\n\nnoop(5); finish(answer=None)": {
			{Name: "go_back", Args: args{}}, {Name: "noop", Args: args{"wait_ms": 5.0}}, {Name: "finish", Args: args{}},
		},
		"I think the button is right. So:\n```\nclick('12')\n```": {{Name: "click", Args: left(args{"bid": "12"})}},
	} {
		got, err := Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		for i := range got {
			got[i].Source = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Parse(%q):\n%s", in, diff)
		}
	}
}

func TestParseErrorsSayWhereAndWhat(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                                 "empty",
		`   # nothing`:                     "empty",
		`klick('12')`:                      `no action "klick"; did you mean click`,
		`click('12'`:                       "expected ',' or ')', found the end",
		`click(12a)`:                       `"12a" is no number`,
		`click(foo)`:                       `"foo" is no literal`,
		`click()`:                          `"bid" is missing; it takes (bid|selector, [button], [modifiers])`,
		`click('1', selector="#a")`:        "give bid or selector, not both",
		`click('1', 'left', [], 4)`:        "too many arguments",
		`click('1', buton="left")`:         `no argument "buton"`,
		`click('1', button="front")`:       `is "front"; it can be left, middle, right`,
		`click('1', modifiers=["Hyper"])`:  `it can be Alt`,
		`click(bid='1', bid='2')`:          `"bid" is given twice`,
		`click(button='left', '1')`:        "cannot follow one with a name",
		`fill('1', 3)`:                     "must be a text in quotes, not the number 3",
		`fill('1', "open`:                  "has no end",
		"fill('1', \"two\nlines\")":        "not closed on its line",
		`noop("x")`:                        "must be a number",
		`tab_focus(None)`:                  "must be a number, not None",
		`click('1') click('2')`:            "expected a new line or ';' after click(...)",
		"click('1')\nfill('2')":            "line 2, column 1",
		`fill('1', r"raw")`:                "prefixed strings",
		`fill('1', '\uZZZZ')`:              "hexadecimal digits",
		`noop(1e999)`:                      "is no number",
		`click(` + strings.Repeat("[", 99): "nested deeper",
	} {
		_, err := Parse(in)
		var e *Error
		if !errors.As(err, &e) || e.Kind != InvalidAction || !strings.Contains(e.Message, want) {
			t.Errorf("Parse(%.60q) = %v, want invalid_action with %q", in, err, want)
		}
	}
	_, err := Parse("noop()\nnoop()\nclick()")
	var e *Error
	if !errors.As(err, &e) || e.Call != 2 {
		t.Errorf("error = %v in call %d, want call 2", err, e.Call)
	}
	if _, err := Parse(strings.Repeat("noop()\n", maxCalls+1)); err == nil {
		t.Error("too many calls are taken")
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	calls, err := Parse(`click('a3'); click(selector="h1"); scroll(0, 5); drag_and_drop("#x", "4")`)
	if err != nil {
		t.Fatal(err)
	}
	if tg, ok := calls[0].Target("bid"); !ok || tg != (Target{Bid: "a3"}) {
		t.Error(tg, ok)
	}
	if tg, ok := calls[1].Target("bid"); !ok || tg != (Target{Selector: "h1"}) {
		t.Error(tg, ok)
	}
	if _, ok := calls[2].Target("bid"); ok {
		t.Error("scroll without an element has a target")
	}
	from, _ := calls[3].Target("from_bid")
	to, _ := calls[3].Target("to_bid")
	if from != (Target{Selector: "#x"}) || to != (Target{Bid: "4"}) {
		t.Error(from, to)
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range Signatures() {
		if s.Doc == "" || s.Group == "" || seen[s.Name] {
			t.Errorf("signature %q is doubled or not documented", s.Name)
		}
		seen[s.Name] = true
	}
	if got, _ := SignatureOf("click"); got.Usage() != "click(bid|selector, [button], [modifiers])" {
		t.Error(got.Usage())
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`click('12')`, `fill("#a", 'x\u00e9')`, `finish({"a": [1, None, True]})`, "say: click('1')", `noop(1_0.5);`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		calls, err := Parse(in)
		if (err == nil) != (len(calls) > 0) {
			t.Fatalf("%d calls and error %v", len(calls), err)
		}
		for _, c := range calls {
			again, err := Parse(c.String())
			if err != nil || len(again) != 1 {
				t.Fatalf("%q is written as %q, which reads as %v, %v", c.Source, c.String(), again, err)
			}
			if diff := cmp.Diff(c.Args, again[0].Args); diff != "" {
				t.Fatalf("%q changed on its way:\n%s", c.String(), diff)
			}
		}
	})
}
