package yamlfile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pommelgym/pommel/internal/yamlfile"
)

type probe struct {
	HTTP    string        `yaml:"http"`
	Timeout time.Duration `yaml:"timeout"`
}

type service struct {
	Name  string            `yaml:"name,required"`
	Env   map[string]string `yaml:"env"`
	Ready *probe            `yaml:"ready"`
	Range [2]int            `yaml:"range"`
}

type world struct {
	Name     string    `yaml:"name,required"`
	Clock    time.Time `yaml:"clock"`
	Services []service `yaml:"services"`
	Weight   float64   `yaml:"weight"`
	On       bool      `yaml:"on"`
	Extra    any       `yaml:"extra"`
}

func TestDecodeGood(t *testing.T) {
	t.Parallel()
	src := `
# a comment
name: shop
clock: 2025-03-10T09:00:00Z
weight: 2
on: true
extra: {a: [1, 2.5, x, null, false]}
services:
  - name: db
    env: &e {PORT: 8080, EMPTY: "", V: 1.10, ZIP: 007}
  - name: app
    env: *e
    ready:
      http: http://127.0.0.1:8080/
      timeout: 10s
    range: [1, 3]
`
	var got world
	if err := yamlfile.Decode("w.yaml", []byte(src), &got); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PORT": "8080", "EMPTY": "", "V": "1.10", "ZIP": "007"}
	want := world{
		Name: "shop", Clock: time.Date(2025, 3, 10, 9, 0, 0, 0, time.UTC), Weight: 2, On: true,
		Extra: map[string]any{"a": []any{int64(1), 2.5, "x", nil, false}},
		Services: []service{
			{Name: "db", Env: env},
			{Name: "app", Env: env, Ready: &probe{HTTP: "http://127.0.0.1:8080/", Timeout: 10 * time.Second}, Range: [2]int{1, 3}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
}

func TestDecodeBad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ src, want string }{
		"misspelt":      {"name: a\nservices:\n  - nmae: db\n    name: x\n", `w.yaml:3:5: services[0].nmae: unknown key "nmae"; did you mean "name"?`},
		"unknown":       {"name: a\nzzz: 1\n", `w.yaml:2:1: zzz: unknown key "zzz"; known keys here: name, clock, services, weight, on, extra`},
		"missing":       {"name: a\nservices:\n  - env: {}\n", `w.yaml:3:5: services[0].name: the key "name" is missing`},
		"wrong kind":    {"name: [a]\n", `w.yaml:1:7: name: expected a string, got a list`},
		"wrong number":  {"name: a\nweight: heavy\n", `w.yaml:2:9: weight: expected a number, got the string "heavy"`},
		"wrong bool":    {"name: a\non: yes\n", `w.yaml:2:5: on: expected true or false, got the string "yes"`},
		"duration":      {"name: a\nservices: [{name: b, ready: {timeout: 10}}]\n", `w.yaml:2:39: services[0].ready.timeout: expected a duration such as 10s, 500ms or 1m30s, got a whole number (10)`},
		"time":          {"name: a\nclock: tomorrow\n", `w.yaml:2:8: clock: expected an instant such as 2025-03-10T09:00:00Z, got the string "tomorrow"`},
		"null":          {"name:\n", `w.yaml:1:7: name: expected a string, but no value is given`},
		"array length":  {"name: a\nservices: [{name: b, range: [1]}]\n", `w.yaml:2:29: services[0].range: expected a list of 2 values, got 1`},
		"empty":         {"", `w.yaml:1:1: the file is empty`},
		"only comment":  {"# nothing\n", `w.yaml:1:1: the file is empty`},
		"two documents": {"name: a\n---\nname: b\n", `w.yaml:3:1: a second document starts here; one file holds one document`},
		"merge":         {"name: a\nextra:\n  <<: {a: 1}\n", `w.yaml:3:3: extra: merge keys (<<) are not used here; write the keys out`},
		"tag":           {"name: !!int 3\n", `w.yaml:1:7: name: YAML tags such as !!int are not used here; write the plain value`},
		"unknown alias": {"name: *x\n", `w.yaml:1:7: name: no anchor &x comes before this alias`},
		"not a mapping": {"- a\n", `w.yaml:1:1: expected a mapping with name, clock, services, weight, on, extra, got a list`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got world
			err := yamlfile.Decode("w.yaml", []byte(c.src), &got)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != c.want {
				t.Fatalf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestSyntaxErrorsHaveAPlace(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"name: a\n  b: c: d\n", "name: [a\n", "name: \"a\n", "name: a\nname: b\n", "\tname: a\n", "a: &x [*x]\n"} {
		var got world
		err := yamlfile.Decode("w.yaml", []byte(src), &got)
		var one *yamlfile.Error
		if !errors.As(err, &one) {
			t.Errorf("%q: %v", src, err)
			continue
		}
		if one.Pos.Line < 1 || one.Pos.Col < 1 {
			t.Errorf("%q: no place: %v", src, err)
		}
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	var got world
	err := yamlfile.Decode("w.yaml", []byte("nam: a\nweight: x\non: 3\n"), &got)
	var all yamlfile.Errors
	if !errors.As(err, &all) || len(all) != 4 {
		t.Fatalf("want 4 mistakes, got %v", err)
	}
}

func TestAliasBombEnds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		prev := "*a" + string(rune('0'+i-1)) + ","
		if i > 10 {
			break
		}
		b.WriteString("a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat(prev, 10) + "]\n")
	}
	if _, err := yamlfile.Parse("bomb.yaml", []byte(b.String())); err == nil {
		t.Fatal("accepted")
	}
}

func TestPosOfLaterChecks(t *testing.T) {
	t.Parallel()
	src := "name: a\nservices:\n  - name: db\n  - name: app\n    ready: {http: nope}\n"
	f, err := yamlfile.Parse("w.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]yamlfile.Pos{
		"services[1].ready.http": {Line: 5, Col: 19},
		"services[1].ready.tcp":  {Line: 5, Col: 12}, // not there: its mapping
		"services[1]":            {Line: 4, Col: 5},
		"services[9].x":          {Line: 3, Col: 3},
		"name":                   {Line: 1, Col: 7},
	} {
		if got := f.Pos(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if got := f.Errorf("services[1].ready.http", "not a URL").Error(); got != "w.yaml:5:19: services[1].ready.http: not a URL" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("name: a\nservices: [{name: b}]\n"))
	f.Add([]byte("a: &x {b: *x}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got world
		err := yamlfile.Decode("f.yaml", data, &got)
		if err == nil && got.Name == "" {
			// Only an empty string written out gives an empty required name.
			file, _ := yamlfile.Parse("f.yaml", data)
			if file.Node("name") == nil {
				t.Fatal("a missing required key was accepted")
			}
		}
	})
}
