package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/learn/batch"
)

// toy is a small world without a browser: a start page with links, and a form two clicks
// away. It answers as a real one does, in microseconds.
type toy struct {
	task  string
	city  string
	limit int
	step  int
	page  string
	field map[string]string
	over  bool
	won   bool
	// fail makes every n-th call a fault of the infrastructure.
	fail, calls int
}

func toyTasks() []gym.TaskInfo {
	return []gym.TaskInfo{
		{ID: "open", Difficulty: "easy", Split: "train", MaxSteps: 10},
		{ID: "move", Difficulty: "medium", Split: "train", MaxSteps: 15},
	}
}

var cities = []string{"Oakhaven", "Silverton", "Westmere", "Riversend", "Millbrook", "Hartwell"}

func (t *toy) Reset(_ context.Context, r gym.Request) (*gym.Result, error) {
	if err := t.trouble(); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(uint64(r.Seed), 1))
	*t = toy{task: r.Task, city: cities[rng.IntN(len(cities))], limit: r.MaxSteps, page: "/", field: map[string]string{}, fail: t.fail, calls: t.calls}
	res := t.result(0)
	res.Instruction = fmt.Sprintf("Open the page of %q.", t.city)
	if t.task == "move" {
		res.Instruction = fmt.Sprintf("Change the city in your profile to %q.", t.city)
	}
	return res, nil
}

func (t *toy) trouble() error {
	t.calls++
	if t.fail > 0 && t.calls%t.fail == 0 {
		return gym.NewError(gym.WorldLost, "the toy broke")
	}
	return nil
}

func (t *toy) Step(_ context.Context, text string, _ ...gym.View) (*gym.Result, error) {
	if err := t.trouble(); err != nil {
		return nil, err
	}
	calls, err := action.Parse(text)
	if err != nil {
		return nil, err
	}
	t.step++
	before := t.worth()
	for _, c := range calls {
		t.do(c)
	}
	t.won = t.worth() == 1
	t.over = t.over || t.won
	return t.result(t.worth() - before), nil
}

func (t *toy) do(c action.Call) {
	bid, _ := c.Args["bid"].(string)
	name := t.names()[bid]
	switch {
	case c.Name == "fill":
		t.field[name], _ = c.Args["value"].(string)
	case c.Name == "go_back":
		t.page = "/"
	case c.Name == "click" && strings.HasPrefix(name, "link "):
		t.page = "/" + strings.ToLower(strings.TrimPrefix(name, "link "))
	case c.Name == "click" && name == "button Save":
		t.field["saved city"], t.field["saved street"] = t.field["textbox City"], t.field["textbox Street"]
	}
}

// worth is the potential of the state.
func (t *toy) worth() float64 {
	switch {
	case t.task == "open" && t.page == "/"+strings.ToLower(t.city):
		return 1
	case t.task == "move" && t.field["saved city"] == t.city && t.field["saved street"] == "":
		return 1
	}
	return 0
}

// names are the elements of the page by bid.
func (t *toy) names() map[string]string {
	m := map[string]string{"1": "link Home", "2": "link Account"}
	switch t.page {
	case "/":
		for i, c := range cities {
			m[fmt.Sprint(10+i)] = "link " + c
		}
	case "/account":
		m["3"], m["4"] = "link Profile", "link Orders"
	case "/profile":
		m["5"], m["6"], m["7"] = "textbox City", "textbox Street", "button Save"
	}
	return m
}

func (t *toy) result(reward float64) *gym.Result {
	o := &gym.Observation{URL: "http://toy.test" + t.page, Title: t.page}
	var b strings.Builder
	b.WriteString("RootWebArea ''\n\t[0] main ''\n")
	names := t.names()
	for i := range 20 {
		bid := fmt.Sprint(i)
		name, ok := names[bid]
		if !ok {
			continue
		}
		role, label, _ := strings.Cut(name, " ")
		fmt.Fprintf(&b, "\t\t[%s] %s '%s'", bid, role, label)
		if v := t.field[name]; v != "" {
			fmt.Fprintf(&b, " value='%s'", v)
		}
		b.WriteByte('\n')
		o.Elements = append(o.Elements, gym.Element{Bid: bid, Role: role, Name: label, Value: t.field[name], Tag: role, Interactive: true, InViewport: true})
	}
	o.Text = b.String()
	cut := !t.over && t.step >= t.limit
	return &gym.Result{Step: t.step, Observation: o, Reward: reward, Terminated: t.over, Truncated: cut, Info: gym.Info{Task: t.task, Success: t.won}}
}

// Oracle plays the solution; it names elements by bid.
func (t *toy) Oracle(ctx context.Context, step func(ctx context.Context, action string) (*gym.Result, error)) error {
	steps := []string{`click("2")`, `click("3")`, fmt.Sprintf("fill(%q, %q)", "5", t.city), `click("7")`}
	if t.task == "open" {
		for bid, name := range t.names() {
			if name == "link "+t.city {
				steps = []string{fmt.Sprintf("click(%q)", bid)}
			}
		}
	}
	for _, s := range steps {
		if _, err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (t *toy) Close() error { return nil }

var _ batch.Env = (*toy)(nil)
