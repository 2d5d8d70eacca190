package task

import (
	"regexp"
	"slices"
)

// Uses tells which parameters each part of a task refers to.
type Uses struct {
	Instruction, Start, Setup, Reward, Oracle []string
	// Sources are the parameters that a parameter's own source refers to.
	Sources map[string][]string
	// Kinds are query, value, int, choice or token, by parameter.
	Kinds map[string]string
}

var scriptParam = regexp.MustCompile(`\bp\.([A-Za-z_][A-Za-z0-9_]*)`)

// Uses reads the references of the template.
func (s *Spec) Uses() Uses {
	u := Uses{Sources: map[string][]string{}, Kinds: map[string]string{}}
	u.Instruction = named(s.Instruction)
	u.Start = named(s.Start.URL)
	for _, c := range s.Start.Cookies {
		u.Start = append(u.Start, named(c)...)
	}
	for _, sql := range s.Setup {
		u.Setup = append(u.Setup, inSQL(sql)...)
	}
	for _, st := range s.Reward.Stages {
		u.Reward = append(u.Reward, st.uses()...)
	}
	for _, o := range s.Reward.Only {
		u.Reward = append(u.Reward, inSQL(o.Where)...)
	}
	u.Oracle = named(s.Oracle)
	for _, m := range scriptParam.FindAllStringSubmatch(s.Oracle, -1) {
		u.Oracle = append(u.Oracle, m[1])
	}
	for _, p := range s.Params {
		u.Sources[p.Name] = unique(append(inSQL(p.Query), inSQL(p.Value)...))
		u.Kinds[p.Name] = p.kind()
	}
	for _, list := range []*[]string{&u.Instruction, &u.Start, &u.Setup, &u.Reward, &u.Oracle} {
		*list = unique(*list)
	}
	return u
}

func (p Param) kind() string {
	switch {
	case p.Query != "":
		return "query"
	case p.Value != "":
		return "value"
	case p.Int != nil:
		return "int"
	case p.Token > 0:
		return "token"
	}
	return "choice"
}

func (s Stage) uses() []string {
	out := inSQL(s.Query)
	if s.Expect != nil {
		for _, r := range s.Expect.Rows {
			out = append(out, r.uses()...)
		}
	}
	if s.Answer != nil {
		values := s.Answer.AnyOf
		if s.Answer.Value != nil {
			values = append(values, *s.Answer.Value)
		}
		for _, v := range values {
			out = append(out, v.uses()...)
		}
	}
	for _, c := range s.Changes {
		out = append(append(out, c.Old.uses()...), c.New.uses()...)
	}
	if s.Page != nil {
		out = append(out, named(s.Page.Text)...)
		for _, url := range s.Page.URLs {
			out = append(out, named(url)...)
		}
	}
	return out
}

func (r Row) uses() []string {
	var out []string
	for _, f := range r {
		out = append(out, f.Value.uses()...)
	}
	return out
}

func (v Value) uses() []string {
	out := named(v.Text)
	for _, item := range v.Items {
		out = append(out, item.uses()...)
	}
	for _, f := range v.Fields {
		out = append(out, f.Value.uses()...)
	}
	return out
}

// named are the parameters that a text refers to.
func named(text string) []string {
	var out []string
	refs, _ := references(text)
	for _, r := range refs {
		out = append(out, r.Name)
	}
	return out
}

func inSQL(sql string) []string {
	var out []string
	for _, r := range scanSQL(sql).refs {
		out = append(out, r.Name)
	}
	return out
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// Reaches says whether parameter from is one of names or goes, over any number of
// sources, into one of them.
func (u Uses) Reaches(from string, names []string) bool {
	seen := map[string]bool{}
	var into func(name string) bool
	into = func(name string) bool {
		if name == from {
			return true
		}
		if seen[name] {
			return false
		}
		seen[name] = true
		return slices.ContainsFunc(u.Sources[name], into)
	}
	return slices.ContainsFunc(names, into)
}
