package pgtest_test

import (
	"context"
	"testing"

	"github.com/pommelgym/pommel/internal/postgres/pgtest"
)

func TestEachTestHasItsOwnCluster(t *testing.T) {
	t.Parallel()
	schema := "CREATE TABLE item (id int GENERATED ALWAYS AS IDENTITY, name text); INSERT INTO item (name) VALUES ('a');"
	one, two := pgtest.New(t, schema), pgtest.New(t, schema)
	one.Exec(t, "DELETE FROM item", "CREATE TABLE other (a int)")
	var n int
	if err := pgtest.Connect(t, two.JudgeDSN).QueryRow(context.Background(), "SELECT count(*) FROM item").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Fatalf("the second cluster has %d items, want 1", n)
	}
}
