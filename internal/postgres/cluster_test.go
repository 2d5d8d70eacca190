package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/postgres/pgtest"
	"github.com/pommelgym/pommel/internal/sys"
)

// install is the host's PostgreSQL; a host without one skips the test.
func install(tb testing.TB) (postgres.Install, postgres.Account) {
	tb.Helper()
	as, err := postgres.BuildAccount()
	if err != nil {
		tb.Skipf("unsupported: %v", err)
	}
	in, err := postgres.FindInstall(context.Background(), os.Getenv)
	if err != nil {
		tb.Skipf("unsupported: %v", err)
	}
	return in, as
}

func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func TestSQLErrorsNameFileAndLine(t *testing.T) {
	t.Parallel()
	in, _ := install(t)
	for name, c := range map[string]struct{ sql, want string }{
		"syntax":           {"CREATE TABLE a (x int);\n\nCREATE TABEL b (y int);\n", "bad.sql:3:8: syntax error"},
		"unknown table":    {"CREATE TABLE a (x int);\nINSERT INTO a VALUES (1);\n  SELECT * FROM nowhere;\n", `bad.sql:3:17: relation "nowhere" does not exist`},
		"broken rule":      {"CREATE TABLE a (x int UNIQUE); -- ;\nINSERT INTO a VALUES (1);\n/* ; */ ;\nINSERT INTO a VALUES (1);\n", "bad.sql:4:1: duplicate key"},
		"after dollar":     {"DO $x$ BEGIN PERFORM 1; END $x$;\nSELECT E'\\';', 'a;b', \"relname\" FROM pg_class;\nSELECT 1/0;\n", "bad.sql:3:1: division by zero"},
		"wide characters":  {"-- äöü€\nSELECT 'äöü', nope;\n", `bad.sql:2:18: column "nope" does not exist`},
		"psql command":     {"CREATE TABLE a (x int);\n\\copy a from stdin\n", "bad.sql:2:1: syntax error"},
		"copy from stdin":  {"CREATE TABLE a (x int);\nCOPY a FROM stdin;\n1\n\\.\n", "bad.sql:3:1: syntax error"},
		"not a superuser":  {"CREATE ROLE evil SUPERUSER;\n", "bad.sql:1:1: must be superuser"},
		"no host programs": {"CREATE TABLE a (x text);\nCOPY a FROM PROGRAM 'id';\n", "bad.sql:2:1: must be superuser"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := postgres.Spec{Database: "shop", Role: "shop", Password: "x", Init: []postgres.SQLFile{{Name: "bad.sql", Content: c.sql}}}
			cache := t.TempDir()
			_, err := postgres.Golden(testContext(t), in, spec, cache)
			if fault.KindOf(err) != fault.InvalidArgument || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v\nwant %s", err, c.want)
			}
			if name == "copy from stdin" && !strings.Contains(fault.HintOf(err), "--inserts") {
				t.Errorf("hint: %s", fault.HintOf(err))
			}
			left, err := filepath.Glob(filepath.Join(cache, "*"))
			if err != nil || len(left) > 1 {
				t.Fatalf("left in the cache: %v %v", left, err)
			}
		})
	}
}

func TestSettingsThatTheJudgeNeedsAreFixed(t *testing.T) {
	t.Parallel()
	in, _ := install(t)
	for _, key := range []string{"wal_level", "FSYNC", "listen_addresses", "a b", ""} {
		spec := postgres.Spec{Database: "shop", Role: "shop", Settings: map[string]string{key: "x"}}
		if _, err := postgres.Golden(testContext(t), in, spec, t.TempDir()); fault.KindOf(err) != fault.InvalidArgument {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, "CREATE TABLE secret (x int); INSERT INTO secret VALUES (1); ALTER TABLE secret ENABLE ROW LEVEL SECURITY;")
	ctx := testContext(t)

	judge := pgtest.Connect(t, db.JudgeDSN)
	var n int
	if err := judge.QueryRow(ctx, "SELECT count(*) FROM secret").Scan(&n); err != nil || n != 1 {
		t.Fatalf("the judge reads every row: %d %v", n, err)
	}
	var super bool
	var databases string
	if err := judge.QueryRow(ctx, "SELECT rolsuper, (SELECT string_agg(datname, ',') FROM pg_database) FROM pg_roles WHERE rolname = current_user").Scan(&super, &databases); err != nil {
		t.Fatal(err)
	}
	if super || databases != pgtest.Database {
		t.Errorf("superuser %v, databases %s", super, databases)
	}
	var pgErr *pgconn.PgError
	if _, err := judge.Exec(ctx, "INSERT INTO secret VALUES (2)"); !errors.As(err, &pgErr) || pgErr.Code != "42501" {
		t.Errorf("the judge writes: %v", err)
	}
	if _, err := pgtest.Connect(t, db.AppDSN).Exec(ctx, "SET ROLE pommel_judge"); !errors.As(err, &pgErr) || pgErr.Code != "42501" {
		t.Errorf("the application becomes the judge: %v", err)
	}
}

// What "clean" means: sequences, identities and materialised views are as the seed left
// them, whatever an episode did (a copy of the golden cluster is the reset).
func TestACopyIsCleanAgain(t *testing.T) {
	t.Parallel()
	seed := `CREATE SEQUENCE ticket_no START 1000 INCREMENT 5;
CREATE TABLE t(id int GENERATED ALWAYS AS IDENTITY (START WITH 500), no int DEFAULT nextval('ticket_no'), x numeric(10,2));
INSERT INTO t(x) VALUES (1),(2);
CREATE MATERIALIZED VIEW mv AS SELECT count(*) c FROM t;
ALTER SEQUENCE ticket_no CACHE 1;`
	ctx := testContext(t)
	for range 2 {
		db := pgtest.New(t, seed)
		c := pgtest.Connect(t, db.AppDSN)
		var count, last, seen, id, no int
		var clean bool
		if err := c.QueryRow(ctx, "SELECT (SELECT count(*) FROM t), (SELECT max(id) FROM t), (SELECT c FROM mv), to_regclass('junk') IS NULL").Scan(&count, &last, &seen, &clean); err != nil {
			t.Fatal(err)
		}
		if count != 2 || last != 501 || seen != 2 || !clean {
			t.Fatalf("got %d %d %d %v", count, last, seen, clean)
		}
		if err := c.QueryRow(ctx, "INSERT INTO t(x) VALUES (9) RETURNING id, no").Scan(&id, &no); err != nil || id != 502 || no != 1010 {
			t.Fatalf("got id %d no %d, %v", id, no, err)
		}
		db.Exec(t, "INSERT INTO t(x) SELECT g FROM generate_series(1,50) g", "DELETE FROM t", "REFRESH MATERIALIZED VIEW mv",
			"CREATE TABLE junk(a int)", "ALTER TABLE t ADD COLUMN y int", "SELECT pg_advisory_lock(42)")
	}
}

func TestGoldenIsMadeOnce(t *testing.T) {
	t.Parallel()
	in, _ := install(t)
	cache := t.TempDir()
	spec := postgres.Spec{Database: "shop", Role: "shop", Password: "x"}
	var wg sync.WaitGroup
	dirs := make([]string, 8)
	for i := range dirs {
		wg.Go(func() {
			golden, err := postgres.Golden(testContext(t), in, spec, cache)
			if err != nil {
				t.Error(err)
				return
			}
			defer golden.Close()
			dirs[i] = golden.Path
		})
	}
	wg.Wait()
	for _, d := range dirs {
		if d != dirs[0] {
			t.Fatalf("different folders: %v", dirs)
		}
	}
	if entries, _ := os.ReadDir(cache); len(entries) != 2 { // the cluster and its lock
		t.Fatalf("left in the cache: %v", entries)
	}
}

func TestCancelledInitLeavesNothing(t *testing.T) {
	t.Parallel()
	in, as := install(t)
	parent, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	spec := postgres.Spec{Database: "shop", Role: "shop", Init: []postgres.SQLFile{{Name: "slow.sql", Content: "SELECT pg_sleep(600)"}}}
	dir := filepath.Join(parent, "data")
	ended := make(chan error, 1)
	go func() { ended <- postgres.InitCluster(ctx, in, spec, dir, as) }()
	// The server writes its pid file once it runs; then the sleep is on.
	if err := sys.WaitFolder(testContext(t), parent, func() (bool, error) {
		_, err := os.Stat(dir)
		return err == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Fatalf("the folder is still there: %v", err)
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	in, as := install(t)
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, as.UID, as.GID); err != nil {
		t.Fatal(err)
	}
	_, err = postgres.StartServer(testContext(t), in, dir, dir, as)
	if err == nil || !strings.Contains(err.Error(), "postgresql.conf") {
		t.Fatalf("got %v", err)
	}
}

func BenchmarkCopyCluster(b *testing.B) {
	in, _ := install(b)
	golden, err := postgres.Golden(testContext(b), in, postgres.Spec{Database: "shop", Role: "shop", Password: "x"}, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "pgtest")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for b.Loop() {
		to := filepath.Join(dir, "data")
		if err := sys.CopyTree(golden.Path, to, sys.Owner{UID: 65534, GID: 65534}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := os.RemoveAll(to); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkStartServer(b *testing.B) {
	in, as := install(b)
	golden, err := postgres.Golden(testContext(b), in, postgres.Spec{Database: "shop", Role: "shop", Password: "x"}, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		dir, err := os.MkdirTemp("/dev/shm", "pgtest")
		if err != nil {
			b.Fatal(err)
		}
		to := filepath.Join(dir, "data")
		if err := errors.Join(sys.CopyTree(golden.Path, to, sys.Owner{UID: as.UID, GID: as.GID}), os.Chown(dir, as.UID, as.GID)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		srv, err := postgres.StartServer(testContext(b), in, to, dir, as)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		srv.Kill()
		_ = os.RemoveAll(dir)
		b.StartTimer()
	}
}
