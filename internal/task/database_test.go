package task

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/postgres/pgtest"
)

const shop = `
CREATE TABLE customers(id int PRIMARY KEY, email text, active bool DEFAULT true);
CREATE TABLE products(id int PRIMARY KEY, name text, sku text, price numeric(10,2), stock int);
CREATE TABLE cart_items(customer_id int, sku text, quantity int, note text, added timestamptz);
CREATE TABLE sessions(token text PRIMARY KEY, customer_id int);
INSERT INTO customers SELECT g, 'c' || g || '@shop.test' FROM generate_series(1, 40) g;
INSERT INTO products SELECT g, 'Product "' || g || '"', 'P-' || g, g * 1.25, g FROM generate_series(1, 40) g;`

func openShop(t *testing.T) (*pgtest.DB, *postgres.Judge) {
	t.Helper()
	db := pgtest.New(t, shop)
	j, err := postgres.OpenJudge(context.Background(), db.JudgeDSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close(context.Background()) })
	return db, j
}

func parse(t *testing.T, text string) *Spec {
	t.Helper()
	s, err := Parse("tasks/t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInstantiate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, j := openShop(t)
	spec := parse(t, whole)
	inst, err := Instantiate(ctx, spec, 7, j)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Instantiate(ctx, spec, 7, j)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(inst, again); d != "" {
		t.Errorf("the same seed gives another instance:\n%s", d)
	}
	get := func(name string) Value {
		t.Helper()
		in := instantiator{spec: spec, drawn: inst.Params}
		refs, _ := references("${" + name + "}")
		v, err := in.lookup(refs[0])
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	sku, quantity, token := get("product.sku"), get("quantity"), get("token")
	if want := fmt.Sprintf(`Buy %s of "%s".`, quantity.Text, get("product.name").Text); inst.Instruction != want {
		t.Errorf("instruction %q", inst.Instruction)
	}
	if inst.Cookies["session"] != token.Text || len(token.Text) != 32 || inst.StartURL != "/product/"+get("product.id").Text || inst.SeedSplit != "validation" {
		t.Errorf("instance %+v", inst)
	}
	cart := inst.Reward.Stages[0]
	if cart.Statement.SQL != "SELECT sku, quantity FROM cart_items WHERE customer_id = $1" || cart.Statement.Args[0] != get("customer.id").Text {
		t.Errorf("statement %+v", cart.Statement)
	}
	if row := cart.Expect.Rows[0]; cmp.Diff(row[0].Value, sku) != "" || row[1].Value.Kind != Int {
		t.Errorf("expected row %+v", row)
	}
	if spec.Reward.Stages[0].Expect.Rows[0][0].Value.Text != "${product.sku}" {
		t.Error("the template was changed by its instance")
	}
	setup, err := postgres.OpenSetup(ctx, db.AppDSN)
	if err != nil {
		t.Fatal(err)
	}
	defer setup.Close(ctx)
	if err := setup.ExecAll(ctx, inst.Setup); err != nil {
		t.Fatal(err)
	}
	rows, err := j.Query(ctx, "SELECT customer_id FROM sessions WHERE token = $1", token.Text)
	if err != nil || len(rows.Text) != 1 || *rows.Text[0][0] != get("customer.id").Text {
		t.Errorf("after setup: %v, %v", rows, err)
	}
}

// TestStreamsAreIndependent: another parameter, before or after, changes no value (C33).
func TestStreamsAreIndependent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const body = `id: t
title: T
difficulty: easy
split: train
instruction: Do it.
params:
  a: {int: [0, 1000000]}
  b: {token: 40}
reward: {stages: [{name: a, weight: 1, answer: {type: text, value: x}}]}
`
	texts := func(body string, seed int64) map[string]string {
		inst, err := Instantiate(ctx, parse(t, body), seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, d := range inst.Params {
			v, _ := d.Value()
			out[d.Name] = v.Text
		}
		return out
	}
	base := texts(body, 11)
	more := texts(strings.Replace(body, "  a: {int", "  z: {token: 8}\n  a: {int", 1), 11)
	delete(more, "z")
	if d := cmp.Diff(base, more); d != "" {
		t.Errorf("a new parameter shifts others:\n%s", d)
	}
	if other := texts(body, 12); other["a"] == base["a"] || other["b"] == base["b"] {
		t.Errorf("seed 12 gives values of seed 11: %v, %v", base, other)
	}
	if other := texts(strings.Replace(body, "id: t", "id: u", 1), 11); other["b"] == base["b"] {
		t.Error("another task draws the same values")
	}
	// These values are part of what a seed means: they must stay as they are for ever.
	if base["a"] != "91537" || !strings.HasPrefix(base["b"], "6b7a9e945d") {
		t.Errorf("seed 11 no longer means what it meant: %v", base)
	}
}

func TestCheckAgainst(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, j := openShop(t)
	found, err := (&Suite{Tasks: []*Spec{parse(t, whole)}}).CheckAgainst(ctx, j)
	if err != nil || len(found) != 0 {
		t.Errorf("a good task: %v, %v", found, err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown table":     {"FROM cart_items", "FROM cartitems", `tasks/t.yaml:25:40: reward.stages[0].query: relation "cartitems" does not exist`},
		"unknown column":    {"SELECT sku, quantity", "SELECT sku, amount", `tasks/t.yaml:25:26: reward.stages[0].query: column "amount" does not exist`},
		"setup":             {"INSERT INTO sessions (token,", "INSERT INTO sessions (tokens,", `tasks/t.yaml:14:27: setup[0]: column "tokens" of relation "sessions" does not exist`},
		"syntax":            {"stock > 5", "stock > > 5", `tasks/t.yaml:8:77: params.product.query: syntax error at or near ">"`},
		"column of the row": {"expect: {rows: [{sku:", "expect: {rows: [{skew:", `tasks/t.yaml:26:30: reward.stages[0].expect.rows[0].skew: the query gives no column "skew"; it gives sku, quantity`},
		"type of a value":   {`quantity: "${quantity}"}`, `quantity: many}`, `reward.stages[0].expect.rows[0].quantity: "many" is not a number`},
		"reference column":  {"${product.sku}", "${product.sko}", `${product.sko}: the query of product has no column "sko"; write ${product.id}, ${product.name}, ${product.sku} or ${product.price}`},
		"row as a value":    {"${product.sku}", "${product}", `${product} is a row with 4 columns; write ${product.id},`},
		"only":              {"    - cart_items\n", "    - cart_item\n", `tasks/t.yaml:41:7: reward.only[0]: there is no table "cart_item"`},
		"condition":         {`where: "customer_id`, `where: "customer`, `tasks/t.yaml:42:33: reward.only[1].where: column "customer" does not exist`},
		"changes table":     {"{table: cart_items, op: insert", "{table: carts, op: insert", `reward.stages[1].changes[0].table: there is no table "carts"`},
		"changes column":    {"old: {note: X}", "old: {remark: X}", `reward.stages[1].changes[1].old.remark: table cart_items has no column "remark"; it has customer_id, sku,`},
		"a query that writes": {"SELECT sku, quantity FROM cart_items WHERE customer_id = ${customer.id}",
			"WITH d AS (DELETE FROM cart_items WHERE customer_id = ${customer.id} RETURNING *) SELECT sku, quantity FROM d", `cannot execute SELECT in a read-only transaction; queries of tasks may only read`},
		"no rows":    {"stock > 5", "stock > 500", `tasks/t.yaml:8:20: params.product.query: the query gives no row to choose from (with customer.id = `},
		"no order":   {" WHERE stock > 5 ORDER BY id", "", `params.product.query: the query gives 40 rows in no defined order; add ORDER BY`},
		"no type":    {"${product.price}::numeric * ${quantity}::int", "${product.price} * ${quantity}", `tasks/t.yaml:11:43: params.total.value: operator is not unique: unknown * unknown; a ${...} has no type of its own; write a cast`},
		"two values": {"SELECT ${product.price}::numeric * ${quantity}::int", "SELECT 1, 2", `params.total.value: expected one row with one column, got 1 rows with 2 columns`},
		"random":     {"ORDER BY id\"}\n  quantity", "ORDER BY random()\"}\n  quantity", `tasks/t.yaml:8:88: params.product.query: random gives another value in each run`},
	} {
		if !strings.Contains(whole, c.old) {
			t.Fatalf("%s: the task holds no %q", name, c.old)
		}
		found, err := parse(t, strings.Replace(whole, c.old, c.new, 1)).CheckAgainst(ctx, j)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(found) == 0 || !strings.Contains(found[0].Text, c.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, found, c.want)
		}
	}
	for split, want := range map[string]string{"train": "[0 1 2]", "validation": "[7 8 17]", "test": "[9 19 29]", "": "[0 1 2]", "dev": "[]"} {
		if got := fmt.Sprint(Seeds(split, 3)); got != want {
			t.Errorf("Seeds(%q) = %s, want %s", split, got, want)
		}
	}
	warned := parse(t, strings.Replace(whole, "VALUES (${token}, ${customer.id})", "SELECT ${token}, 1 WHERE now() > '2000-01-01'", 1))
	found, err = warned.CheckAgainst(ctx, j)
	if err != nil || len(found) != 1 || !found[0].Warning || !strings.Contains(found[0].Text, "setup[0]: now gives another value in each run") {
		t.Errorf("now() in setup: %v, %v", found, err)
	}
}

// TestLostDatabaseIsNoMistake: the author is not blamed for a server that is gone.
func TestLostDatabaseIsNoMistake(t *testing.T) {
	t.Parallel()
	db, j := openShop(t)
	db.Server.Kill()
	found, err := parse(t, whole).CheckAgainst(context.Background(), j)
	if err == nil || len(found) != 0 {
		t.Errorf("got %v, %v", found, err)
	}
}
