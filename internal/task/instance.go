package task

import (
	"context"
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
)

// Instance is a task with its parameters drawn for one seed. It is not changed
// after Instantiate and may be shared.
type Instance struct {
	ID         string
	Title      string
	Difficulty string
	// TaskSplit is the split of the template, SeedSplit that of the seed.
	TaskSplit, SeedSplit string
	Seed                 int64

	Instruction string
	// StartURL is relative to the world's start page; Cookies are set before it is opened.
	StartURL string
	Cookies  map[string]string
	// Setup is run in one transaction as the application's role before the episode.
	Setup  []postgres.Statement
	Reward Judged
	Limits Limits
	Params []Drawn
	Oracle Script
}

// Judged is a Reward with its values filled in and its SQL bound.
type Judged struct {
	Mode, Until string
	Stages      []Milestone
	Only        []Area
	HasOnly     bool
}

// Milestone is a stage of an instance. Query is bound, all expected values are filled in.
type Milestone struct {
	Stage
	Statement postgres.Statement
}

// Area is a Scope with its condition bound.
type Area struct {
	Table string
	// Where is a condition over the columns of the table, or empty.
	Where postgres.Statement
}

// Script is an oracle's program and where it stands in its file.
type Script struct {
	Source string
	File   string
	// Line and Col are where its first character stands.
	Line, Col int
}

// Drawn is a parameter with its value.
type Drawn struct {
	Name string
	// Row is set for a parameter that is a row of a query.
	Row    bool
	Fields []Field
}

// Value is the value of a parameter that has just one.
func (d Drawn) Value() (Value, bool) {
	if len(d.Fields) != 1 {
		return Value{}, false
	}
	return d.Fields[0].Value, true
}

// Instantiate draws the parameters of a task for a seed, reading from the database
// in the state in which episodes start.
func Instantiate(ctx context.Context, spec *Spec, seed int64, db postgres.Reader) (*Instance, error) {
	in := instantiator{spec: spec, seed: seed, db: db}
	for _, p := range spec.Params {
		if err := in.draw(ctx, p); err != nil {
			return nil, fault.Wrap(fault.InvalidArgument, err, "task %s, seed %d", spec.ID, seed)
		}
	}
	inst, err := in.build()
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "task %s, seed %d", spec.ID, seed)
	}
	return inst, nil
}

type instantiator struct {
	spec  *Spec
	seed  int64
	db    postgres.Reader
	drawn []Drawn
}

func (in *instantiator) build() (*Instance, error) {
	s := in.spec
	inst := &Instance{
		ID: s.ID, Title: s.Title, Difficulty: s.Difficulty, TaskSplit: s.Split,
		SeedSplit: SeedSplit(in.seed), Seed: in.seed, Limits: s.Limits, Params: in.drawn,
		Cookies: map[string]string{},
	}
	f := filler{in: in}
	inst.Instruction = strings.TrimSpace(f.text("instruction", s.Instruction))
	inst.StartURL = f.text("start.url", s.Start.URL)
	for name, c := range s.Start.Cookies {
		inst.Cookies[name] = f.text("start.cookies."+name, c)
	}
	for i, sql := range s.Setup {
		inst.Setup = append(inst.Setup, f.statement(fmt.Sprintf("setup[%d]", i), sql))
	}
	inst.Oracle = s.script(f.text("oracle", s.Oracle))
	inst.Reward = f.reward(s.Reward)
	return inst, f.err
}

func (s *Spec) script(source string) Script {
	sc := Script{Source: source, File: s.File()}
	if s.src == nil || s.Oracle == "" {
		return sc
	}
	sc.Line, sc.Col = 1, 1
	at := len(s.Oracle) - len(strings.TrimLeft(s.Oracle, " \t\r\n"))
	if pos, ok := s.src.locate("oracle", at); ok {
		sc.Line = pos.Line - strings.Count(s.Oracle[:at], "\n")
		sc.Col = pos.Col - (at - 1 - strings.LastIndexByte(s.Oracle[:at], '\n'))
	}
	return sc
}

// filler fills in values and keeps the first error.
type filler struct {
	in  *instantiator
	err error
}

func (f *filler) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *filler) text(path, text string) string {
	out, err := fill(text, func(r reference) (string, error) {
		v, err := f.in.lookup(r)
		if err == nil && v.Kind == Null {
			err = fmt.Errorf("%s is NULL and cannot stand in a text", r)
		}
		return v.Text, err
	})
	if err != nil {
		f.fail(f.in.spec.src.errorf(path, "%v", err))
	}
	return out
}

func (f *filler) statement(path, sql string) postgres.Statement {
	t := scanSQL(sql)
	st := postgres.Statement{SQL: t.bind()}
	for _, r := range t.refs {
		v, err := f.in.lookup(r)
		if err != nil {
			f.fail(f.in.spec.src.errorIn(path, r.Start, "%v", err))
		}
		st.Args = append(st.Args, v.argument())
	}
	return st
}

// argument is the value as the database takes it: text of unknown type, or NULL.
func (v Value) argument() any {
	if v.Kind == Null {
		return nil
	}
	return v.Text
}

// value fills the references in a value. One that is nothing but a reference takes over
// the parameter's kind, so that a number stays a number in JSON and NULL stays NULL.
func (f *filler) value(path string, v Value) Value {
	switch v.Kind {
	case List:
		out := Value{Kind: List}
		for _, item := range v.Items {
			out.Items = append(out.Items, f.value(path, item))
		}
		return out
	case Map:
		return Value{Kind: Map, Fields: f.fields(path, v.Fields)}
	case String:
		if r, whole := wholeReference(v.Text); whole {
			got, err := f.in.lookup(r)
			if err != nil {
				f.fail(f.in.spec.src.errorf(path, "%v", err))
			}
			return got
		}
		return TextValue(f.text(path, v.Text))
	}
	return v
}

func (f *filler) fields(path string, in []Field) []Field {
	if in == nil {
		return nil
	}
	out := make([]Field, len(in))
	for i, one := range in {
		out[i] = Field{Name: one.Name, Value: f.value(path+"."+one.Name, one.Value)}
	}
	return out
}

func (f *filler) reward(r Reward) Judged {
	out := Judged{Mode: r.Mode, Until: r.Until, HasOnly: r.HasOnly}
	for i, st := range r.Stages {
		out.Stages = append(out.Stages, f.stage(fmt.Sprintf("reward.stages[%d]", i), st))
	}
	for i, o := range r.Only {
		a := Area{Table: o.Table}
		if o.Where != "" {
			a.Where = f.statement(fmt.Sprintf("reward.only[%d].where", i), o.Where)
		}
		out.Only = append(out.Only, a)
	}
	return out
}

func (f *filler) stage(path string, st Stage) Milestone {
	m := Milestone{Stage: st}
	if st.Query != "" {
		m.Statement = f.statement(path+".query", st.Query)
	}
	if st.Expect != nil {
		e := *st.Expect
		e.Rows = nil
		for i, row := range st.Expect.Rows {
			e.Rows = append(e.Rows, f.fields(fmt.Sprintf("%s.expect.rows[%d]", path, i), row))
		}
		m.Expect = &e
	}
	m.Changes = nil
	for i, c := range st.Changes {
		at := fmt.Sprintf("%s.changes[%d]", path, i)
		c.Old, c.New = f.fields(at+".old", c.Old), f.fields(at+".new", c.New)
		m.Changes = append(m.Changes, c)
	}
	if st.Answer != nil {
		m.Answer = f.answer(path+".answer", *st.Answer)
	}
	if st.Page != nil {
		p := PageWant{Text: f.text(path+".page.text", st.Page.Text)}
		for _, u := range st.Page.URLs {
			p.URLs = append(p.URLs, f.text(path+".page.url", u))
		}
		m.Page = &p
	}
	return m
}

func (f *filler) answer(path string, a Answer) *Answer {
	if a.Value != nil {
		v := f.value(path+".value", *a.Value)
		a.Value = &v
	}
	var anyOf []Value
	for i, v := range a.AnyOf {
		anyOf = append(anyOf, f.value(fmt.Sprintf("%s.any_of[%d]", path, i), v))
	}
	a.AnyOf = anyOf
	return &a
}
