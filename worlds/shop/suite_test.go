// Package shop_test proves what can be proved about the shop's tasks without a
// browser: every seed makes a task, and no task is done before it began.
package shop_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/postgres/pgtest"
	"github.com/pommelgym/pommel/internal/reward"
	"github.com/pommelgym/pommel/internal/task"
	"github.com/pommelgym/pommel/internal/world"
)

// seeds is how many seeds of each task are tried.
const seeds = 40

// undo puts back what the setups of the tasks write; table by table, as foreign keys ask.
var undo = []string{
	"DELETE FROM sessions", "DELETE FROM cart_items", "DELETE FROM checkouts",
	"DELETE FROM return_items WHERE return_id > (SELECT count(*) FROM returns WHERE created_at < '2025-03-09 10:00:00Z')",
	"DELETE FROM returns WHERE created_at = '2025-03-09 10:00:00Z'",
	"UPDATE variants v SET stock = b.stock FROM variants_before b WHERE b.id = v.id AND b.stock <> v.stock",
}

type stand struct {
	suite *task.Suite
	db    *pgtest.DB
	judge *postgres.Judge
	setup *postgres.SetupConn
}

func newStand(t *testing.T) *stand {
	t.Helper()
	ctx := t.Context()
	s := &stand{db: pgtest.New(t, read(t, "db/schema.sql"), read(t, "db/seed.sql"))}
	s.db.Exec(t, "CREATE TABLE variants_before AS SELECT id, stock FROM variants")
	var err error
	if s.suite, err = task.LoadSuite("tasks"); err != nil {
		t.Fatal(err)
	}
	if s.judge, err = postgres.OpenJudge(ctx, s.db.JudgeDSN); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.judge.Close(context.Background()) })
	if s.setup, err = postgres.OpenSetup(ctx, s.db.AppDSN); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.setup.Close(context.Background()) })
	return s
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheWorldFileIsRight(t *testing.T) {
	t.Parallel()
	w, err := world.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if w.Name != "shop" || len(w.Services) != 2 {
		t.Errorf("world.yaml describes %q with %d services", w.Name, len(w.Services))
	}
	if at := w.Clock.UTC().Format(time.RFC3339); at != "2025-03-10T09:00:00Z" {
		t.Errorf("episodes start at %s; the dates in the database were made for another instant", at)
	}
}

func TestTasksFitTheDatabase(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	problems, err := s.suite.CheckAgainst(t.Context(), s.judge)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Task, p.Text)
	}
	if n := len(s.suite.Tasks); n < 26 {
		t.Errorf("the suite has %d tasks, want at least 26", n)
	}
	seen := map[string]int{}
	for _, spec := range s.suite.Tasks {
		seen[spec.Split]++
		seen[spec.Difficulty]++
	}
	for _, want := range []string{"train", "validation", "test", "easy", "medium", "hard"} {
		if seen[want] < 4 {
			t.Errorf("%d tasks are %s, want at least 4", seen[want], want)
		}
	}
}

// TestDoingNothingIsWorthNothing instantiates and sets up every task for many seeds,
// and asks the judge about an agent that finishes at once.
func TestDoingNothingIsWorthNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, spec := range s.suite.Tasks {
		kinds := map[string]bool{}
		for seed := range int64(seeds) {
			kinds[s.idle(t, spec, seed)] = true
		}
		// A task with few instances is learnt by heart; the smallest here has nine.
		if len(kinds) < 5 {
			t.Errorf("%s: %d seeds give only %d different instances", spec.ID, seeds, len(kinds))
		}
	}
}

// kind is what makes two instances different: all but the session's token.
func kind(in *task.Instance) string {
	var b strings.Builder
	for _, p := range in.Params {
		if p.Name != "token" {
			fmt.Fprintln(&b, p)
		}
	}
	return b.String()
}

// idle answers what kind of instance it tried.
func (s *stand) idle(t *testing.T, spec *task.Spec, seed int64) string {
	t.Helper()
	ctx := t.Context()
	in, err := task.Instantiate(ctx, spec, seed, s.judge)
	if err != nil {
		t.Fatalf("%s, seed %d: %v", spec.ID, seed, err)
	}
	if strings.Contains(in.Instruction, "${") || strings.Contains(in.Instruction, "NULL") {
		t.Errorf("%s, seed %d: the instruction is not filled in: %s", spec.ID, seed, in.Instruction)
	}
	if err := s.setup.ExecAll(ctx, in.Setup); err != nil {
		t.Fatalf("%s, seed %d: set up: %v", spec.ID, seed, err)
	}
	defer func() {
		for _, sql := range undo {
			if err := s.setup.Exec(ctx, sql); err != nil {
				t.Fatalf("undo: %v", err)
			}
		}
	}()
	j := reward.New(in, s.judge, nil)
	first, err := j.Start(ctx)
	if err != nil {
		t.Fatalf("%s, seed %d: %v", spec.ID, seed, err)
	}
	if first.Potential != 0 {
		t.Errorf("%s, seed %d: %v of the task holds at the start: %s", spec.ID, seed, first.Potential, in.Instruction)
	}
	end, err := j.Evaluate(ctx, reward.Input{Final: true})
	if err != nil {
		t.Fatalf("%s, seed %d: %v", spec.ID, seed, err)
	}
	if end.Value != 0 || end.Success || len(end.Collateral) > 0 {
		t.Errorf("%s, seed %d: doing nothing is worth %v, success %v, collateral %v", spec.ID, seed, end.Value, end.Success, end.Collateral)
	}
	return kind(in)
}
