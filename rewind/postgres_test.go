package rewind

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// cluster is a PostgreSQL server on the test's tmpfs.
type cluster struct {
	t      *testing.T
	data   string
	socket string
	cmd    *exec.Cmd
}

func postgresBin(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		t.Skip("inconclusive: PostgreSQL is not installed")
	}
	return filepath.Dir(found[len(found)-1])
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	bin := postgresBin(t)
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skipf("inconclusive: no user to run PostgreSQL as: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	dir := filepath.Join(workDir(), "pg")
	c := &cluster{t: t, data: dir + "/data", socket: dir + "/run"}
	for _, d := range []string{dir, c.data, c.socket} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(d, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(workDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	initdb := exec.Command(bin+"/initdb", "-D", c.data, "-A", "trust", "-N", "--wal-segsize=1", "--no-instructions")
	initdb.SysProcAttr, initdb.Dir, initdb.Env = attr, dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	log, err := os.Create(dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.cmd = exec.Command(bin+"/postgres", "-D", c.data, "-k", c.socket, "-h", "", "-c", "fsync=off", "-c", "autovacuum=off",
		"-c", "full_page_writes=off", "-c", "shared_buffers=16MB", "-c", "bgwriter_lru_maxpages=0", "-c", "max_wal_size=1GB", "-c", "jit=off")
	c.cmd.SysProcAttr, c.cmd.Dir, c.cmd.Env = attr, dir, initdb.Env
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Signal(syscall.SIGQUIT)
		_ = c.cmd.Process.Kill()
		_, _ = c.cmd.Process.Wait()
		if t.Failed() {
			b, _ := os.ReadFile(dir + "/log")
			t.Logf("server log:\n%s", b[max(0, len(b)-4000):])
		}
	})
	c.connect().Close(context.Background())
	return c
}

// connect opens a connection, waiting for the server to accept some.
func (c *cluster) connect() *pgx.Conn {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		cfg, err := pgx.ParseConfig(fmt.Sprintf("host=%s user=postgres dbname=postgres", c.socket))
		if err != nil {
			c.t.Fatal(err)
		}
		cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err == nil {
			return conn
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("connect: %v", err)
		case <-time.After(20 * time.Millisecond): // the server tells nobody when it is ready
		}
	}
}

// exec runs statements and gives the first value of the first row, as text.
func query(t *testing.T, c *pgx.Conn, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	res, err := c.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	out := ""
	for _, r := range res {
		for _, row := range r.Rows {
			for _, v := range row {
				out += string(v) + " "
			}
		}
	}
	return out
}

func prepared(t *testing.T) *cluster {
	t.Helper()
	c := startCluster(t)
	a := c.connect()
	query(t, a, `create table t(id serial primary key, v text, n int); insert into t(v,n) select 'row'||g, g from generate_series(1,1000) g;
		create index on t(v)`)
	query(t, a, "vacuum analyze")
	query(t, a, "checkpoint")
	_ = a.Close(context.Background())
	return c
}

// stateOf is what must be the same after each rewind, down to the place in the log.
func stateOf(t *testing.T, conns ...*pgx.Conn) string {
	t.Helper()
	s := ""
	for _, c := range conns {
		s += query(t, c, "select count(*), sum(n), max(id) from t")
		s += query(t, c, "select last_value, is_called from t_id_seq")
		s += query(t, c, "select count(*) from pg_class")
	}
	s += query(t, conns[0], "insert into t(v,n) values('z',1) returning id, ctid, xmin")
	return s + query(t, conns[0], "select pg_current_wal_insert_lsn()")
}

// TestPostgres: two connections live through every rewind; rows, sequences, catalog and log position come back.
func TestPostgres(t *testing.T) {
	if !inside(t) {
		return
	}
	c := prepared(t)
	a, b := c.connect(), c.connect()
	for _, x := range []*pgx.Conn{a, b} {
		query(t, x, "select count(*) from t; begin; insert into t(v,n) values('w',1); update t set n=n+1 where id=5; rollback; select * from t where v='row7'")
	}
	tree := attach(t, Options{Roots: []int{c.cmd.Process.Pid}, Dirs: []string{c.data, "/dev/shm"}})
	s := snapshot(t, tree)
	want := stateOf(t, a, b)
	mustVerify(t, tree, s)
	var f figures
	for i := range soak(1000) {
		for _, x := range []*pgx.Conn{a, b} {
			query(t, x, fmt.Sprintf("insert into t(v,n) values('new',%d)", i))
			query(t, x, "update t set n=n+1 where id between 10 and 30; delete from t where id<5")
			query(t, x, "insert into t(v,n) select 'bulk',g from generate_series(1,100) g")
		}
		switch {
		case i%100 == 50:
			query(t, a, "insert into t(v,n) select repeat('x',500),g from generate_series(1,8000) g")
			query(t, a, "checkpoint")
		case i%10 == 0:
			query(t, a, "create table x(a int primary key, b text); insert into x select g,'z' from generate_series(1,100) g")
		case i%7 == 0:
			query(t, b, "begin; update t set v='open' where id=77")
		}
		if i%50 == 0 {
			mustVerify(t, tree, s)
		} else {
			f.add(mustRewind(t, tree, s))
		}
		if i%5 == 0 {
			if got := stateOf(t, a, b); got != want {
				t.Fatalf("round %d: state\n%s\nwas\n%s", i, got, want)
			}
			mustRewind(t, tree, s)
		}
	}
	f.print(t, "postgres")
}
