// Package own reads the kinds of perturbation that a world brings: files of SQL that runs
// between two steps, or of a script that runs in a page.
package own

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

// Dir is the folder of a world that holds its kinds, beside world.yaml.
const Dir = "perturb"

// Load reads the kinds of a world's folder; without one there are none.
func Load(world string) ([]kind.Kind, error) {
	paths, err := Files(world)
	if err != nil {
		return nil, err
	}
	var out []kind.Kind
	var errs []error
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read perturbation: %w", err)
		}
		k, err := Parse(p, data)
		switch {
		case err != nil:
			errs = append(errs, err)
		case slices.ContainsFunc(out, func(o kind.Kind) bool { return o.Name == k.Name }):
			errs = append(errs, fmt.Errorf("%s: the kind %q is taken by another file", p, k.Name))
		default:
			out = append(out, *k)
		}
	}
	return out, errors.Join(errs...)
}

// Parse reads the content of one file.
func Parse(path string, data []byte) (*kind.Kind, error) {
	f, err := yamlfile.Parse(path, data)
	if err != nil {
		return nil, err
	}
	var spec struct {
		Kind     string   `yaml:"kind,required"`
		Title    string   `yaml:"title,required"`
		Cost     int      `yaml:"cost"`
		Recovery string   `yaml:"recovery,required"`
		Needs    string   `yaml:"needs"`
		When     string   `yaml:"when"`
		SQL      []string `yaml:"sql"`
		Lasts    int      `yaml:"lasts"`
		Undo     []string `yaml:"undo"`
		Seen     string   `yaml:"seen"`
		Tell     string   `yaml:"tell"`
		Script   string   `yaml:"script"`
	}
	if err := f.Decode(&spec); err != nil {
		return nil, err
	}
	fail := func(field, format string, args ...any) error {
		return yamlfile.Errors{f.Errorf(field, format, args...)}
	}
	_, builtIn := kind.Find(spec.Kind)
	switch {
	case builtIn || strings.Count(spec.Kind, ".") != 1:
		return nil, fail("kind", "expected a name such as data.price_change that is not built in, got %q", spec.Kind)
	case (len(spec.SQL) == 0) == (spec.Script == ""):
		return nil, fail("kind", "expected either sql or script")
	case spec.Script != "" && spec.Needs+spec.When+spec.Tell+spec.Seen != "":
		return nil, fail("script", "needs, when, seen and tell go with sql only")
	case spec.Cost < 0 || spec.Cost > 50:
		return nil, fail("cost", "expected 0 to 50 steps, got %d", spec.Cost)
	case (spec.Lasts != 0) != (len(spec.Undo) > 0) || len(spec.Undo) > 0 && len(spec.SQL) == 0:
		return nil, fail("kind", "expected lasts, undo and sql together: undo takes back what sql did after so many steps")
	case spec.Lasts < 0 || spec.Lasts > spec.Cost:
		return nil, fail("lasts", "expected 1 step to the %d of cost, got %d: who waits for the end of it needs that many", spec.Cost, spec.Lasts)
	}
	k := &kind.Kind{Name: spec.Kind, Doc: spec.Title, Cost: spec.Cost, Recovery: spec.Recovery, Own: true, Point: kind.Page, Script: spec.Script}
	if len(spec.SQL) > 0 {
		k.Point = kind.Step
		k.SQL = &kind.SQL{Needs: spec.Needs, When: spec.When, Run: spec.SQL, Undo: spec.Undo, Lasts: spec.Lasts, Seen: spec.Seen, Tell: spec.Tell}
	}
	return k, nil
}

// Values are the columns of the row that a kind's queries gave.
type Values map[string]*string

// Add takes over the first row of a result, and says whether there is one.
func (v Values) Add(rows *postgres.Rows) bool {
	if rows == nil || len(rows.Text) == 0 {
		return false
	}
	for i, c := range rows.Columns {
		v[c.Name] = rows.Text[0][i]
	}
	return true
}

// Fill replaces ${column} in a text.
func (v Values) Fill(text string) (string, error) {
	out, _, err := v.replace(text, func(s *string, _ int) string {
		if s == nil {
			return ""
		}
		return *s
	})
	return out, err
}

// Bind makes a statement of SQL in which each ${column} is a parameter.
func (v Values) Bind(sql string) (postgres.Statement, error) {
	out, args, err := v.replace(sql, func(_ *string, n int) string { return fmt.Sprintf("$%d", n) })
	return postgres.Statement{SQL: out, Args: args}, err
}

func (v Values) replace(text string, put func(value *string, n int) string) (string, []any, error) {
	var b strings.Builder
	var args []any
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), args, nil
		}
		name, after, closed := strings.Cut(rest, "}")
		value, known := v[name]
		if !closed || !known {
			return "", nil, fmt.Errorf("${%s} is no column of needs or when", name)
		}
		if value == nil {
			args = append(args, nil)
		} else {
			args = append(args, *value)
		}
		b.WriteString(put(value, len(args)))
		text = after
	}
}
