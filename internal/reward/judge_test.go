package reward

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/fault"
)

// TestPartialIsNotSuccess: ticking items 2, 4 and 5 and nothing else (C25).
func TestPartialIsNotSuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE item(id int PRIMARY KEY, picked bool NOT NULL DEFAULT false); INSERT INTO item SELECT g, false FROM generate_series(1, 6) g;")
	body := rewardOf("SELECT id FROM item WHERE picked", "{rows: [{id: 2}, {id: 4}, {id: 5}]}", "  only: [item]")
	for picks, want := range map[string]bool{"2,4,5": true, "2,4": false, "2,4,5,1": false, "1,3,6": false, "0": false} {
		b.exec("UPDATE item SET picked = false WHERE picked")
		b.start(body)
		b.exec("UPDATE item SET picked = true WHERE id IN (" + picks + ")")
		v := b.end(Input{})
		if v.Success != want || !near(v.Reward, map[bool]float64{true: 1}[want]) {
			t.Errorf("%s: %s", picks, show(v))
		}
	}
}

const paymentSchema = "CREATE TABLE payment(order_id int, method text, amount numeric(10,2), meta jsonb, note text);"

// TestRowsAreBags: the comparison of rows with their types (C28).
func TestRowsAreBags(t *testing.T) {
	t.Parallel()
	b := newBench(t, paymentSchema)
	const two = `{rows: [{order_id: 1, method: card_a, amount: 198, meta: {a: 1, b: [1, 2]}, note: null}, {order_id: 1, method: card_b, amount: "129", meta: {}, note: ""}]}`
	cases := []struct {
		name, insert, match string
		want                bool
		diff                string
	}{
		{"as expected, in another order of rows and keys", `(1,'card_b',129,'{}',''),(1,'card_a',198,'{"b":[1,2],"a":1}',NULL)`, "", true, ""},
		{"the first row twice", `(1,'card_a',198,'{"a":1,"b":[1,2]}',NULL),(1,'card_a',198,'{"a":1,"b":[1,2]}',NULL),(1,'card_b',129,'{}','')`, "", false, "1 row too many"},
		{"blank instead of NULL", `(1,'card_a',198,'{"a":1,"b":[1,2]}',''),(1,'card_b',129,'{}','')`, "", false, "note is '', expected NULL"},
		{"blank instead of NULL where that is the same", `(1,'card_a',198,'{"a":1,"b":[1,2]}',''),(1,'card_b',129,'{}',NULL)`, "      match: {note: blank_is_null}", true, ""},
		{"the same amounts with other digits", `(1,'card_a',198.0,'{"a":1.0,"b":[1,2]}',NULL),(1,'card_b',129.00,'{}','')`, "", true, ""},
		{"a list in another order", `(1,'card_a',198,'{"a":1,"b":[2,1]}',NULL),(1,'card_b',129,'{}','')`, "", false, "meta is"},
		{"a list in another order that is a set", `(1,'card_a',198,'{"a":1,"b":[2,1]}',NULL),(1,'card_b',129,'{}','')`, "      match: {meta: set}", true, ""},
		{"no rows at all", ``, "", false, "2 rows missing"},
		{"another amount", `(1,'card_a',198.01,'{"a":1,"b":[1,2]}',NULL),(1,'card_b',129,'{}','')`, "", false, "amount is 198.01, expected 198"},
		{"another case", `(1,'CARD_A',198,'{"a":1,"b":[1,2]}',NULL),(1,'card_b',129,'{}','')`, "", false, "method is CARD_A"},
		{"another case where that is the same", `(1,'CARD_A ',198,'{"a":1,"b":[1,2]}',NULL),(1,'card_b',129,'{}','')`, "      match: {method: [ci, trim]}", true, ""},
	}
	for _, c := range cases {
		b.exec("TRUNCATE payment")
		b.start(rewardOf("SELECT * FROM payment", two, c.match))
		if c.insert != "" {
			b.exec("INSERT INTO payment VALUES " + c.insert)
		}
		v := b.end(Input{})
		if v.Success != c.want || !strings.Contains(v.Stages[0].Diff, c.diff) || (v.Stages[0].Diff == "") != c.want {
			t.Errorf("%s: %s", c.name, show(v))
		}
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestIdleReferenceMessy: an agent that does nothing, one that does it right, one that also
// touches another customer's row (C29).
func TestIdleReferenceMessy(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE orders(id int PRIMARY KEY, customer int, status text); INSERT INTO orders VALUES (1, 1, 'open'), (2, 2, 'open');")
	body := rewardOf("SELECT status FROM orders WHERE id = 1", "{rows: [{status: returned}]}", `  only: [{table: orders, where: "customer = 1"}]`)
	right, stray, undo := "UPDATE orders SET status = 'returned' WHERE id = 1", "UPDATE orders SET status = 'lost' WHERE id = 2", "UPDATE orders SET status = 'open'"

	if err := CheckStart(b.start(body)); err != nil {
		t.Errorf("the task is refused: %v", err)
	}
	if v := b.end(Input{}); v.Success || v.Value != 0 {
		t.Errorf("doing nothing: %s", show(v))
	}
	b.start(body)
	b.exec(right)
	if v := b.end(Input{}); !v.Success || v.Value != 1 || v.Reward != 1 {
		t.Errorf("the right thing: %s", show(v))
	}
	b.exec(undo)
	b.start(body)
	b.exec(right)
	first := b.step(Input{})
	b.exec(stray)
	v := b.end(Input{})
	if v.Success || v.Value != 0 || first.Reward != 1 || v.Reward != -1 || len(v.Collateral) != 1 || v.Collateral[0].Table != "orders" || v.Collateral[0].Rows != 2 {
		t.Errorf("a stray write: %s", show(v))
	}
	b.exec("UPDATE orders SET status = 'open' WHERE id = 2")
	if v := b.end(Input{}); !v.Success || v.Value != 1 {
		t.Errorf("the stray write undone: %s", show(v))
	}
	// Taking another customer's row over is damage too: it was outside before.
	b.exec("UPDATE orders SET customer = 1 WHERE id = 2")
	if v := b.end(Input{}); v.Success {
		t.Errorf("a row taken over: %s", show(v))
	}
	empty := b.start(rewardOf("SELECT * FROM orders WHERE id = 99", "{empty: true}"))
	if CheckStart(empty) == nil {
		t.Error("a task that is done at the start is not refused")
	}
}

// TestJudgeTheState: what counts is the rows, not where the agent is (C30).
func TestJudgeTheState(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE cart_order(id serial, product text, qty int, status text);")
	body := rewardOf("SELECT product, qty FROM cart_order", "{rows: [{product: Watch-S, qty: 3}]}")
	for _, place := range []string{"http://shop.test/orders/1", "http://shop.test/", "about:blank", ""} {
		b.exec("TRUNCATE cart_order")
		b.start(body)
		b.exec("INSERT INTO cart_order (product, qty, status) VALUES ('Watch-S', 3, 'placed')")
		b.page.url, b.page.err = place, nil
		if place == "" {
			b.page.err = fault.New(fault.WorldLost, "the browser died")
		}
		if v := b.end(Input{}); !v.Success {
			t.Errorf("at %q: %s", place, show(v))
		}
	}
	b.page.err = nil
	b.start("reward:\n  stages:\n    - {name: there, weight: 1, page: {url: [/product/7, /search/watch], text: \"Watch S\"}}\n")
	for url, want := range map[string]bool{
		"http://shop.test/product/7": true, "http://shop.test//search/watch/": true, "http://shop.test/product/77": false,
		"http://other.test/product/7": false, "http://shop.test/?u=/product/7": false,
	} {
		b.page.url, b.page.text = url, "The Watch\n  S is here"
		if v := b.end(Input{}); v.Success != want {
			t.Errorf("at %s: %s", url, show(v))
		}
	}
	b.page.url, b.page.text = "http://shop.test/product/7", "Another watch"
	if v := b.end(Input{}); v.Success {
		t.Errorf("a page without the text: %s", show(v))
	}
	b.page.err = fault.New(fault.WorldLost, "the browser died")
	if _, err := b.judge.Evaluate(context.Background(), Input{Final: true}); fault.KindOf(err) != fault.WorldLost {
		t.Errorf("a dead browser gives %v", err)
	}
}

// TestTimeZones: the verdict is the same whatever zone the database is set to (C31).
func TestTimeZones(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE visit(id int, at timestamptz, due date, local timestamp); INSERT INTO visit VALUES (1, '2024-01-01 00:00+00', '2021-01-01', '2024-01-01');")
	body := rewardOf("SELECT at, due, local FROM visit", `{rows: [{at: "2024-03-10 03:30 America/New_York", due: 2022-01-01, local: "2024-03-10 03:30"}]}`)
	for _, zone := range []string{"UTC", "Pacific/Kiritimati", "America/New_York"} {
		b.exec("ALTER DATABASE "+"shop"+" SET timezone TO '"+zone+"'", "ALTER ROLE CURRENT_USER SET timezone TO '"+zone+"'", "SET timezone TO '"+zone+"'",
			"ALTER DATABASE shop SET datestyle TO 'German'", "UPDATE visit SET at = '2024-01-01 00:00+00'")
		b.start(body)
		b.exec("UPDATE visit SET at = '2024-03-10 03:30-04', due = '2022-01-01', local = '2024-03-10 03:30'")
		if v := b.end(Input{}); !v.Success {
			t.Errorf("%s: %s", zone, show(v))
		}
		b.exec("UPDATE visit SET at = '2024-03-10 03:30-05'")
		if v := b.end(Input{}); v.Success {
			t.Errorf("%s: another instant passes: %s", zone, show(v))
		}
	}
	for _, at := range []string{"2024-03-10 02:30 America/New_York", "2024-11-03 01:30 America/New_York", "2024-03-10 02:30"} {
		v := b.start(rewardOf("SELECT at FROM visit", `{rows: [{at: "`+at+`"}]}`))
		if v.Complete || v.Stages[0].Diff == "" {
			t.Errorf("%s: %s", at, show(v))
		}
	}
}

// TestRewardTelescopes: what is lost is paid back, what is won twice is paid once.
func TestRewardTelescopes(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE item(id int PRIMARY KEY, state text); INSERT INTO item VALUES (1, 'new'), (2, 'new');")
	const body = `reward:
  until: success
  stages:
    - {name: guard, weight: 0.2, query: SELECT id FROM item, expect: {count: 2}}
    - {name: one, weight: 0.3, query: "SELECT 1 FROM item WHERE id = 1 AND state = 'done'", expect: {at_least: 1}}
    - {name: seen, weight: 0.1, latch: true, query: "SELECT 1 FROM item WHERE id = 2 AND state = 'seen'", expect: {at_least: 1}}
    - {name: two, weight: 0.4, after: [seen], query: "SELECT state FROM item WHERE id = 2", expect: {rows: [{state: done}]}}
  only: [item]
`
	set := func(id, state string) func() {
		return func() { b.exec("UPDATE item SET state = '" + state + "' WHERE id = " + id) }
	}
	v := b.start(body)
	if v.Potential != 0.2 || v.Reward != 0 || strings.Join(HeldAtStart(v), ",") != "guard" {
		t.Fatalf("start: %s", show(v))
	}
	steps := []struct {
		do        func()
		potential float64
		done      bool
	}{
		{func() {}, 0.2, false},
		{set("1", "done"), 0.5, false},
		{set("1", "new"), 0.2, false},
		{set("1", "done"), 0.5, false},
		{set("2", "done"), 0.5, false}, // waits for seen
		{set("2", "seen"), 0.6, false},
		{func() { b.exec("DELETE FROM item WHERE id = 2") }, 0.4, false}, // the guard is lost, seen is latched
		{func() { b.exec("INSERT INTO item VALUES (2, 'done')") }, 1, true},
	}
	sum := 0.0
	for i, s := range steps {
		s.do()
		v := b.step(Input{})
		sum += v.Reward
		if !near(v.Potential, s.potential) || v.Done != s.done || v.Success != s.done || !near(sum, (s.potential-0.2)/0.8) || !near(sum, v.Value) {
			t.Errorf("step %d: sum %g, %s", i+1, sum, show(v))
		}
	}
	if !near(sum, 1) {
		t.Errorf("success sums to %g", sum)
	}
}

func TestSparse(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE item(id int PRIMARY KEY);")
	b.start("reward:\n  mode: sparse\n  stages:\n    - {name: a, weight: 0.5, query: SELECT 1 FROM item, expect: {count: 1}}\n    - {name: said, weight: 0.5, answer: {type: integer, value: 1}}\n")
	b.exec("INSERT INTO item VALUES (1)")
	if v := b.step(Input{}); v.Reward != 0 || v.Success || v.Done || v.Potential != 0.5 {
		t.Errorf("half: %s", show(v))
	}
	in := said("1")
	if v := b.end(in); v.Reward != 1 || !v.Success || !v.Done {
		t.Errorf("success: %s", show(v))
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE item(id int PRIMARY KEY, price numeric); INSERT INTO item VALUES (1, 1234.5);")
	b.start(`params: {price: {value: SELECT price FROM item}}
reward: {stages: [{name: told, weight: 1, answer: {type: money, value: "${price}", currency: USD}}]}
`)
	for text, want := range map[string]bool{"$1,234.50": true, "The price is $1,234.50.": true, "$123450": false, "": false} {
		if v := b.end(said(text)); v.Success != want {
			t.Errorf("%q: %s", text, show(v))
		}
	}
	if v := b.end(Input{}); v.Success || v.Stages[0].Diff != "no answer was given" {
		t.Errorf("no answer: %s", show(v))
	}
	b.start("reward: {stages: [{name: told, weight: 1, answer: {type: text, any_of: [red, crimson], match: ci}}]}\n")
	if v := b.end(said("Crimson")); !v.Success {
		t.Errorf("the second of two answers: %s", show(v))
	}
	b.start("reward: {stages: [{name: told, weight: 1, answer: {type: infeasible}}]}\n")
	if v := b.end(Input{Infeasible: true}); !v.Success {
		t.Errorf("infeasible: %s", show(v))
	}
	if v := b.end(Input{}); v.Success {
		t.Errorf("nothing said about infeasible: %s", show(v))
	}
}

func TestChangeStages(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE orders(id int PRIMARY KEY, status text, total numeric(8,2)); INSERT INTO orders VALUES (1, 'open', 10), (2, 'open', 5); CREATE TABLE payment(order_id int, amount numeric);")
	const body = `reward:
  stages:
    - name: paid_then_shipped
      weight: 1
      order: strict
      changes:
        - {table: payment, op: insert, new: {order_id: 1, amount: 10.00}, count: 1}
        - {table: orders, op: update, old: {status: open}, new: {id: 1, status: shipped}}
  only: [payment, {table: orders, where: id = 1}]
`
	pay, ship := "INSERT INTO payment VALUES (1, 10)", "UPDATE orders SET status = 'shipped' WHERE id = 1"
	cases := []struct {
		name string
		sql  []string
		want bool
		diff string
	}{
		{"in order", []string{pay, ship}, true, ""},
		{"in one transaction", []string{"BEGIN; " + pay + "; " + ship + "; COMMIT"}, true, ""},
		{"the wrong way round", []string{ship, pay}, false, "it comes before insert of payment"},
		{"paid twice", []string{pay, pay, ship}, false, "there are 2 such changes, expected 1"},
		{"not shipped", []string{pay}, false, "there is no such change"},
		{"rolled back", []string{"BEGIN; " + pay + "; " + ship + "; ROLLBACK"}, false, "there are 0 such changes"},
	}
	for _, c := range cases {
		b.exec("TRUNCATE payment", "UPDATE orders SET status = 'open'")
		b.start(body)
		b.exec(c.sql...)
		v := b.end(Input{})
		if v.Success != c.want || !strings.Contains(v.Stages[0].Diff, c.diff) {
			t.Errorf("%s: %s", c.name, show(v))
		}
	}
}

// TestStrictOrder: rows compare one by one where order counts.
func TestStrictOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE item(id int, place int);")
	v := b.start(rewardOf("SELECT id FROM item ORDER BY place", "{rows: [{id: 2}, {id: 1}], order: strict}"))
	if v.Complete {
		t.Fatal(show(v))
	}
	b.exec("INSERT INTO item VALUES (1, 1), (2, 2)")
	if v := b.step(Input{}); v.Complete || !strings.Contains(v.Stages[0].Diff, "row 1: id is 1, expected 2") {
		t.Error(show(v))
	}
	b.exec("UPDATE item SET place = 0 WHERE id = 2")
	if v := b.step(Input{}); !v.Complete {
		t.Error(show(v))
	}
}

// TestLooseRowsFindTheirPartners: a row that fits two expected rows goes to the one that fits no other.
func TestLooseRowsFindTheirPartners(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE note(text text); INSERT INTO note VALUES ('a b'), ('b');")
	v := b.start(rewardOf("SELECT text FROM note", "{rows: [{text: b}, {text: a}]}", "      match: contains"))
	if !v.Complete {
		t.Error(show(v))
	}
}

func TestCollateral(t *testing.T) {
	t.Parallel()
	b := newBench(t, `CREATE TABLE orders(id int PRIMARY KEY, customer int, tags text[], data jsonb, twice int GENERATED ALWAYS AS (customer * 2) STORED);
CREATE TABLE line(order_id int, sku text); CREATE TABLE log(at timestamptz DEFAULT now(), what text); CREATE SCHEMA audit; CREATE TABLE audit.trail(a int);
INSERT INTO orders VALUES (1, 1, '{a}', '{"k": "v"}'), (2, 2, NULL, NULL);`)
	const body = `params: {customer: {int: [1, 1]}}
reward:
  stages: [{name: said, weight: 1, answer: {type: text, value: yes}}]
  only:
    - log
    - {table: orders, where: "customer = ${customer}::int AND twice = 2 AND (data IS NULL OR data->>'k' = 'v')"}
    - {table: line, where: "order_id IN (SELECT id FROM orders WHERE customer = ${customer})"}
`
	cases := []struct {
		name string
		sql  string
		want string
	}{
		{"inside", "INSERT INTO log(what) VALUES ('x'); UPDATE orders SET tags = '{b,\"c d\"}' WHERE id = 1; INSERT INTO line VALUES (1, 'a\"b\\c')", ""},
		{"another customer", "UPDATE orders SET tags = '{b}' WHERE id = 2", "orders 2"},
		{"a line of another's order", "INSERT INTO line VALUES (2, 'x')", "line 1"},
		{"put back", "INSERT INTO line VALUES (2, 'x'); DELETE FROM line WHERE order_id = 2", ""},
		{"swapped twice", "UPDATE orders SET tags = '{z}' WHERE id = 2; UPDATE orders SET tags = NULL WHERE id = 2", ""},
		{"a table in another schema", "INSERT INTO audit.trail VALUES (1)", "audit.trail 1"},
		{"a new table", "CREATE TABLE junk(a int); INSERT INTO junk VALUES (1), (1); DROP TABLE junk", "junk 2"},
		{"truncate", "TRUNCATE line", "line -1"},
		{"truncate of a free table", "TRUNCATE log", ""},
	}
	for _, c := range cases {
		b.exec("DELETE FROM line", "UPDATE orders SET tags = NULL")
		b.start(body)
		b.exec(c.sql)
		v := b.end(said("yes"))
		got := ""
		for _, d := range v.Collateral {
			got += d.Table + " " + strings.TrimSpace(jsonOf(d.Rows))
		}
		if got != c.want || v.Success != (c.want == "") || v.Value != map[bool]float64{true: 1}[c.want == ""] {
			t.Errorf("%s: damage %q, want %q\n%s", c.name, got, c.want, show(v))
		}
	}
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// TestLostDatabaseIsNoZero: an infrastructure fault is an error of its kind (C38).
func TestLostDatabaseIsNoZero(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE item(id int);")
	b.start(rewardOf("SELECT id FROM item", "{count: 1}", "  only: [item]"))
	b.db.Server.Kill()
	v, err := b.judge.Evaluate(context.Background(), Input{Final: true})
	if v != nil || fault.KindOf(err) != fault.WorldLost {
		t.Errorf("without a database: %v, %v", v, err)
	}
}

// TestQueryThatBreaksIsNoZero: so is a query that the rows of the episode break.
func TestQueryThatBreaksIsNoZero(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE item(id int); INSERT INTO item VALUES (1);")
	b.start(rewardOf("SELECT 1 / id FROM item", "{count: 2}"))
	b.exec("UPDATE item SET id = 0")
	_, err := b.judge.Evaluate(context.Background(), Input{})
	if fault.KindOf(err) != fault.WorldLost || !strings.Contains(err.Error(), "stage done") {
		t.Errorf("division by zero: %v", err)
	}
	b.exec("UPDATE item SET id = 1")
	if _, err := b.judge.Evaluate(context.Background(), Input{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestCancelledCallKeepsTheConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t, "CREATE TABLE item(id int);")
	b.start(rewardOf("SELECT pg_sleep(30) FROM item", "{count: 1}"))
	b.exec("INSERT INTO item VALUES (1)")
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	if _, err := b.judge.Evaluate(ctx, Input{}); fault.KindOf(err) != fault.Canceled {
		t.Errorf("a cancelled call: %v", err)
	}
	b.exec("DELETE FROM item")
	if _, err := b.judge.Evaluate(context.Background(), Input{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// BenchmarkEvaluate is the judge's share of a step.
func BenchmarkEvaluate(b *testing.B) {
	w := newBench(b, "CREATE TABLE item(id int PRIMARY KEY, state text); INSERT INTO item SELECT g, 'new' FROM generate_series(1, 1000) g;")
	const body = `reward:
  stages:
    - {name: one, weight: 0.3, query: "SELECT state FROM item WHERE id = 1", expect: {rows: [{state: done}]}}
    - {name: two, weight: 0.3, query: "SELECT state FROM item WHERE id = 2", expect: {rows: [{state: done}]}}
    - {name: three, weight: 0.4, query: "SELECT state FROM item WHERE id = 3", expect: {rows: [{state: done}]}}
`
	for name, only := range map[string]string{"watching": "  only: [item]\n", "rows-only": ""} {
		w.start(body + only)
		b.Run(name+"/idle", func(b *testing.B) {
			for b.Loop() {
				w.step(Input{})
			}
		})
		b.Run(name+"/after-a-write", func(b *testing.B) {
			w.start(body + only)
			for b.Loop() {
				b.StopTimer()
				w.exec("UPDATE item SET state = CASE state WHEN 'new' THEN 'old' ELSE 'new' END WHERE id = 7")
				b.StartTimer()
				w.step(Input{})
			}
		})
	}
}
