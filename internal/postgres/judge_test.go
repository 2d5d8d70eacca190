package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/postgres/pgtest"
)

const itemSchema = "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric, at timestamptz); INSERT INTO item VALUES (1, 'one', 1.50, '2024-01-01 00:00+00'), (2, NULL, NULL, NULL);"

func TestJudgeOnlyReads(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, itemSchema)
	j := openJudge(t, db)
	for _, sql := range []string{
		"INSERT INTO item VALUES (3)", "WITH d AS (DELETE FROM item RETURNING id) SELECT * FROM d", "CREATE TABLE x (a int)",
		"SELECT 1; DELETE FROM item", "SELECT set_config('transaction_read_only', 'off', false) FROM (SELECT 1) a; DELETE FROM item",
	} {
		_, err := j.Query(ctx, sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || fault.KindOf(err) != fault.Internal {
			t.Errorf("%s: %v, want an error of the statement", sql, err)
		}
	}
	rows, err := j.Query(ctx, "SELECT count(*) FROM item")
	if err != nil || *rows.Text[0][0] != "2" {
		t.Errorf("after the attempts: %v, %v", rows, err)
	}
}

func TestParametersTakeTheirTypeFromTheirPlace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := openJudge(t, pgtest.New(t, itemSchema))
	rows, err := j.Query(ctx, "SELECT id, name, price, at FROM item WHERE id = $1 AND price = $2 AND name = $3 AND at = $4 AND $5::text IS NULL AND id = ANY($6::int[])",
		1, "1.5", "one", time.Date(2024, 1, 1, 1, 0, 0, 0, time.FixedZone("x", 3600)), nil, []string{"1", "7"})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows.Text) != 1 || *rows.Text[0][2] != "1.50" || *rows.Text[0][3] != "2024-01-01 00:00:00+00" || rows.Values[0][0] != int32(1) && rows.Values[0][0] != int64(1) {
		t.Errorf("rows %+v", rows.Values)
	}
	all, err := j.QueryAll(ctx, []postgres.Statement{{SQL: "SELECT 1"}, {SQL: "SELECT nothing"}, {SQL: "SELECT 3"}})
	var se *postgres.StatementError
	if all != nil || !errors.As(err, &se) || se.Index != 1 {
		t.Errorf("QueryAll with a wrong statement: %v, %v", all, err)
	}
	if all, err = j.QueryAll(ctx, []postgres.Statement{{SQL: "SELECT 1"}, {SQL: "SELECT $1::int", Args: []any{2}}}); err != nil || *all[1].Text[0][0] != "2" {
		t.Errorf("QueryAll: %v, %v", all, err)
	}
}

// TestOneSnapshot: statements of one round trip do not see what is committed between them.
func TestOneSnapshot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, itemSchema)
	j := openJudge(t, db)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { db.Exec(t, "INSERT INTO item VALUES (3)") })
	got, err := j.QueryAll(ctx, []postgres.Statement{{SQL: "SELECT count(*) FROM item"}, {SQL: "SELECT pg_sleep(0.3)"}, {SQL: "SELECT count(*) FROM item"}})
	if err != nil || *got[0].Text[0][0] != *got[2].Text[0][0] {
		t.Errorf("counts %v, %v", got, err)
	}
}

// TestPoliciesHideNothing: row level security is for the application, not for the judge.
func TestPoliciesHideNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, itemSchema+"ALTER TABLE item ENABLE ROW LEVEL SECURITY; ALTER TABLE item FORCE ROW LEVEL SECURITY; CREATE POLICY none ON item USING (false) WITH CHECK (true);")
	j := openJudge(t, db)
	rows, err := j.Query(ctx, "SELECT count(*) FROM item")
	if err != nil || *rows.Text[0][0] != "2" {
		t.Errorf("the judge counts %v, %v", rows, err)
	}
	db.Exec(t, "INSERT INTO item VALUES (3)")
	changes, err := j.Changes(ctx)
	if err != nil || len(changes) != 1 {
		t.Errorf("changes %v, %v", changes, err)
	}
}

// TestApplicationCannotReachTheFeed: it can neither read it nor stop it.
func TestApplicationCannotReachTheFeed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, itemSchema)
	j := openJudge(t, db)
	app := pgtest.Connect(t, db.AppDSN)
	for _, sql := range []string{
		"SELECT * FROM pg_logical_slot_peek_binary_changes('pommel', NULL, NULL, 'proto_version', '1', 'publication_names', 'pommel')",
		"SELECT pg_drop_replication_slot('pommel')", "SELECT pg_replication_slot_advance('pommel', pg_current_wal_lsn())",
		"DROP PUBLICATION pommel", "ALTER PUBLICATION pommel RENAME TO x", "DROP EVENT TRIGGER pommel", "DROP SCHEMA pommel CASCADE",
		"DROP FUNCTION pommel.keep_identity()", "SET ROLE pommel_judge", "SET session_replication_role = replica",
	} {
		if _, err := app.Exec(ctx, sql); err == nil {
			t.Errorf("the application may %s", sql)
		}
	}
	if _, err := app.Exec(ctx, "UPDATE item SET name = 'x' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	if changes, err := j.Changes(ctx); err != nil || len(changes) != 1 {
		t.Errorf("changes %v, %v", show(changes), err)
	}
}

// TestGivingUp: a caller who gives up is answered at once, and the connection lives on.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, itemSchema)
	j := openJudge(t, db)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := j.Query(ctx, "SELECT pg_sleep(2)"); fault.KindOf(err) != fault.Canceled {
		t.Errorf("a query that takes too long: %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("giving up took %v", took)
	}
	if _, err := j.Query(context.Background(), "SELECT 1"); err != nil {
		t.Errorf("the next query: %v", err)
	}
	if _, err := j.Query(ctx, "SELECT 1"); fault.KindOf(err) != fault.Canceled {
		t.Errorf("a query without time: %v", err)
	}
}

func TestServerGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, itemSchema)
	j := openJudge(t, db)
	db.Server.Kill()
	_, err1 := j.Query(ctx, "SELECT 1")
	_, err2 := j.Dirty(ctx)
	_, err3 := j.Changes(ctx)
	err4 := j.Mark(ctx)
	for i, err := range []error{err1, err2, err3, err4} {
		if fault.KindOf(err) != fault.WorldLost {
			t.Errorf("call %d without a server: %v", i+1, err)
		}
	}
	for range 2 {
		if err := j.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := postgres.OpenJudge(ctx, db.JudgeDSN); fault.KindOf(err) != fault.WorldLost {
		t.Errorf("connecting to no server: %v", err)
	}
}

// TestOneJudgeAfterTheOther: a judge takes over from the one before, at once; two at a time
// cannot be, since each change is handed out once.
func TestOneJudgeAfterTheOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, itemSchema)
	for range 5 {
		j, err := postgres.OpenJudge(ctx, db.JudgeDSN)
		if err != nil {
			t.Fatal(err)
		}
		db.Exec(t, "UPDATE item SET price = price + 1")
		if changes, err := j.Changes(ctx); err != nil || len(changes) != 2 {
			t.Errorf("changes %v, %v", show(changes), err)
		}
		if err := j.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	openJudge(t, db)
	if _, err := postgres.OpenJudge(ctx, db.JudgeDSN); fault.KindOf(err) != fault.WorldLost || !strings.Contains(err.Error(), "active") {
		t.Errorf("a second judge: %v", err)
	}
}

func TestSetupIsAllOrNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, itemSchema)
	s, err := postgres.OpenSetup(ctx, db.AppDSN)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	err = s.ExecAll(ctx, []postgres.Statement{{SQL: "INSERT INTO item (id, name) VALUES ($1, $2)", Args: []any{"3", "it's"}}, {SQL: "INSERT INTO item (id) VALUES (1)"}})
	var se *postgres.StatementError
	if !errors.As(err, &se) || se.Index != 1 || !strings.Contains(err.Error(), "duplicate key") {
		t.Errorf("a setup that fails: %v", err)
	}
	j := openJudge(t, db)
	if rows, err := j.Query(ctx, "SELECT count(*) FROM item"); err != nil || *rows.Text[0][0] != "2" {
		t.Errorf("after a setup that failed: %v, %v", rows, err)
	}
	if err := s.Exec(ctx, "INSERT INTO item (id, name) VALUES ($1, $2)", 3, "it's"); err != nil {
		t.Errorf("the next setup: %v", err)
	}
}

// TestManyCallers: calls from many goroutines do not mix, and the feed loses nothing.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, itemSchema)
	j := openJudge(t, db)
	const callers, rounds = 8, 20
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			for n := range rounds {
				want := fmt.Sprint(g*1000 + n)
				rows, err := j.Query(ctx, "SELECT $1::int", want)
				if err != nil || *rows.Text[0][0] != want {
					t.Errorf("caller %d got %v, %v, want %s", g, rows, err, want)
				}
				if _, err := j.Changes(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	app := pgtest.Connect(t, db.AppDSN)
	for n := range 100 {
		if _, err := app.Exec(ctx, "UPDATE item SET price = $1 WHERE id = 1", n); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	changes, err := j.Changes(ctx)
	if err != nil || len(changes) != 100 {
		t.Fatalf("%d changes, %v, want 100", len(changes), err)
	}
	for i, c := range changes {
		if c.Seq != i+1 || c.Commit != i+1 || fmt.Sprint(*c.NewRow.Text[2]) != fmt.Sprint(i) {
			t.Fatalf("change %d is %s", i, show(changes[i:i+1]))
		}
	}
}
