package task

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/pommelgym/pommel/internal/yamlfile"
)

var (
	splits       = []string{"train", "validation", "test"}
	difficulties = []string{"easy", "medium", "hard"}
	idPattern    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
)

// validator collects the mistakes in a file that need no database to be seen.
type validator struct {
	spec *Spec
	errs yamlfile.Errors
}

func validate(s *Spec) error {
	v := &validator{spec: s}
	v.head()
	known := v.params()
	v.texts(known)
	v.reward(known)
	return orNil(v.errs)
}

func (v *validator) fail(path, hint, format string, args ...any) {
	e := v.spec.src.errorf(path, format, args...)
	e.Hint = hint
	v.errs = append(v.errs, e)
}

func (v *validator) failIn(path string, offset int, hint, format string, args ...any) {
	e := v.spec.src.errorIn(path, offset, format, args...)
	e.Hint = hint
	v.errs = append(v.errs, e)
}

func (v *validator) word(path, got string, known []string) {
	if !oneOf(got, known) {
		v.fail(path, "expected "+orList(known), "unknown %s %q", path[strings.LastIndexByte(path, '.')+1:], got)
	}
}

func (v *validator) head() {
	s := v.spec
	if !idPattern.MatchString(s.ID) {
		v.fail("id", "use lower-case letters, digits, - and _", "%q is not an id", s.ID)
	}
	v.word("difficulty", s.Difficulty, difficulties)
	v.word("split", s.Split, splits)
	if s.Limits.Steps < 1 {
		v.fail("limits.steps", "", "expected at least 1 step, got %d", s.Limits.Steps)
	}
	if strings.TrimSpace(s.Instruction) == "" {
		v.fail("instruction", "say what the agent should do", "the instruction is empty")
	}
}

// params checks the parameters in their order and returns their names.
func (v *validator) params() map[string]Param {
	known := map[string]Param{}
	for _, p := range v.spec.Params {
		path := "params." + p.Name
		if !nameOnlyPattern.MatchString(p.Name) {
			v.fail(path, "use letters, digits and _", "%q is not a name for a parameter", p.Name)
		}
		v.param(path, p, known)
		known[p.Name] = p
	}
	return known
}

func (v *validator) param(path string, p Param, known map[string]Param) {
	sources := 0
	for _, given := range []bool{p.Query != "", p.Value != "", p.Int != nil, p.Choice != nil, p.Token != 0} {
		if given {
			sources++
		}
	}
	switch {
	case sources != 1:
		v.fail(path, "expected exactly one of query, value, int, choice or token", "%d sources given", sources)
	case p.Query != "":
		v.sql(path+".query", p.Query, known, true)
	case p.Value != "":
		v.sql(path+".value", p.Value, known, true)
	case p.Int != nil && p.Int[0] > p.Int[1]:
		v.fail(path+".int", "write the lower bound first", "no number is between %d and %d", p.Int[0], p.Int[1])
	case p.Choice != nil && len(p.Choice) == 0:
		v.fail(path+".choice", "", "nothing to choose from")
	case p.Token < 0 || p.Token > 4096:
		v.fail(path+".token", "", "expected 1 to 4096 digits, got %d", p.Token)
	}
	for i, c := range p.Choice {
		if c.Kind == List || c.Kind == Map {
			v.fail(fmt.Sprintf("%s.choice[%d]", path, i), "", "expected a single value")
		}
		v.value(fmt.Sprintf("%s.choice[%d]", path, i), c, known)
	}
}

// texts checks the references of the texts outside the reward.
func (v *validator) texts(known map[string]Param) {
	s := v.spec
	v.text("instruction", s.Instruction, known)
	v.text("start.url", s.Start.URL, known)
	for name, c := range s.Start.Cookies {
		v.text("start.cookies."+name, c, known)
	}
	for i, sql := range s.Setup {
		v.sql(fmt.Sprintf("setup[%d]", i), sql, known, false)
	}
	v.text("oracle", s.Oracle, known)
}

func (v *validator) text(path, text string, known map[string]Param) {
	refs, malformed := references(text)
	for _, r := range malformed {
		v.failIn(path, r.Start, "write ${name} or ${name.column}; names are letters, digits and _", "%q is not a reference to a parameter", text[r.Start:r.End])
	}
	for _, r := range refs {
		v.reference(path, r, known)
	}
}

func (v *validator) value(path string, val Value, known map[string]Param) {
	switch val.Kind {
	case List:
		for i, item := range val.Items {
			v.value(fmt.Sprintf("%s[%d]", path, i), item, known)
		}
	case Map:
		v.row(path, val.Fields, known)
	case String:
		v.text(path, val.Text, known)
	}
}

func (v *validator) row(path string, fields []Field, known map[string]Param) {
	for _, f := range fields {
		v.value(path+"."+f.Name, f.Value, known)
	}
}

func (v *validator) reference(path string, r reference, known map[string]Param) {
	p, ok := known[r.Name]
	switch {
	case !ok:
		v.failIn(path, r.Start, v.knownParams(known), "%s names no parameter that stands before it", r)
	case r.Column != "" && p.Query == "":
		v.failIn(path, r.Start, fmt.Sprintf("write ${%s}", r.Name), "%s asks for a column, but %s is a single value", r, r.Name)
	}
}

func (v *validator) knownParams(known map[string]Param) string {
	var names []string
	for _, p := range v.spec.Params {
		if _, ok := known[p.Name]; ok {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "no parameters are defined"
	}
	return "defined are " + strings.Join(names, ", ")
}

// sql checks what can be seen of a statement without a database.
func (v *validator) sql(path, text string, known map[string]Param, readOnly bool) {
	t := scanSQL(text)
	if len(t.words) == 0 {
		v.fail(path, "", "the SQL is empty")
		return
	}
	for _, r := range t.refs {
		v.reference(path, r, known)
	}
	for _, r := range t.misplaced {
		v.failIn(path, r.Start, fmt.Sprintf("put it outside and join: '...' || %s::text || '...'", r),
			"%s stands inside a string or a quoted name, where no value can be bound", r)
	}
	if t.dollar >= 0 {
		v.failIn(path, t.dollar, "write ${name}", "numbered parameters are not used here")
	}
	if t.second >= 0 {
		v.failIn(path, t.second, "write each statement as its own entry", "a second statement starts here")
	}
	if first := t.first(); readOnly && !oneOf(first.text, readers) {
		v.failIn(path, first.offset, "start with "+orList(readers), "expected a query that only reads, got %s", strings.ToUpper(first.text))
	}
}

var readers = []string{"select", "with", "values", "table"}

func (v *validator) reward(known map[string]Param) {
	r := v.spec.Reward
	v.word("reward.mode", r.Mode, []string{Potential, Sparse})
	if r.Until != "" && r.Until != UntilSuccess {
		v.fail("reward.until", "expected "+UntilSuccess, "unknown until %q", r.Until)
	}
	if len(r.Stages) == 0 {
		v.fail("reward.stages", "name at least one stage", "the task rewards nothing")
		return
	}
	v.weights()
	names := map[string]bool{}
	for i, st := range r.Stages {
		path := fmt.Sprintf("reward.stages[%d]", i)
		if names[st.Name] {
			v.fail(path+".name", "give each stage a name of its own", "the stage %q stands here a second time", st.Name)
		}
		names[st.Name] = true
		v.stage(path, st, known)
	}
	v.after(names)
	for i, o := range r.Only {
		if o.Where != "" {
			v.where(fmt.Sprintf("reward.only[%d].where", i), o.Where, known)
		}
	}
}

// where checks a condition, which is a part of a statement.
func (v *validator) where(path, text string, known map[string]Param) {
	before := len(v.errs)
	v.sql(path, text, known, false)
	if len(v.errs) == before && strings.Contains(text, ";") && scanSQL(text).second >= 0 {
		v.fail(path, "", "expected one condition")
	}
}

func (v *validator) weights() {
	sum := 0.0
	for i, st := range v.spec.Reward.Stages {
		if st.Weight < 0 || st.Weight > 1 {
			v.fail(fmt.Sprintf("reward.stages[%d].weight", i), "", "expected a weight between 0 and 1, got %v", st.Weight)
		}
		sum += st.Weight
	}
	if math.Abs(sum-1) > 1e-9 {
		v.fail("reward.stages", "change the weights so that they sum to 1", "the weights of the stages sum to %.6g, not to 1", sum)
	}
}

// after checks that order names known stages and has no circle.
func (v *validator) after(names map[string]bool) {
	for i, st := range v.spec.Reward.Stages {
		for j, a := range st.After {
			if !names[a] {
				v.fail(fmt.Sprintf("reward.stages[%d].after[%d]", i, j), "", "there is no stage %q", a)
			}
		}
	}
	if len(stageOrder(v.spec.Reward.Stages)) != len(v.spec.Reward.Stages) {
		v.fail("reward.stages", "take one of them out", "stages wait for each other in a circle through after")
	}
}

// Order lists the indexes of an instance's stages so that each comes after those it waits for.
func Order(stages []Milestone) []int {
	plain := make([]Stage, len(stages))
	for i, m := range stages {
		plain[i] = m.Stage
	}
	return stageOrder(plain)
}

// stageOrder lists the indexes of the stages so that each comes after those it waits
// for; stages in a circle are left out.
func stageOrder(stages []Stage) []int {
	done := map[string]bool{}
	var order []int
	for grew := true; grew; {
		grew = false
		for i, st := range stages {
			if done[st.Name] {
				continue
			}
			ready := true
			for _, a := range st.After {
				ready = ready && done[a]
			}
			if ready {
				done[st.Name] = true
				order = append(order, i)
				grew = true
			}
		}
	}
	return order
}
