package task

import (
	"github.com/pommelgym/pommel/internal/task/answer"
	"github.com/pommelgym/pommel/internal/task/cell"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

// Spec is a task template as its author wrote it.
type Spec struct {
	ID    string `yaml:"id,required"`
	Title string `yaml:"title,required"`
	// Difficulty is easy, medium or hard.
	Difficulty string `yaml:"difficulty,required"`
	// Split is train, validation or test: the split of the template.
	Split       string   `yaml:"split,required"`
	Instruction string   `yaml:"instruction,required"`
	Params      Params   `yaml:"params"`
	Setup       []string `yaml:"setup"`
	Start       Start    `yaml:"start"`
	Limits      Limits   `yaml:"limits"`
	Reward      Reward   `yaml:"reward,required"`
	// Oracle is the Starlark program that solves the task.
	Oracle string `yaml:"oracle"`

	src *source
}

// File is the path that the task was read from.
func (s *Spec) File() string { return s.src.path() }

// Params are the parameters in the order of the file.
type Params []Param

// Param is one seeded parameter: exactly one of its sources is set.
type Param struct {
	Name string `yaml:"-"`
	// Query: one row, chosen by the seed among the rows of the query.
	Query string `yaml:"query"`
	// Value: the one value of a query.
	Value string `yaml:"value"`
	// Int: a whole number between two bounds, both included.
	Int *[2]int64 `yaml:"int"`
	// Choice: one of some values.
	Choice []Value `yaml:"choice"`
	// Token: a random hex string of so many digits.
	Token int `yaml:"token"`
}

// DecodeYAML reads the mapping and keeps its order.
func (p *Params) DecodeYAML(n *yamlfile.Node) error {
	if n.Kind != Map {
		return n.Errorf("expected a mapping from parameter names to their sources")
	}
	var errs yamlfile.Errors
	for _, e := range n.Entries {
		one := Param{Name: e.Key}
		if err := e.Value.Decode(&one); err != nil {
			errs = appendErrors(errs, e.Value, err)
			continue
		}
		*p = append(*p, one)
	}
	return orNil(errs)
}

// Start is where and as whom the episode begins.
type Start struct {
	// URL is relative to the world's start page.
	URL     string            `yaml:"url"`
	Cookies map[string]string `yaml:"cookies"`
}

// Limits bound an episode.
type Limits struct {
	// Steps is the number of steps after which the episode is truncated.
	Steps int `yaml:"steps"`
}

// DefaultSteps is the step limit of a task that names none.
const DefaultSteps = 30

// Modes of reward.
const (
	Potential = "potential"
	Sparse    = "sparse"
)

// UntilSuccess as Reward.Until ends the episode as soon as the task is done.
const UntilSuccess = "success"

// Reward says what is worth what.
type Reward struct {
	Mode   string  `yaml:"mode"`
	Until  string  `yaml:"until"`
	Stages []Stage `yaml:"stages,required"`
	// Only lists where rows may change; any other net change is collateral damage.
	Only []Scope `yaml:"only"`
	// HasOnly tells an empty list (nothing may change) from none (nothing is watched).
	HasOnly bool `yaml:"-"`
}

// Scope is a table whose rows may change, all of them or those for which Where holds.
type Scope struct {
	Table string `yaml:"table,required"`
	Where string `yaml:"where"`
}

// DecodeYAML reads a table's name or {table, where}.
func (s *Scope) DecodeYAML(n *yamlfile.Node) error {
	if n.Kind == String {
		s.Table = n.Text
		return nil
	}
	if n.Kind != Map {
		return n.Errorf("expected a table's name or {table: ..., where: ...}")
	}
	type plain Scope
	return n.Decode((*plain)(s))
}

// Stage is one milestone: exactly one of Query, Answer, Changes and Page is set.
type Stage struct {
	Name   string  `yaml:"name,required"`
	Weight float64 `yaml:"weight"`
	// Query is read-only SQL; Expect says what it must give.
	Query  string  `yaml:"query"`
	Expect *Expect `yaml:"expect"`
	// Answer is what the agent must say with finish.
	Answer *Answer `yaml:"answer"`
	// Changes are assertions over the row changes since the start of the episode.
	Changes []ChangeWant `yaml:"changes"`
	Page    *PageWant    `yaml:"page"`
	// HTTP is recognised only to be refused with a reason.
	HTTP *yamlfile.Node `yaml:"http"`
	// Match are the modes of comparison by column; "*" is every text column.
	Match Match `yaml:"match"`
	// Order: "strict" makes the order of rows (or of changes) count.
	Order string `yaml:"order"`
	Latch bool   `yaml:"latch"`
	// After names stages that must have held before this one counts.
	After []string `yaml:"after"`
}

// StrictOrder as Order makes the order count.
const StrictOrder = "strict"

// Expect says what a query must give: exactly one of its fields is set.
type Expect struct {
	Rows    []Row  `yaml:"rows"`
	Empty   bool   `yaml:"empty"`
	Count   *int   `yaml:"count"`
	AtLeast *int   `yaml:"at_least"`
	Order   string `yaml:"order"`
	// HasRows is set when rows was given.
	HasRows bool `yaml:"-"`
}

// DecodeYAML reads the mapping.
func (e *Expect) DecodeYAML(n *yamlfile.Node) error {
	type plain Expect
	if err := n.Decode((*plain)(e)); err != nil {
		return err
	}
	e.HasRows = n.Get("rows") != nil
	return nil
}

// Row is an expected row: the columns it names are compared, others are not.
type Row []Field

// DecodeYAML reads a mapping from column to value, in order.
func (r *Row) DecodeYAML(n *yamlfile.Node) error {
	if n.Kind != Map {
		return n.Errorf("expected a row, as {column: value}")
	}
	*r = valueOf(n).Fields
	return nil
}

// ChangeWant is one assertion over the row-change feed.
type ChangeWant struct {
	Table string `yaml:"table,required"`
	// Op is insert, update or delete.
	Op string `yaml:"op,required"`
	// Old and New match the columns that they name.
	Old Row `yaml:"old"`
	New Row `yaml:"new"`
	// Count is the exact number of such changes; without it at least one is needed.
	Count *int `yaml:"count"`
}

// PageWant is a stage about the page that the agent is on.
type PageWant struct {
	// URLs are equally good places.
	URLs []string
	// Text must be readable on the page.
	Text string
}

// DecodeYAML reads {url: one or a list, text: ...}.
func (p *PageWant) DecodeYAML(n *yamlfile.Node) error {
	var plain struct {
		URL  Value  `yaml:"url"`
		Text string `yaml:"text"`
	}
	if err := n.Decode(&plain); err != nil {
		return err
	}
	p.Text = plain.Text
	switch plain.URL.Kind {
	case List:
		for i, item := range plain.URL.Items {
			if item.Kind != String {
				return n.Get("url").Items[i].Errorf("expected a URL")
			}
			p.URLs = append(p.URLs, item.Text)
		}
	case String:
		p.URLs = []string{plain.URL.Text}
	case Null:
	default:
		return n.Get("url").Errorf("expected a URL or a list of URLs")
	}
	return nil
}

// Match maps a column to its modes of comparison; "*" stands for every text column.
type Match map[string][]string

// The modes of comparison.
const (
	MatchExact    = "exact"
	MatchCI       = "ci"
	MatchTrim     = "trim"
	MatchRegex    = "regex"
	MatchContains = "contains"
	MatchBlank    = "blank_is_null"
	MatchSet      = "set"
)

var matchModes = []string{MatchExact, MatchCI, MatchTrim, MatchRegex, MatchContains, MatchBlank, MatchSet}

// DecodeYAML reads one mode, a list of modes, or a mapping from column to either.
func (m *Match) DecodeYAML(n *yamlfile.Node) error {
	*m = Match{}
	if n.Kind != Map {
		return m.add("*", n)
	}
	for _, e := range n.Entries {
		if err := m.add(e.Key, e.Value); err != nil {
			return err
		}
	}
	return nil
}

func (m *Match) add(column string, n *yamlfile.Node) error {
	items := n.Items
	if n.Kind != List {
		items = []*yamlfile.Node{n}
	}
	for _, item := range items {
		if !oneOf(item.Text, matchModes) {
			return item.Errorf("unknown mode of comparison %q; expected %s", item.Text, orList(matchModes))
		}
		(*m)[column] = append((*m)[column], item.Text)
	}
	return nil
}

// Answer is what the agent must say.
type Answer struct {
	Type string `yaml:"type,required"`
	// Value is the right answer; AnyOf several right ones.
	Value *Value  `yaml:"value"`
	AnyOf []Value `yaml:"any_of"`
	// Currency of money, as USD; Unit of a quantity, as in.
	Currency string `yaml:"currency"`
	Unit     string `yaml:"unit"`
	// Locale says how numbers and dates are written: en-US unless named.
	Locale string `yaml:"locale"`
	// Match is the mode of comparison of a text.
	Match Match `yaml:"match"`
	// Options are the possible choices.
	Options []string `yaml:"options"`
	// Of is the type of the elements of a set.
	Of string `yaml:"of"`
	// Within is the allowed distance of a number, money, percent or quantity.
	Within string `yaml:"within"`
}

// AnswerInfeasible is the type of a task that cannot be done: the agent must say so with
// report_infeasible. The other types are those of package answer.
const AnswerInfeasible = "infeasible"

var answerTypes = []string{answer.Number, answer.Integer, answer.ID, answer.Text, answer.Money, answer.Percent,
	answer.Quantity, answer.Date, answer.URL, answer.Set, answer.Choice, AnswerInfeasible}

// Wants are the right answers, as package answer takes them; base is what a relative URL
// is relative to.
func (a *Answer) Wants(base string) []answer.Want {
	values := a.AnyOf
	if a.Value != nil {
		values = []Value{*a.Value}
	}
	var out []answer.Want
	for _, v := range values {
		w := answer.Want{
			Type: a.Type, Value: v.Text, Currency: a.Currency, Unit: a.Unit, Locale: a.Locale, Options: a.Options,
			Of: a.Of, Within: a.Within, Modes: cell.ParseModes(a.Match["*"]...), Base: base,
		}
		for _, item := range v.Items {
			w.Values = append(w.Values, item.Text)
		}
		out = append(out, w)
	}
	return out
}

// Want is the value as package cell takes it.
func (v Value) Want() cell.Want {
	switch v.Kind {
	case Null:
		return cell.Want{Null: true}
	case List, Map:
		return cell.Want{Doc: v.JSON(), Structured: true}
	}
	return cell.Want{Text: v.Text}
}

// Modes are the modes of comparison of a column.
func (m Match) Modes(column string) cell.Modes {
	return cell.ParseModes(append(append([]string(nil), m["*"]...), m[column]...)...)
}
