package gym

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// drawn is what a database says about time and chance.
const drawn = "SELECT extract(epoch FROM now())::numeric::text, gen_random_uuid()::text, random()::text"

// TestRowsBearTheWorldsTime: the application, the database and the page live by one clock,
// and everything that an episode draws is a function of its seed.
func TestRowsBearTheWorldsTime(t *testing.T) {
	t.Parallel()
	g, err := Open(testContext(t), Options{World: "shop", Worlds: 1, Driver: "rewind", Traces: t.TempDir()})
	if err != nil {
		t.Skipf("unsupported: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	seen := map[int64]string{}
	for i, seed := range []int64{7, 8, 7, 8, 7} {
		got := playOnce(t, g, seed)
		if want, ok := seen[seed]; ok && got != want {
			t.Errorf("episode %d, seed %d:\n%s\nbefore:\n%s", i, seed, got, want)
		}
		seen[seed] = got
	}
	for field, a := range strings.Fields(seen[7]) {
		if b := strings.Fields(seen[8])[field]; (field == 1 || field == 2) && a == b {
			t.Errorf("two seeds draw one number: %s", a)
		}
	}
}

// playOnce plays a task as its oracle does and gives what the database said before the
// last action, and what was written by it.
func playOnce(t *testing.T, g *Gym, seed int64) string {
	t.Helper()
	ctx := testContext(t)
	env := g.NewEnv()
	defer func() { _ = env.Close() }()
	last := mustReset(t, env, Request{Task: "buy-item", Seed: seed})
	epoch := time.Date(2025, 3, 10, 9, 0, 0, 0, time.UTC)
	var rows, orders string
	err := env.Oracle(ctx, func(ctx context.Context, action string) (*Result, error) {
		at := epoch.Add(time.Duration(last.Observation.VirtualTimeMS * float64(time.Millisecond)))
		rows = cells(t, env, drawn)
		if want := fmt.Sprintf("%.6f", float64(at.UnixMicro())/1e6); !strings.HasPrefix(rows, want) {
			t.Errorf("the database is at %s, the page at %s", rows, want)
		}
		r, err := env.Step(ctx, action)
		if err != nil {
			return r, err
		}
		last = r
		for _, c := range r.Info.Changes {
			if c.Table == "orders" && c.Op == "insert" {
				orders += *c.New["placed_at"] + " " + *c.New["checkout_token"]
				if want := at.Format("2006-01-02 15:04:05"); !strings.HasPrefix(*c.New["placed_at"], want) {
					t.Errorf("an order was placed at %s, expected %s", *c.New["placed_at"], want)
				}
			}
		}
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !last.Info.Success || orders == "" {
		t.Errorf("seed %d was not won", seed)
	}
	if !last.Info.Reproducible {
		t.Errorf("seed %d is not reproducible: %s", seed, last.Info.NotReproducible)
	}
	return rows + " " + orders + " " + last.Info.ObservationHash
}

// cells gives the cells of the first row.
func cells(t *testing.T, env *Env, sql string) string {
	t.Helper()
	rows, err := env.ep.Query(testContext(t), sql)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range rows.Text[0] {
		out = append(out, *c)
	}
	return strings.Join(out, " ")
}
