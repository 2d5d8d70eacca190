package own_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/perturb/own"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/postgres/pgtest"
)

// TestSQLIsTriedOnTheDatabase: mistakes are found with their places before an episode runs
// into them, and nothing is changed on the way.
func TestSQLIsTriedOnTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, `CREATE TABLE items (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO items VALUES (1, 5);`)
	judge, err := postgres.OpenJudge(t.Context(), db.JudgeDSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = judge.Close(context.Background()) })
	const head = "kind: shop.x\ntitle: X\nrecovery: wait\ncost: 3\n"
	for name, c := range map[string]struct{ text, want string }{
		"good": {`when: SELECT id, stock FROM items WHERE stock > 0
sql: ['UPDATE items SET stock = 0 WHERE id = ${id}::int', "SET LOCAL work_mem = '4MB'"]
lasts: 2
undo: ['UPDATE items SET stock = ${stock}::int WHERE id = ${id}::int']
seen: item ${id} is gone
`, ""},
		"table":   {"sql: [UPDATE itms SET stock = 0]\n", `x.yaml:5:7: sql[0]: relation "itms" does not exist`},
		"column":  {"sql:\n  - DELETE FROM items\n  - UPDATE items SET stok = 0\n", `x.yaml:7:5: sql[1]: column "stok" of relation "items" does not exist`},
		"needs":   {"needs: SELEC 1\nsql: [DELETE FROM items]\n", `x.yaml:5:8: needs: syntax error at or near "SELEC"`},
		"unknown": {"when: SELECT stock FROM items\nsql: ['DELETE FROM items WHERE id = ${id}::int']\n", "x.yaml:6:7: sql[0]: ${id} is no column of needs or when; they give stock"},
		"early":   {"when: SELECT id FROM items\nsql: [DELETE FROM items]\ntell: mind ${id}\n", "x.yaml:7:7: tell: ${id} is no column of needs or when; they give none so far"},
		"undo":    {"sql: [DELETE FROM items]\nlasts: 2\nundo: ['INSERT INTO items VALUES (1)']\nseen: ''\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, own.Dir), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, own.Dir, "x.yaml"), []byte(head+c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := own.Load(dir); err != nil {
				t.Fatal(err)
			}
			found, err := own.Check(t.Context(), dir, judge)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(found) > 0:
				t.Errorf("found %v", found)
			case c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Error(), c.want)):
				t.Errorf("found %v, want %s", found, c.want)
			}
		})
	}
	rows, err := judge.Query(t.Context(), "SELECT id, stock FROM items")
	if err != nil || len(rows.Text) != 1 || *rows.Text[0][1] != "5" {
		t.Errorf("rows afterwards: %+v, %v", rows, err)
	}
}

func TestBadKindsAreRefused(t *testing.T) {
	t.Parallel()
	const head = "kind: shop.x\ntitle: X\nrecovery: wait\n"
	for text, want := range map[string]string{
		"sqll: [SELECT 1]\n":                                       "bad.yaml:4",
		"sql: [SELECT 1]\nscript: x\n":                             "either sql or script",
		"script: x\nseen: y\n":                                     "bad.yaml:4:9: script: needs, when, seen and tell go with sql only",
		"sql: [SELECT 1]\nlasts: 3\n":                              "lasts, undo and sql together",
		"cost: 2\nsql: [SELECT 1]\nlasts: 3\nundo: [SELECT 1]\n":   "bad.yaml:6:8: lasts: expected 1 step to the 2 of cost, got 3",
		"cost: 99\nsql: [SELECT 1]\nlasts: 99\nundo: [SELECT 1]\n": "bad.yaml:4:7: cost: expected 0 to 50",
	} {
		if _, err := own.Parse("perturb/bad.yaml", []byte(head+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
