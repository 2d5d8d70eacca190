package profile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pommelgym/pommel/internal/yamlfile"
)

func TestShippedProfilesAreGood(t *testing.T) {
	t.Parallel()
	for _, name := range Shipped() {
		p, err := Load(name, nil)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if p.Name != name {
			t.Errorf("profile %s calls itself %s", name, p.Name)
		}
	}
	if len(Shipped()) != 5 {
		t.Errorf("shipped: %v", Shipped())
	}
}

// TestHeldOut: no rule of the held-out profile shares kind and settings with another one.
func TestHeldOut(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, name := range Shipped() {
		if name == "heldout" {
			continue
		}
		p, _ := Load(name, nil)
		for _, r := range p.Rules {
			used[r.Kind+"/"+strings.Join(r.With["words"].Values, ",")+strings.Join(r.With["style"].Values, ",")+strings.Join(r.With["delay"].Values, ",")] = true
		}
	}
	p, _ := Load("heldout", nil)
	for _, r := range p.Rules {
		key := r.Kind + "/" + strings.Join(r.With["words"].Values, ",") + strings.Join(r.With["style"].Values, ",") + strings.Join(r.With["delay"].Values, ",")
		if used[key] {
			t.Errorf("heldout and another profile use %s alike", key)
		}
	}
}

func TestMistakesHaveAPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"name: x\nrules:\n  - {kind: ui.pop}\n":                                          "p.yaml:3:12: rules[0].kind: there is no kind \"ui.pop\"; known are",
		"name: x\nrules:\n  - {kind: ui.toast, strength: 2}\n":                           "p.yaml:3:32: rules[0].strength: expected a number from 0 to 1, got 2",
		"name: x\nrules:\n  - {kind: ui.toast}\n  - {kind: ui.toast}\n":                  "p.yaml:4:12: rules[1].kind: there is a rule \"ui.toast\" already",
		"name: x\nrules:\n  - {kind: ui.toast, with: {words: loud}}\n":                   "expected one of common, heldout, got \"loud\"",
		"name: x\nrules:\n  - {kind: ui.toast, with: {size: 3}}\n":                       "ui.toast has no setting \"size\"; known are: delay, words, stay",
		"name: x\nrules:\n  - {kind: http.latency, with: {delay: {from: 2s, to: 1s}}}\n": "expected from to be no more than to",
		"name: x\nrules:\n  - {kind: http.error, targets: {urls: [cart]}}\n":             "expected a path such as /cart*",
		"name: x\nrules:\n  - {kind: ui.toast, targets: {methods: [GET]}}\n":             "ui.toast is not about requests",
		"name: x\nrules:\n  - {kind: http.error, probability: 1, limit: 9}\n":            "could fail 9 times in a row",
		"name: x\nrecovery: {steps: 3}\nrules:\n  - {kind: http.error}\n":                "more than the 3 of recovery.steps",
		"name: x\nfrob: 1\n": "p.yaml:2:1",
		"name: x\nschedule: [{at: 0.5, strength: 1}, {at: 0.2, strength: 0}]\n": "expected more than the 0.5",
	} {
		_, err := Parse("p.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]float64{"rough@0": 0, "rough@0.25": 0.25, "rough@20%": 0.2, "rough@60%": 0.6, "mild@100%": 1} {
		p, err := Load(ref, nil)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
		} else if got := *p.Strength; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s has strength %g, want %g", ref, got, want)
		}
	}
	for _, ref := range []string{"nothing", "rough@2", "rough@-1", "rough@x", "rough@200%", "calm@10%", "/does/not/exist.yaml"} {
		if _, err := Load(ref, nil); err == nil {
			t.Errorf("%s loads", ref)
		}
	}
	for _, ref := range []string{"", "none"} {
		if p, err := Load(ref, nil); p != nil || err != nil {
			t.Errorf("%q: %v, %v", ref, p, err)
		}
	}
}

// TestSchemaAgrees: what ships fits the schema, and mistakes of form do not.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("profile.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("profile.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(data []byte) error {
		f, err := yamlfile.Parse("p.yaml", data)
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(f.Root.Any())
	}
	for _, name := range Shipped() {
		data, _, err := read(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(data); err != nil {
			t.Errorf("%s does not fit the schema: %v", name, err)
		}
	}
	for _, bad := range []string{"name: X Y", "name: x\nfrob: 1", "name: x\nrules: [{strength: 1}]", "name: x\nrules: [{kind: a, strength: 2}]"} {
		if check([]byte(bad)) == nil {
			t.Errorf("%q fits the schema", bad)
		}
	}
}
