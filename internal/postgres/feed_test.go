package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/postgres/pgtest"
)

// openJudge connects as the judge.
func openJudge(tb testing.TB, db *pgtest.DB) *postgres.Judge {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	j, err := postgres.OpenJudge(ctx, db.JudgeDSN)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = j.Close(context.Background()) })
	return j
}

// show writes changes as lines that a person can read.
func show(changes []postgres.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%d.%d %s %s.%s %s -> %s", c.Commit, c.Seq, c.Op, c.Schema, c.Table, showRow(c.OldRow), showRow(c.NewRow)))
	}
	return out
}

func showRow(r postgres.Row) string {
	if r.Columns == nil {
		return "-"
	}
	var cells []string
	for i, c := range r.Columns {
		v := "NULL"
		if r.Text[i] != nil {
			v = *r.Text[i]
			if len(v) > 30 {
				v = fmt.Sprintf("%s...(%d)", v[:3], len(v))
			}
		}
		cells = append(cells, c.Name+"="+v)
	}
	return strings.Join(cells, " ")
}

func TestChangesAreExact(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, `
CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2), total numeric(10,2) GENERATED ALWAYS AS (price * 2) STORED, big text, meta jsonb, tags text[]);
ALTER TABLE item ALTER big SET STORAGE EXTERNAL;
CREATE TABLE bag (a int);
CREATE UNLOGGED TABLE fast (a int);
CREATE SCHEMA audit; CREATE TABLE audit.log (at timestamptz, what text);
CREATE TABLE part (id int, region text) PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
CREATE DOMAIN amount AS numeric(10,2) CHECK (value >= 0); CREATE DOMAIN due AS amount;
CREATE TABLE bill (sum due, twice due GENERATED ALWAYS AS (sum * 2) STORED);
INSERT INTO item (id, name, price, big) VALUES (1, 'old', 1.5, repeat('x', 10000)), (2, 'gone', 2, NULL);
INSERT INTO bag VALUES (7), (7);`)
	j := openJudge(t, db)
	steps := []struct {
		name string
		sql  []string
		want []string
	}{
		{"insert, update that leaves a large value alone, delete", []string{
			`INSERT INTO item (id, name, price, meta, tags) VALUES (3, 'new "q" \', 9.90, '{"b": [1, "x"]}', '{a,"b c"}')`,
			`UPDATE item SET name = NULL WHERE id = 1`, `DELETE FROM item WHERE id = 2`,
		}, []string{
			`1.1 insert public.item - -> id=3 name=new "q" \ price=9.90 big=NULL meta={"b": [1, "x"]} tags={a,"b c"} total=19.80`,
			`2.2 update public.item id=1 name=old price=1.50 big=xxx...(10000) meta=NULL tags=NULL total=3.00 -> id=1 name=NULL price=1.50 big=xxx...(10000) meta=NULL tags=NULL total=3.00`,
			`3.3 delete public.item id=2 name=gone price=2.00 big=NULL meta=NULL tags=NULL total=4.00 -> -`,
		}},
		{"tables without a key, unlogged, in another schema, partitioned", []string{
			`UPDATE bag SET a = 8`, `INSERT INTO fast VALUES (1)`, `INSERT INTO audit.log VALUES ('2024-01-01 00:00+02', 'in')`, `INSERT INTO part VALUES (1, 'eu')`,
		}, []string{
			`1.1 update public.bag a=7 -> a=8`, `1.2 update public.bag a=7 -> a=8`, `2.3 insert public.fast - -> a=1`,
			`3.4 insert audit.log - -> at=2023-12-31 22:00:00+00 what=in`, `4.5 insert public.part - -> id=1 region=eu`,
		}},
		{"what is rolled back never was", []string{
			`BEGIN; INSERT INTO bag VALUES (1); ROLLBACK`,
			`BEGIN; INSERT INTO bag VALUES (2); SAVEPOINT s; INSERT INTO bag VALUES (3); ROLLBACK TO s; SAVEPOINT r; INSERT INTO bag VALUES (4); RELEASE r; COMMIT`,
		}, []string{`1.1 insert public.bag - -> a=2`, `1.2 insert public.bag - -> a=4`}},
		{"tables made in mid-episode", []string{
			`CREATE TABLE late (a int, b text)`, `INSERT INTO late VALUES (1, 'x')`, `UPDATE late SET b = 'y'`,
			`CREATE UNLOGGED TABLE late2 AS SELECT 1 AS a`, `UPDATE late2 SET a = 2`, `CREATE TEMP TABLE tmp (a int)`, `INSERT INTO tmp VALUES (1)`,
		}, []string{
			`1.1 insert public.late - -> a=1 b=x`, `2.2 update public.late a=1 b=x -> a=1 b=y`, `3.3 update public.late2 a=1 -> a=2`,
		}},
		{"truncate", []string{`TRUNCATE bag, part`}, []string{`1.1 truncate public.bag - -> -`, `1.2 truncate public.part - -> -`}},
		{"commits that do not wait for the disk", []string{`SET synchronous_commit = off; INSERT INTO bag VALUES (99)`}, []string{`1.1 insert public.bag - -> a=99`}},
		{"domains", []string{`INSERT INTO bill VALUES (1)`}, []string{`1.1 insert public.bill - -> sum=1.00 twice=2.00`}},
		{"nothing", nil, nil},
	}
	app := pgtest.Connect(t, db.AppDSN)
	for _, s := range steps {
		if err := j.Mark(ctx); err != nil {
			t.Fatal(err)
		}
		for _, sql := range s.sql {
			if _, err := app.Exec(ctx, sql); err != nil {
				t.Fatalf("%s: %s: %v", s.name, sql, err)
			}
		}
		dirty, err := j.Dirty(ctx)
		if err != nil || (len(s.want) > 0 && !dirty) {
			t.Errorf("%s: Dirty = %v, %v", s.name, dirty, err)
		}
		for range 2 {
			got, err := j.Changes(ctx)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			for _, c := range got {
				if _, oid, ok := c.NewRow.Get("sum"); ok && oid != pgtype.NumericOID {
					t.Errorf("a domain over numeric has the type %d", oid)
				}
			}
			if d := cmp.Diff(s.want, show(got)); d != "" {
				t.Errorf("%s (-want +got):\n%s", s.name, d)
			}
		}
	}
}

// TestFeedStartsAnew: after Rewound the feed knows nothing of before and still reads tables that
// the server has described already.
func TestFeedStartsAnew(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, "CREATE DOMAIN amount AS numeric; CREATE TABLE bill (id int, dropped int, sum amount, twice amount GENERATED ALWAYS AS (sum * 2) STORED); ALTER TABLE bill DROP COLUMN dropped;")
	j := openJudge(t, db)
	db.Exec(t, "INSERT INTO bill (id, sum) VALUES (1, 1)")
	for round := range 3 {
		if _, err := j.Changes(ctx); err != nil {
			t.Fatal(err)
		}
		if err := j.Rewound(ctx); err != nil {
			t.Fatal(err)
		}
		if err := j.Mark(ctx); err != nil {
			t.Fatal(err)
		}
		if changes, err := j.Changes(ctx); err != nil || len(changes) != 0 {
			t.Errorf("round %d: the feed starts with %v, %v", round, show(changes), err)
		}
		db.Exec(t, "INSERT INTO bill (id, sum) VALUES (2, 2)")
		changes, err := j.Changes(ctx)
		if d := cmp.Diff([]string{"1.1 insert public.bill - -> id=2 sum=2 twice=4"}, show(changes)); d != "" || err != nil {
			t.Errorf("round %d: %v (-want +got):\n%s", round, err, d)
		}
	}
}

// TestManyRows: a transaction of more rows than fit into the socket's buffers.
func TestManyRows(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, "CREATE TABLE item (id int PRIMARY KEY, name text);")
	j := openJudge(t, db)
	const n = 20000
	db.Exec(t, fmt.Sprintf("INSERT INTO item SELECT g, repeat('x', 50) FROM generate_series(1, %d) g", n))
	changes, err := j.Changes(ctx)
	if err != nil || len(changes) != n || changes[n-1].New["id"] != int64(n) && changes[n-1].New["id"] != int32(n) {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
}

// BenchmarkFeed measures what a step pays for the judge's look at the log.
func BenchmarkFeed(b *testing.B) {
	ctx := context.Background()
	db := pgtest.New(b, "CREATE TABLE item (id int PRIMARY KEY, name text); INSERT INTO item SELECT g, 'n' FROM generate_series(1, 1000) g;"+manyTables(100))
	j := openJudge(b, db)
	app := pgtest.Connect(b, db.AppDSN)
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("dirty", func(b *testing.B) {
		for b.Loop() {
			_, err := j.Dirty(ctx)
			must(err)
		}
	})
	small := func(b *testing.B) {
		_, err := app.Exec(ctx, "UPDATE item SET name = CASE name WHEN 'n' THEN 'm' ELSE 'n' END WHERE id = 7")
		must(err)
	}
	b.Run("changes-after-small-transaction", func(b *testing.B) {
		must(j.Mark(ctx))
		for b.Loop() {
			b.StopTimer()
			small(b)
			b.StartTimer()
			_, err := j.Changes(ctx)
			must(err)
		}
	})
	b.Run("mark-after-small-transaction", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			small(b)
			b.StartTimer()
			must(j.Mark(ctx))
		}
	})
	b.Run("mark-clean", func(b *testing.B) {
		for b.Loop() {
			must(j.Mark(ctx))
		}
	})
	b.Run("three-queries", func(b *testing.B) {
		q := postgres.Statement{SQL: "SELECT name FROM item WHERE id = $1", Args: []any{"7"}}
		for b.Loop() {
			_, err := j.QueryAll(ctx, []postgres.Statement{q, q, q})
			must(err)
		}
	})
}

func manyTables(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "CREATE TABLE t%d (id int PRIMARY KEY, a text, b text);", i)
	}
	return b.String()
}
