// Package pgtest gives tests a real PostgreSQL cluster each, made as a world's is.
//
// The initialised cluster is cached by content, so a test costs a copy of a few
// megabytes and the start of a server: some 100 ms.
package pgtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sys"
)

// Names in a test cluster.
const (
	Database = "shop"
	Role     = "shop"
)

// DB is a running cluster of one test.
type DB struct {
	// JudgeDSN, AppDSN and SuperDSN reach the database as judge, application and superuser.
	JudgeDSN, AppDSN, SuperDSN string
	// SocketDir holds the server's unix socket.
	SocketDir string
	Server    *postgres.Server
}

// New starts a cluster whose database was made by the scripts, run as the application's
// role. It ends with the test. A host without root or PostgreSQL skips the test.
func New(tb testing.TB, initSQL ...string) *DB {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	as, err := postgres.BuildAccount()
	skipUnsupported(tb, err)
	in, err := postgres.FindInstall(ctx, os.Getenv)
	skipUnsupported(tb, err)
	spec := postgres.Spec{Database: Database, Role: Role, Password: "pgtest"}
	for _, sql := range initSQL {
		spec.Init = append(spec.Init, postgres.SQLFile{Name: "init.sql", Content: sql})
	}
	golden, err := postgres.Golden(ctx, in, spec, cacheDir())
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	defer golden.Close()
	return start(ctx, tb, in, golden.Path, as)
}

func start(ctx context.Context, tb testing.TB, in postgres.Install, golden string, as postgres.Account) *DB {
	tb.Helper()
	// Not tb.TempDir: its path may be too long for a unix socket and closed to the server's user.
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	if err := sys.CopyTree(golden, data, sys.Owner{UID: as.UID, GID: as.GID}); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	if err := os.Chown(dir, as.UID, as.GID); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	srv, err := postgres.StartServer(ctx, in, data, dir, as)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(srv.Kill)
	return &DB{
		JudgeDSN:  srv.DSN(postgres.JudgeRole, Database),
		AppDSN:    srv.DSN(Role, Database),
		SuperDSN:  srv.DSN(postgres.Superuser, Database),
		SocketDir: dir,
		Server:    srv,
	}
}

// Connect opens a connection that is closed with the test.
func Connect(tb testing.TB, dsn string) *pgx.Conn {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// Exec runs statements as the application's role.
func (db *DB) Exec(tb testing.TB, statements ...string) {
	tb.Helper()
	c := Connect(tb, db.AppDSN)
	for _, s := range statements {
		if _, err := c.Exec(context.Background(), s); err != nil {
			tb.Fatalf("pgtest: %s: %v", s, err)
		}
	}
}

func cacheDir() string {
	if dir := os.Getenv("POMMEL_CACHE"); dir != "" {
		return filepath.Join(dir, "pgtest")
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "pommel", "pgtest")
}

func skipUnsupported(tb testing.TB, err error) {
	tb.Helper()
	if fault.KindOf(err) == fault.Unsupported {
		tb.Skipf("unsupported: %v", err)
	}
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}
