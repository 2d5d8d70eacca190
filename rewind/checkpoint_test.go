package rewind

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func checkpoint(t *testing.T, tree *Tree, parent *Snapshot) *Snapshot {
	t.Helper()
	s, err := tree.Checkpoint(context.Background(), parent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// walk makes a tree of states by random steps and goes back to random ones of them,
// holding each against what it was when it was saved.
func walk(t *testing.T, tree *Tree, rounds int, step func(i int), state func() string) {
	t.Helper()
	type node struct {
		s    *Snapshot
		want string
	}
	save := func(parent *Snapshot) node {
		var s *Snapshot
		if parent == nil {
			s = snapshot(t, tree)
		} else {
			s = checkpoint(t, tree, parent)
		}
		n := node{s, state()}
		mustVerify(t, tree, s)
		return n
	}
	nodes := []node{save(nil)}
	at := nodes[0].s
	rng := rand.New(rand.NewPCG(1, 2))
	var f figures
	for i := range rounds {
		step(i)
		if len(nodes) < 8 && i%3 == 0 {
			n := save(at)
			nodes = append(nodes, n)
			step(i + 1000)
		}
		n := nodes[rng.IntN(len(nodes))]
		f.add(mustVerify(t, tree, n.s))
		at = n.s
		if got := state(); got != n.want {
			t.Fatalf("round %d: state %q, was %q", i, got, n.want)
		}
		mustRewind(t, tree, n.s)
		if i%20 == 19 && len(nodes) > 4 { // a checkpoint that is not needed any more
			k := 1 + rng.IntN(len(nodes)-1)
			if nodes[k].s != at {
				if err := nodes[k].s.Release(); err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes[:k], nodes[k+1:]...)
			}
		}
	}
	f.print(t, "checkpoints")
}

func TestCheckpointGo(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startTarget(t, "memory")
	p.ask("mutate")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	walk(t, tree, soak(100), func(int) { p.ask("mutate") }, func() string { return p.ask("state") })
}

// TestCheckpointSize: a checkpoint takes what has changed, however much the program has
// reserved, and whatever the kernel notes about the pages that are not there.
func TestCheckpointSize(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startTarget(t, "sparse")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	base := snapshot(t, tree)
	kept := tree.Kept()
	small := func(what string, most int64) {
		t.Helper()
		if got := tree.Kept() - kept; got > most {
			t.Errorf("%s: the checkpoint takes %d KiB, at most %d were expected", what, got>>10, most>>10)
		}
		kept = tree.Kept()
	}
	const page, news, others = 4096, 1024, 2 << 20 // others are the runtime's own pages
	want := p.ask("write")
	written := checkpoint(t, tree, base)
	small("after writes to new pages", news*page+others)
	p.ask("clear")
	cleared := checkpoint(t, tree, written)
	small("after clearing all", others)
	mustVerify(t, tree, base)
	p.ask("write")
	again := checkpoint(t, tree, base)
	small("after the same writes again", others)
	for range 3 {
		mustVerify(t, tree, base)
		mustVerify(t, tree, cleared)
		if got := p.ask("state"); got != "0" {
			t.Fatalf("cleared memory adds up to %s", got)
		}
		for _, s := range []*Snapshot{written, again} {
			mustVerify(t, tree, s)
			if got := p.ask("state"); got != want {
				t.Fatalf("written memory adds up to %s, not %s", got, want)
			}
		}
		p.ask("clear")
	}
}

func TestCheckpointC(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startProgram(t, exec.Command(compileC(t, "threads")))
	p.line()
	p.ask("w")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	walk(t, tree, soak(100), func(i int) {
		switch i % 4 {
		case 0:
			p.ask("w")
		case 1:
			p.ask("c")
		case 2:
			p.ask("u")
		case 3:
			p.ask("c")
		}
	}, func() string { return p.ask("q") })
}

// TestCheckpointPostgres: states with different files, rows and server processes.
func TestCheckpointPostgres(t *testing.T) {
	if !inside(t) {
		return
	}
	c := prepared(t)
	a := c.connect()
	query(t, a, "select count(*) from t")
	tree := attach(t, Options{Roots: []int{c.cmd.Process.Pid}, Dirs: []string{c.data, "/dev/shm"}, Seal: true})
	var extra *pgx.Conn
	walk(t, tree, soak(60), func(i int) {
		switch i % 5 {
		case 0:
			query(t, a, fmt.Sprintf("insert into t(v,n) values('row',%d)", i))
		case 1:
			query(t, a, fmt.Sprintf("create table x%d(a int); insert into x%d select generate_series(1,1000)", i, i))
		case 2:
			query(t, a, "delete from t where id%7=0")
			query(t, a, "vacuum t")
		case 3:
			query(t, a, "checkpoint")
		case 4:
			if extra != nil {
				_ = extra.PgConn().Conn().Close()
			}
			extra = c.connect()
			query(t, extra, "insert into t(v,n) values('other',1)")
		}
	}, func() string { return strings.TrimSpace(stateOf(t, a)) })
}

// TestMappedFilesThatAreAlike: a file that is mapped is looked at with each checkpoint, since nobody
// tells of writes to it. Where two states have it alike, going from one to the other leaves it alone.
func TestMappedFilesThatAreAlike(t *testing.T) {
	if !inside(t) {
		return
	}
	dir := workDir()
	p := startTarget(t, "mapped", "MAPPED_FILE="+dir+"/mapped")
	p.ask("write")
	tree := attach(t, Options{Roots: []int{p.pid()}, Dirs: []string{dir}})
	base := snapshot(t, tree)
	alike := checkpoint(t, tree, base)
	if r := mustVerify(t, tree, base); r.FilesTouched != 0 {
		t.Errorf("%d files were touched between states that have them alike", r.FilesTouched)
	}
	if p.ask("write") != "2" {
		t.Fatal("the program did not write")
	}
	mustVerify(t, tree, alike)
	if got := p.ask("read"); got != "1" {
		t.Errorf("the mapped file has %s after the rewind, had 1", got)
	}
	mustVerify(t, tree, alike)
	p.ask("write")
	other := checkpoint(t, tree, alike)
	for range 20 {
		if r := mustVerify(t, tree, base); r.FilesTouched != 1 {
			t.Errorf("%d files were touched between states that differ in one", r.FilesTouched)
		}
		if got := p.ask("read"); got != "1" {
			t.Fatalf("base has %s in the mapped file, had 1", got)
		}
		mustVerify(t, tree, other)
		if got := p.ask("read"); got != "2" {
			t.Fatalf("the checkpoint has %s in the mapped file, had 2", got)
		}
	}
	// The state that the entry came from goes; who shares it still has it.
	mustRewind(t, tree, other)
	if err := base.Release(); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, tree, alike)
	if got := p.ask("read"); got != "1" {
		t.Errorf("after base was released the mapped file has %s, had 1", got)
	}
}
