package oracle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/task"
)

const head = "id: t\ntitle: T\ndifficulty: easy\nsplit: train\ninstruction: Do it.\nlimits: {steps: 5}\n" +
	"reward: {stages: [{name: a, weight: 1, answer: {type: text, value: x}}]}\n"

// instance reads a task with an oracle and parameters that need no database.
func instance(t *testing.T, body string) *task.Instance {
	t.Helper()
	spec, err := task.Parse("tasks/t.yaml", []byte(head+body))
	if err != nil {
		t.Fatal(err)
	}
	inst, err := task.Instantiate(context.Background(), spec, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return inst
}

// fake carries actions out in a world in which #gone does not exist.
func fake(actions *[]string) Step {
	return func(_ context.Context, action string) (Obs, error) {
		*actions = append(*actions, action)
		o := Obs{URL: "http://shop.test/", Title: "Shop", Text: "after " + action, Elements: []Element{
			{Bid: "3", Role: "button", Name: "Buy now"}, {Bid: "4", Role: "button", Name: "Buy"}}}
		if strings.Contains(action, "#gone") {
			o.Error = "not_found: no element matches"
		}
		o.Done = strings.HasPrefix(action, "finish")
		return o, nil
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	inst := instance(t, `params:
  quantity: {int: [2, 2]}
  colour: {choice: ["re\"d"]}
  ok: {choice: [true]}
  price: {choice: [9.90]}
oracle: |
  print(obs().title)
  click(selector = "#add")
  o = fill("12", str(p.quantity))
  if "fill" in o.text and p.ok:
      select_option("a3", options = [p.colour, "b\n\\"])
  r = try_(click, selector = "#gone")
  print(r.error, p.price, [e.bid for e in o.find_all(role = "button")])
  finish(answer = o.find(contains = "buy").bid)
`)
	var got []string
	report, err := Run(context.Background(), inst, Obs{Title: "Start"}, fake(&got))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`click(selector="#add")`, `fill("12", "2")`, `select_option("a3", options=["re\"d", "b\n\\"])`, `click(selector="#gone")`, `finish(answer="3")`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"Start", `not_found: no element matches 9.90 ["3", "4"]`}, report.Printed); d != "" {
		t.Errorf("printed (-want +got):\n%s", d)
	}
	for _, a := range got {
		if _, err := action.Parse(a); err != nil {
			t.Errorf("the grammar refuses %s: %v", a, err)
		}
	}
	if !slices.Equal(report.Actions, got) || !report.Last.Done {
		t.Errorf("report %+v", report)
	}
}

// TestErrorsNameTheirPlace: line and column are those of the task file.
func TestErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"an action that fails": {"oracle: |\n  click(selector = \"#a\")\n  click(selector = \"#gone\")\n", `tasks/t.yaml:10:8: oracle: click(selector="#gone") failed: not_found: no element matches`},
		"in a function":        {"oracle: |\n\n  def f():\n      click(selector = \"#gone\")\n  f()\n", `tasks/t.yaml:11:12: oracle: click(selector="#gone") failed`},
		"syntax":               {"oracle: |\n  click(\n  if\n", "tasks/t.yaml:10:3: oracle: "},
		"an unknown name":      {"oracle: |\n  clik(selector = \"#a\")\n", "tasks/t.yaml:9:3: oracle: undefined: clik"},
		"an unknown parameter": {"oracle: |\n  print(p.nothing)\n", "tasks/t.yaml:9:10: oracle: "},
		"after the end":        {"oracle: |\n  finish('')\n  noop()\n", "noop(): the episode is over already"},
		"too many steps":       {"oracle: |\n  for i in range(9):\n    noop()\n", "noop(): it would be step 6 of a task with a limit of 5"},
		"for ever":             {"oracle: |\n  while True:\n    pass\n", "computes for ever"},
		"no literal":           {"oracle: |\n  fill('1', print)\n", "a builtin_function_or_method cannot be an argument"},
		"on one line":          {"oracle: click(selector = '#gone')\n", "tasks/t.yaml:8:14: oracle: click"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var actions []string
			compiles := name != "syntax" && name != "an unknown name"
			if err := Check(instance(t, c.body)); (err == nil) != compiles {
				t.Errorf("Check: %v", err)
			}
			_, err := Run(context.Background(), instance(t, c.body), Obs{}, fake(&actions))
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestErrorsFromOutside(t *testing.T) {
	t.Parallel()
	inst := instance(t, "oracle: |\n  try_(noop)\n  noop()\n")
	lost := errors.New("the world is lost")
	_, err := Run(context.Background(), inst, Obs{}, func(context.Context, string) (Obs, error) { return Obs{}, lost })
	if !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	_, err = Run(ctx, instance(t, "oracle: |\n  noop()\n  while True:\n    pass\n"), Obs{}, func(context.Context, string) (Obs, error) {
		cancel()
		return Obs{}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled script: %v", err)
	}
	if _, err := Run(context.Background(), instance(t, ""), Obs{}, nil); err == nil {
		t.Error("a task without an oracle runs")
	}
}
