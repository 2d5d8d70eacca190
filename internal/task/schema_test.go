package task

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pommelgym/pommel/internal/task/schema"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

// TestSchemaAgrees: what Pommel reads fits the schema, and mistakes of form fit neither.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.Task))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("task.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("task.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		f, err := yamlfile.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(f.Root.Any())
	}
	edits := [][2]string{
		{"difficulty: easy", "difficulty: easy"},
		{"{type: money, value: \"${total}\", currency: USD}", "{type: set, of: text, value: [a, b], match: ci}"},
		{"{type: money, value: \"${total}\", currency: USD}", "{type: infeasible}"},
		{"{type: money, value: \"${total}\", currency: USD}", "{type: quantity, any_of: [21, 22], unit: in, within: 0.5, locale: de}"},
		{"    - cart_items\n", "    - audit.log\n"},
		{"expect: {rows: [{sku: \"${product.sku}\", quantity: \"${quantity}\"}]}", "expect: {at_least: 1}"},
	}
	for _, e := range edits {
		text := strings.Replace(whole, e[0], e[1], 1)
		if _, err := Parse("t.yaml", []byte(text)); err != nil {
			t.Errorf("%s is refused: %v", e[1], err)
		}
		if err := validate(text); err != nil {
			t.Errorf("%s does not fit the schema: %v", e[1], err)
		}
	}
	for old, bad := range map[string]string{
		"title:": "titel:", "difficulty: easy": "difficulty: simple", "split: train": "split: dev", "steps: 12": "steps: 0",
		"op: insert": "op: upsert", "type: money": "type: cash", "[ci, trim]": "[ci, trimmed]", "until: success": "until: done",
		"id: buy-item": "id: Buy Item", "{int: [1, 3]}": "{int: [1, 3], token: 3}", "mode: potential": "mode: dense",
		"page: {url: [/done, \"/orders/${product.id}\"], text: Thank you}":               "http: {url: /x}",
		"      expect: {rows: [{sku: \"${product.sku}\", quantity: \"${quantity}\"}]}\n": "",
		"{type: money, value: \"${total}\", currency: USD}":                              "{type: money, currency: USD}",
		"{table: sessions, where: \"customer_id = ${customer.id}\"}":                     "{where: x}",
	} {
		text := strings.Replace(whole, old, bad, 1)
		if text == whole {
			t.Fatalf("the task holds no %q", old)
		}
		if _, err := Parse("t.yaml", []byte(text)); err == nil {
			t.Errorf("%s is read", bad)
		}
		if validate(text) == nil {
			t.Errorf("%s fits the schema", bad)
		}
	}
}
