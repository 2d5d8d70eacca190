package task

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pommelgym/pommel/internal/task/answer"
)

func (v *validator) stage(path string, st Stage, known map[string]Param) {
	if st.HTTP != nil {
		v.fail(path+".http", "judge by the rows that the request leaves behind", "stages of kind http do not exist")
		return
	}
	kinds := 0
	for _, given := range []bool{st.Query != "", st.Answer != nil, st.Changes != nil, st.Page != nil} {
		if given {
			kinds++
		}
	}
	if kinds != 1 {
		v.fail(path, "expected exactly one of query, answer, changes or page", "%d kinds of stage given", kinds)
		return
	}
	if st.Order != "" && st.Order != StrictOrder {
		v.fail(path+".order", "expected "+StrictOrder, "unknown order %q", st.Order)
	}
	if st.Expect != nil && st.Query == "" {
		v.fail(path+".expect", "", "expect belongs to a query")
	}
	switch {
	case st.Query != "":
		v.query(path, st, known)
	case st.Answer != nil:
		v.answer(path+".answer", st.Answer, known)
	case st.Changes != nil:
		v.changes(path+".changes", st, known)
	default:
		v.page(path+".page", st.Page, known)
	}
}

func (v *validator) query(path string, st Stage, known map[string]Param) {
	v.sql(path+".query", st.Query, known, true)
	e := st.Expect
	if e == nil {
		v.fail(path, "add rows, empty, count or at_least", "the query has no expect")
		return
	}
	given := 0
	for _, is := range []bool{e.HasRows, e.Empty, e.Count != nil, e.AtLeast != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		v.fail(path+".expect", "expected exactly one of rows, empty, count or at_least", "%d of them given", given)
		return
	}
	if e.Order != "" && e.Order != StrictOrder {
		v.fail(path+".expect.order", "expected "+StrictOrder, "unknown order %q", e.Order)
	}
	if e.HasRows && len(e.Rows) == 0 {
		v.fail(path+".expect.rows", "write {empty: true}", "no row is expected")
	}
	for i, row := range e.Rows {
		at := fmt.Sprintf("%s.expect.rows[%d]", path, i)
		if len(row) == 0 {
			v.fail(at, "", "the row names no column")
		}
		v.row(at, row, known)
		v.patterns(at, row, st.Match)
	}
}

// patterns compiles the regular expressions among the expected values.
func (v *validator) patterns(path string, row Row, match Match) {
	for _, f := range row {
		modes := append(match["*"], match[f.Name]...)
		refs, _ := references(f.Value.Text)
		if !oneOf(MatchRegex, modes) || len(refs) > 0 || f.Value.Kind != String {
			continue
		}
		if _, err := regexp.Compile(f.Value.Text); err != nil {
			v.fail(path+"."+f.Name, "", "%v", err)
		}
	}
}

func (v *validator) changes(path string, st Stage, known map[string]Param) {
	if len(st.Changes) == 0 {
		v.fail(path, "", "no change is named")
	}
	for i, c := range st.Changes {
		at := fmt.Sprintf("%s[%d]", path, i)
		v.word(at+".op", c.Op, []string{"insert", "update", "delete"})
		if c.Op == "insert" && c.Old != nil {
			v.fail(at+".old", "", "an inserted row has no old values")
		}
		if c.Op == "delete" && c.New != nil {
			v.fail(at+".new", "", "a deleted row has no new values")
		}
		if c.Count != nil && *c.Count < 0 {
			v.fail(at+".count", "", "expected at least 0, got %d", *c.Count)
		}
		v.row(at+".old", c.Old, known)
		v.row(at+".new", c.New, known)
	}
}

func (v *validator) page(path string, p *PageWant, known map[string]Param) {
	if len(p.URLs) == 0 && p.Text == "" {
		v.fail(path, "give a url or a text", "nothing is asked of the page")
	}
	for i, u := range p.URLs {
		at := fmt.Sprintf("%s.url[%d]", path, i)
		if v.spec.src.file.Node(at) == nil {
			at = path + ".url"
		}
		v.text(at, u, known)
	}
	v.text(path+".text", p.Text, known)
}

func (v *validator) answer(path string, a *Answer, known map[string]Param) {
	if !oneOf(a.Type, answerTypes) {
		v.fail(path+".type", "expected "+orList(answerTypes), "unknown type of answer %q", a.Type)
		return
	}
	if a.Type == AnswerInfeasible {
		if a.Value != nil || a.AnyOf != nil {
			v.fail(path, "", "an infeasible task has no answer")
		}
		return
	}
	if (a.Value == nil) == (a.AnyOf == nil) {
		v.fail(path, "", "expected exactly one of value or any_of")
		return
	}
	wants, at := a.AnyOf, path+".any_of[%d]"
	if a.Value != nil {
		wants, at = []Value{*a.Value}, path+".value"
	}
	for i, w := range wants {
		here := at
		if a.Value == nil {
			here = fmt.Sprintf(at, i)
		}
		v.value(here, w, known)
		v.answerValue(here, a, w)
	}
	v.answerOptions(path, a)
}

// answerValue checks an expected value that is written out, not taken from a parameter.
func (v *validator) answerValue(path string, a *Answer, w Value) {
	single := w.Kind != List && w.Kind != Map && w.Kind != Null
	switch {
	case a.Type == answer.Set && w.Kind != List:
		v.fail(path, "", "expected a list of the elements of the set")
		return
	case a.Type != answer.Set && !single:
		v.fail(path, "", "expected a single value")
		return
	}
	for _, part := range append([]Value{w}, w.Items...) {
		if refs, _ := references(part.Text); len(refs) > 0 {
			return
		}
	}
	one := *a
	one.Value, one.AnyOf = &w, nil
	if err := answer.Check(one.Wants("")[0]); err != nil {
		v.fail(path, "", "%v", err)
	}
}

// answerOptions checks the settings that belong to some types only.
func (v *validator) answerOptions(path string, a *Answer) {
	need := func(field, got, typ, hint string) {
		// The elements of a set have the settings of their type.
		is := a.Type == typ || a.Type == answer.Set && a.Of == typ
		switch {
		case is && got == "":
			v.fail(path, hint, "an answer of type %s needs %s", typ, field)
		case !is && got != "":
			v.fail(path+"."+field, "", "%s belongs to answers of type %s", field, typ)
		}
	}
	need("currency", a.Currency, answer.Money, "as currency: USD")
	need("unit", a.Unit, answer.Quantity, "as unit: in")
	if a.Type == answer.Set && (a.Of == "" || !oneOf(a.Of, answerTypes) || a.Of == answer.Set || a.Of == AnswerInfeasible) {
		v.fail(path, "as of: text", "a set needs the type of its elements")
	}
	if a.Type == answer.Choice && len(a.Options) < 2 {
		v.fail(path, "as options: [yes, no]", "a choice needs at least two options")
	}
	if a.Within != "" && !oneOf(a.Type, []string{answer.Number, answer.Integer, answer.Money, answer.Percent, answer.Quantity, answer.Set}) {
		v.fail(path+".within", "", "within belongs to answers that are numbers")
	}
	for column := range a.Match {
		if column != "*" {
			v.fail(path+".match", "", "an answer has no columns; write match: %s", strings.Join(a.Match[column], ", "))
		}
	}
}
