package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pommelgym/pommel/internal/fault"
)

// BuildAccount is the user that runs a server outside a world: postgres where it exists,
// else nobody. initdb insists on a user that has a name on the host, and refuses root.
func BuildAccount() (Account, error) {
	if os.Geteuid() != 0 {
		return Account{}, fault.New(fault.Unsupported, "PostgreSQL clusters are made by root, which runs them as another user").
			WithHint("run as root")
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid != 0 {
			return Account{uid, gid}, nil
		}
	}
	return Account{}, fault.New(fault.Unsupported, "no unprivileged user to run PostgreSQL as").
		WithHint("the host needs a user named postgres or nobody")
}

// InitCluster makes a cluster in dir, which must not exist: initdb, the roles, the
// database, the init scripts. The server is shut down at the end, with everything frozen
// and checkpointed, so that copies of dir start fast. On failure nothing is left.
func InitCluster(ctx context.Context, in Install, spec Spec, dir string, as Account) (err error) {
	if err := spec.check(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	if err := runInitdb(ctx, in, dir, as); err != nil {
		return err
	}
	if err := writeConfig(in, spec, dir, as); err != nil {
		return err
	}
	socketDir, err := os.MkdirTemp("", "pommel-pg-")
	if err != nil {
		return fmt.Errorf("init cluster: %w", err)
	}
	defer os.RemoveAll(socketDir)
	if err := os.Chown(socketDir, as.UID, as.GID); err != nil {
		return fmt.Errorf("init cluster: %w", err)
	}
	srv, err := StartServer(ctx, in, dir, socketDir, as)
	if err != nil {
		return err
	}
	defer srv.Kill()
	if err := fill(ctx, srv, spec); err != nil {
		return err
	}
	if err := srv.Stop(ctx); err != nil {
		return err
	}
	return trim(dir)
}

func runInitdb(ctx context.Context, in Install, dir string, as Account) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	if err := os.Chown(dir, as.UID, as.GID); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	args := []string{
		"-D", dir, "-U", Superuser, "--auth=reject", "--no-sync", "--no-instructions",
		"--wal-segsize=1", "--encoding=UTF8", "--locale=C.UTF-8",
	}
	if in.Major >= 18 {
		args = append(args, "--no-data-checksums")
	}
	cmd := exec.CommandContext(ctx, in.program("initdb"), args...)
	cmd.Dir, cmd.Env = dir, ServerEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(as.UID), Gid: uint32(as.GID)}, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func writeConfig(in Install, spec Spec, dir string, as Account) error {
	for name, text := range map[string]string{
		"postgresql.conf": spec.conf(in.Major),
		"pg_hba.conf":     spec.hba(),
		"pg_ident.conf":   spec.ident(),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.Chown(path, as.UID, as.GID); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// fill makes roles and database, runs the init scripts, leaves the database tidy and
// readies it for the judge.
func fill(ctx context.Context, srv *Server, spec Spec) error {
	if err := withConn(ctx, srv.DSN(Superuser, "template1"), func(c *pgx.Conn) error {
		return execAll(ctx, c,
			fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD %s", quoteIdent(spec.Role), quoteLiteral(spec.Password)),
			fmt.Sprintf("CREATE ROLE %s LOGIN REPLICATION BYPASSRLS IN ROLE pg_read_all_data", JudgeRole),
			// What the application defines must not be found before the real thing.
			fmt.Sprintf("ALTER ROLE %s SET search_path = pg_catalog, public", JudgeRole),
			fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0", quoteIdent(spec.Database), quoteIdent(spec.Role)),
		)
	}); err != nil {
		return fmt.Errorf("make roles and database: %w", err)
	}
	if err := withConn(ctx, srv.DSN(spec.Role, spec.Database), func(c *pgx.Conn) error {
		for _, f := range spec.Init {
			if err := runSQLFile(ctx, c, f); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return withConn(ctx, srv.DSN(Superuser, spec.Database), func(c *pgx.Conn) error {
		// The other databases would be copied at every start of every world for nothing.
		if err := execAll(ctx, c,
			"ALTER DATABASE template0 IS_TEMPLATE false", "ALTER DATABASE template1 IS_TEMPLATE false",
			"DROP DATABASE template0", "DROP DATABASE template1", "DROP DATABASE postgres",
			"VACUUM (FREEZE, ANALYZE)"); err != nil {
			return err
		}
		// Last, and with a checkpoint: decoding starts behind all that was done before.
		return PrepareJudge(ctx, c)
	})
}

func withConn(ctx context.Context, dsn string, do func(*pgx.Conn) error) error {
	c, err := connect(ctx, dsn)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close(context.WithoutCancel(ctx)))
}

func execAll(ctx context.Context, c *pgx.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// firstUserFile is the least number of a file that initdb has not made.
const firstUserFile = 16384

// trim removes what the next start does not need. Free space maps, of which every catalog
// has one, are a third of all files and bytes and are made again when they are missed; so
// are the visibility maps of catalogs.
func trim(dir string) error {
	for _, name := range []string{"postmaster.opts", "postmaster.pid", "pg_stat/pgstat.stat"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("trim cluster: %w", err)
		}
	}
	var maps []string
	for _, pattern := range []string{"base/*/*_fsm", "base/*/*_vm", "global/*_fsm", "global/*_vm"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return fmt.Errorf("trim cluster: %w", err)
		}
		maps = append(maps, found...)
	}
	for _, path := range maps {
		number, kind, _ := strings.Cut(filepath.Base(path), "_")
		if n, err := strconv.Atoi(number); err != nil || kind == "vm" && n >= firstUserFile {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("trim cluster: %w", err)
		}
	}
	return nil
}
