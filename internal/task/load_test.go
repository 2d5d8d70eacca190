package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whole is a task that uses every part of the format.
const whole = `id: buy-item
title: Buy a product
difficulty: easy
split: train
instruction: Buy ${quantity} of "${product.name}".
params:
  customer: {query: "SELECT id, email FROM customers ORDER BY id"}
  product: {query: "SELECT id, name, sku, price FROM products WHERE stock > 5 ORDER BY id"}
  quantity: {int: [1, 3]}
  colour: {choice: [red, blue]}
  total: {value: "SELECT ${product.price}::numeric * ${quantity}::int"}
  token: {token: 32}
setup:
  - INSERT INTO sessions (token, customer_id) VALUES (${token}, ${customer.id})
start:
  url: /product/${product.id}
  cookies: {session: "${token}"}
limits: {steps: 12}
reward:
  mode: potential
  until: success
  stages:
    - name: in_cart
      weight: 0.2
      query: SELECT sku, quantity FROM cart_items WHERE customer_id = ${customer.id}
      expect: {rows: [{sku: "${product.sku}", quantity: "${quantity}"}]}
      latch: true
    - name: charged
      weight: 0.3
      after: [in_cart]
      order: strict
      match: {note: [ci, trim]}
      changes:
        - {table: cart_items, op: insert, new: {customer_id: "${customer.id}"}, count: 1}
        - {table: cart_items, op: delete, old: {note: X}}
    - {name: there, weight: 0, page: {url: [/done, "/orders/${product.id}"], text: Thank you}}
    - name: told
      weight: 0.5
      answer: {type: money, value: "${total}", currency: USD}
  only:
    - cart_items
    - {table: sessions, where: "customer_id = ${customer.id}"}
oracle: |
  click(selector = "#add")
`

func TestParseWhole(t *testing.T) {
	t.Parallel()
	s, err := Parse("tasks/buy.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != "buy-item" || len(s.Params) != 6 || s.Params[0].Name != "customer" || s.Params[5].Token != 32 || len(s.Reward.Stages) != 4 ||
		!s.Reward.HasOnly || s.Reward.Only[1].Where == "" || len(s.Reward.Stages[2].Page.URLs) != 2 || s.File() != "tasks/buy.yaml" {
		t.Errorf("read as %+v", s)
	}
}

// TestRefusals: every mistake is named with its place and what to do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	edit := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("the task holds no %q", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":          {edit("title:", "titel:"), `t.yaml:2:1: titel: unknown key "titel"; did you mean "title"?`},
		"unknown key in stage": {edit("latch: true", "latched: true"), `t.yaml:27:7: reward.stages[0].latched: unknown key "latched"; did you mean "latch"?`},
		"weights":              {edit("weight: 0.3", "weight: 0.4"), `t.yaml:23:5: reward.stages: the weights of the stages sum to 1.1, not to 1; change the weights so that they sum to 1`},
		"undefined parameter":  {edit("${quantity} of", "${quantty} of"), `t.yaml:5:18: instruction: ${quantty} names no parameter that stands before it; defined are customer, product, quantity, colour, total, token`},
		"parameter too early":  {edit("WHERE stock > 5", "WHERE stock > ${quantity}"), `t.yaml:8:77: params.product.query: ${quantity} names no parameter that stands before it; defined are customer`},
		"column of a scalar":   {edit("${total}", "${total.sum}"), `${total.sum} asks for a column, but total is a single value; write ${total}`},
		"malformed reference":  {edit("${token}\"", "${to ken}\""), `"${to ken}" is not a reference to a parameter`},
		"after":                {edit("after: [in_cart]", "after: [incart]"), `t.yaml:30:15: reward.stages[1].after[0]: there is no stage "incart"`},
		"circle":               {edit("latch: true", "after: [charged]"), `stages wait for each other in a circle through after`},
		"split":                {edit("split: train", "split: dev"), `t.yaml:4:8: split: unknown split "dev"; expected train, validation or test`},
		"difficulty":           {edit("difficulty: easy", "difficulty: simple"), `t.yaml:3:13: difficulty: unknown difficulty "simple"; expected easy, medium or hard`},
		"answer type":          {edit("type: money", "type: cash"), `reward.stages[3].answer.type: unknown type of answer "cash"; expected number, integer, id,`},
		"answer value":         {edit(`value: "${total}"`, "value: ten"), `"ten" is not a number; write digits and a point, as 1234.5`},
		"no currency":          {edit(", currency: USD", ""), `an answer of type money needs currency; as currency: USD`},
		"id":                   {edit("id: buy-item", "id: Buy Item"), `t.yaml:1:5: id: "Buy Item" is not an id; use lower-case letters, digits, - and _`},
		"two sources":          {edit("{int: [1, 3]}", "{int: [1, 3], token: 3}"), `t.yaml:9:13: params.quantity: 2 sources given; expected exactly one of query, value, int, choice or token`},
		"bounds":               {edit("[1, 3]", "[3, 1]"), `params.quantity.int: no number is between 3 and 1; write the lower bound first`},
		"write in a query":     {edit("query: SELECT sku, quantity FROM cart_items", "query: DELETE FROM cart_items"), `t.yaml:25:14: reward.stages[0].query: expected a query that only reads, got DELETE; start with select, with, values or table`},
		"in a string":          {edit("stock > 5", "name LIKE '%${customer.id}%'"), `stands inside a string or a quoted name, where no value can be bound; put it outside and join: '...' || ${customer.id}::text || '...'`},
		"numbered parameter":   {edit("stock > 5", "stock > $1"), `t.yaml:8:77: params.product.query: numbered parameters are not used here; write ${name}`},
		"second statement":     {edit("VALUES (${token}, ${customer.id})", "VALUES (1, 2); DELETE FROM sessions"), `t.yaml:14:62: setup[0]: a second statement starts here; write each statement as its own entry`},
		"http":                 {edit("page: {url: [/done, \"/orders/${product.id}\"], text: Thank you}", "http: {url: /x}"), `stages of kind http do not exist; judge by the rows that the request leaves behind`},
		"no expect":            {edit("      expect: {rows: [{sku: \"${product.sku}\", quantity: \"${quantity}\"}]}\n", ""), `the query has no expect; add rows, empty, count or at_least`},
		"match":                {edit("[ci, trim]", "[ci, trimmed]"), `unknown mode of comparison "trimmed"; expected exact, ci, trim, regex, contains, blank_is_null or set`},
		"op":                   {edit("op: insert", "op: upsert"), `unknown op "upsert"; expected insert, update or delete`},
		"steps":                {edit("steps: 12", "steps: 0"), `t.yaml:18:17: limits.steps: expected at least 1 step, got 0`},
		"same stage twice":     {edit("name: told", "name: in_cart"), `the stage "in_cart" stands here a second time`},
		"two kinds":            {edit("answer: {type", "query: SELECT 1\n      answer: {type"), `2 kinds of stage given; expected exactly one of query, answer, changes or page`},
		"until":                {edit("until: success", "until: done"), `unknown until "done"; expected success`},
	} {
		_, err := Parse("t.yaml", []byte(c.text))
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
	_, err := Parse("t.yaml", []byte(whole[:strings.Index(whole, "reward:")]+"reward: {stages: []}\n"))
	if err == nil || !strings.Contains(err.Error(), "the task rewards nothing") {
		t.Errorf("an empty reward: %v", err)
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("split: train", "split: x", "difficulty: easy", "difficulty: y", "weight: 0.5", "weight: 0.6").Replace(whole)
	_, err := Parse("t.yaml", []byte(text))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want three lines", err)
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yaml", whole)
	write("more/a.yaml", strings.NewReplacer("id: buy-item", "id: a", "split: train", "split: test", "difficulty: easy", "difficulty: hard").Replace(whole))
	write("README.md", "no task")
	s, err := LoadSuite(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		split, difficulty string
		ids               []string
		want              string
	}{
		{"", "", nil, "a buy-item"}, {"train", "", nil, "buy-item"}, {"", "hard", nil, "a"}, {"train", "hard", nil, ""}, {"", "", []string{"buy-item"}, "buy-item"},
	} {
		got, err := s.Select(c.split, c.difficulty, c.ids)
		var ids []string
		for _, one := range got {
			ids = append(ids, one.ID)
		}
		if err != nil || strings.Join(ids, " ") != c.want {
			t.Errorf("Select(%q, %q, %v) = %v, %v, want %s", c.split, c.difficulty, c.ids, ids, err, c.want)
		}
	}
	if _, err := s.Select("", "", []string{"x"}); err == nil || !strings.Contains(err.Error(), `there is no task "x"; known are a, buy-item`) {
		t.Errorf("an unknown id: %v", err)
	}
	if _, err := s.Select("dev", "", nil); err == nil {
		t.Error("an unknown split is accepted")
	}
	write("c.yaml", whole)
	if _, err := LoadSuite(dir); err == nil || !strings.Contains(err.Error(), `the id "buy-item" is taken by`) {
		t.Errorf("two tasks with one id: %v", err)
	}
	if _, err := LoadSuite(t.TempDir()); err == nil {
		t.Error("a folder without tasks is a suite")
	}
}

func TestSeedSplit(t *testing.T) {
	t.Parallel()
	for seed, want := range map[int64]string{0: "train", 6: "train", 7: "validation", 8: "validation", 9: "test", 19: "test", 100: "train", -1: "test"} {
		if got := SeedSplit(seed); got != want {
			t.Errorf("SeedSplit(%d) = %s, want %s", seed, got, want)
		}
	}
}

func TestScanSQL(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		`SELECT ${a}, '${b}', "${c}", $$ ${d} $$, $t$ ${e} $t$ -- ${f}`:     `SELECT $1, '${b}', "${c}", $$ ${d} $$, $t$ ${e} $t$ -- ${f}`,
		`SELECT /* ${a} /* ${b} */ */ ${c.d} || E'\' ${e}' || 'it''s ${f}'`: `SELECT /* ${a} /* ${b} */ */ $1 || E'\' ${e}' || 'it''s ${f}'`,
		"  SELECT ${a}::int, ${a} ":                                         `SELECT $1::int, $2`,
	} {
		s := scanSQL(sql)
		if d := cmp.Diff(want, s.bind()); d != "" {
			t.Errorf("%s (-want +got):\n%s", sql, d)
		}
		for _, r := range s.refs {
			at := strings.Index(s.bind(), "$1")
			if got := s.sourceOffset(at); r.Start == s.refs[0].Start && got != r.Start {
				t.Errorf("%s: offset %d is %d in the source, want %d", sql, at, got, r.Start)
			}
		}
	}
	if !scanSQL("SELECT a FROM (SELECT 1) x ORDER BY a").ordered() || scanSQL("SELECT a FROM (SELECT 1 ORDER BY 1) x").ordered() {
		t.Error("ORDER BY is not told from one inside")
	}
	if scanSQL("SELECT 1; -- the end\n").second >= 0 || scanSQL("SELECT 1; SELECT 2").second != 10 {
		t.Error("a second statement is not told from a comment")
	}
}
