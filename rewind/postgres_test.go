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
		"-c", "full_page_writes=off", "-c", "shared_buffers=16MB", "-c", "bgwriter_lru_maxpages=0", "-c", "wal_level=minimal", "-c", "max_wal_senders=0", // else a record of running transactions comes by the clock
		"-c", "max_wal_size=1GB", "-c", "jit=off")
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
	tree := attach(t, Options{Roots: []int{c.cmd.Process.Pid}, Dirs: []string{c.data, "/dev/shm"}, Seal: true})
	s := snapshot(t, tree)
	want := stateOf(t, a, b)
	mustVerify(t, tree, s)
	var f figures
	for i := range soak(rounds) {
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
		f.rewind(t, tree, s, i)
		if i%5 == 0 {
			if got := stateOf(t, a, b); got != want {
				t.Fatalf("round %d: state\n%s\nwas\n%s", i, got, want)
			}
			mustRewind(t, tree, s)
		}
	}
	f.print(t, "postgres")
}

// TestPostgresTorture: whatever an episode does to the server, the snapshot inside an open transaction comes back.
func TestPostgresTorture(t *testing.T) {
	if !inside(t) {
		return
	}
	c := prepared(t)
	a, b := c.connect(), c.connect()
	for _, x := range []*pgx.Conn{a, b} {
		query(t, x, "select count(*) from t; begin; insert into t(v,n) values('w',1); rollback; prepare p1 as select count(*) from t where n>$1")
	}
	query(t, a, "begin; insert into t(v,n) values('in an open transaction at the snapshot',5)")
	tree := attach(t, Options{Roots: []int{c.cmd.Process.Pid}, Dirs: []string{c.data, "/dev/shm"}})
	s := snapshot(t, tree)
	state := func() string {
		return query(t, a, "select count(*),sum(n),max(id) from t") + query(t, b, "select count(*),sum(n),max(id) from t") +
			query(t, b, "select last_value,is_called from t_id_seq; select count(*) from pg_class; execute p1(500)") +
			query(t, a, "insert into t(v,n) values('z',1) returning id,ctid,xmin") + query(t, b, "insert into t(v,n) values('z',1) returning id,ctid,xmin") +
			query(t, b, "select pg_current_wal_insert_lsn(); select count(*) from pg_locks")
	}
	want := state()
	mustVerify(t, tree, s)
	begin := func(c *pgx.Conn, sql string) { // without waiting for the answer
		t.Helper()
		msg := append([]byte{'Q', 0, 0, 0, byte(len(sql) + 5)}, sql...)
		if _, err := c.PgConn().Conn().Write(append(msg, 0)); err != nil {
			t.Fatal(err)
		}
	}
	var more []*pgx.Conn
	ops := []struct {
		name string
		do   func()
	}{
		{"commit", func() { query(t, a, "commit") }},
		{"wal", func() { query(t, b, "insert into t(v,n) select repeat('x',500),g from generate_series(1,8000) g") }},
		{"checkpoint", func() {
			query(t, b, "insert into t(v,n) select repeat('x',500),g from generate_series(1,3000) g")
			query(t, b, "checkpoint")
		}},
		{"ddl", func() {
			query(t, b, "create table zz(a int primary key, b text); insert into zz select g,'b' from generate_series(1,1000) g; create index on zz(b); alter table zz add c int default 5; drop table zz; create schema s1; create function f() returns int language sql as 'select 1'")
		}},
		{"drop", func() { query(t, a, "rollback"); query(t, b, "drop table t"); query(t, b, "checkpoint") }},
		{"truncate", func() { query(t, a, "rollback"); query(t, b, "truncate t"); query(t, b, "checkpoint") }},
		{"temp", func() {
			query(t, b, "create temp table tt as select g, md5(g::text) m from generate_series(1,50000) g")
			query(t, b, "set work_mem='64kB'; select count(*) from (select * from tt order by m) x")
		}},
		{"cursor", func() { query(t, b, "begin; declare c cursor for select * from t; fetch 10 from c") }},
		{"in flight", func() { begin(b, "select pg_sleep(100)") }},
		{"lock wait", func() { query(t, a, "lock table t"); begin(b, "update t set n=1") }},
		{"notify", func() { query(t, b, "listen ch"); query(t, b, "notify ch,'x'") }},
		{"parallel", func() {
			query(t, b, "set max_parallel_workers_per_gather=2; set parallel_setup_cost=0; set parallel_tuple_cost=0; set min_parallel_table_scan_size=0; select count(*) from t where v like '%5%'")
		}},
		{"vacuum full", func() {
			query(t, a, "rollback")
			query(t, b, "delete from t where id%2=0")
			query(t, b, "vacuum full t")
			query(t, b, "reindex table t")
		}},
		{"advisory", func() { query(t, b, "select pg_advisory_lock(5); prepare p2 as select 1; deallocate p1") }},
		{"connections", func() {
			d := c.connect()
			query(t, d, "insert into t(v,n) values('d',1)")
			_ = d.Close(context.Background())
			e := c.connect()
			query(t, e, "begin; insert into t(v,n) values('e',1)")
			more = append(more, e)
		}},
		{"create database", func() { query(t, b, "create database db2") }},
	}
	for i := range soak(3 * len(ops)) {
		op := ops[i%len(ops)]
		op.do()
		mustVerify(t, tree, s)
		for _, x := range []*pgx.Conn{a, b} { // answers to what is undone may be on their way
			drainClient(t, x)
		}
		for _, x := range more {
			_ = x.PgConn().Conn().Close()
		}
		more = more[:0]
		if got := state(); got != want {
			t.Fatalf("after %s: state\n%s\nwas\n%s", op.name, got, want)
		}
		mustVerify(t, tree, s)
	}
}

// drainClient reads away what the server had sent before it was rewound.
func drainClient(t *testing.T, c *pgx.Conn) {
	t.Helper()
	conn := c.PgConn().Conn()
	_ = conn.SetReadDeadline(time.Now().Add(-time.Second))
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 65536)
	_ = conn.SetReadDeadline(time.Time{})
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, err := syscall.Read(int(fd), buf)
			if n <= 0 || err != nil {
				return true
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPostgresBackend: the server process of a connection that the snapshot knows ends in
// the episode and is made again; its client sees that the connection is gone.
func TestPostgresBackend(t *testing.T) {
	if !inside(t) {
		return
	}
	c := prepared(t)
	a, b := c.connect(), c.connect()
	query(t, a, "select count(*) from t")
	query(t, b, "select count(*) from t")
	tree := attach(t, Options{Roots: []int{c.cmd.Process.Pid}, Dirs: []string{c.data, "/dev/shm"}, Seal: true})
	s := snapshot(t, tree)
	want := stateOf(t, a)
	mustVerify(t, tree, s)
	var f figures
	for i := range soak(60) {
		query(t, a, fmt.Sprintf("select pg_terminate_backend(%d)", b.PgConn().PID()))
		query(t, a, "insert into t(v,n) values('x',1)")
		f.add(mustVerify(t, tree, s))
		if got := stateOf(t, a); got != want {
			t.Fatalf("round %d: state %s, was %s", i, got, want)
		}
		mustVerify(t, tree, s)
	}
	f.print(t, "postgres, a backend made again")
}
