package world_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/world"
)

// clockedWorld is a world whose application waits; its database is the thing.
func clockedWorld(t *testing.T) *world.World {
	t.Helper()
	img, err := world.BuildImage(testContext(t), scriptWorld(t, "cd /tmp; exec python3 -m http.server 8080 --bind 127.0.0.1",
		`{http: "http://127.0.0.1:8080/"}`, "CREATE TABLE events (at timestamptz DEFAULT now())"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Start(testContext(t), img, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := w.Clocked(); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	return w
}

// TestAStalledClockGoesOn: what waits for the clock gets it, and it is told.
func TestAStalledClockGoesOn(t *testing.T) {
	t.Parallel()
	w := clockedWorld(t)
	ctx, cancel := context.WithTimeout(testContext(t), time.Minute)
	defer cancel()
	epoch := w.Image().Spec.Clock
	if err := w.BeginEpisode(ctx, epoch, 1); err != nil {
		t.Fatal(err)
	}
	ask := func(sql string) (time.Duration, error) {
		done := w.Unstall()
		_, err := w.Reader().Query(ctx, sql)
		return done(), err
	}
	if by, err := ask("SELECT now()"); err != nil || by != 0 {
		t.Errorf("a short question moved the clock by %v: %v", by, err)
	}
	if got := w.Now(); !got.Equal(epoch) {
		t.Errorf("the clock shows %v, expected %v", got, epoch)
	}
	by, err := ask("SELECT pg_sleep(0.3)")
	if err != nil {
		t.Fatal(err)
	}
	if by < 300*time.Millisecond || by > 10*time.Second {
		t.Errorf("pg_sleep(0.3) moved the clock by %v", by)
	}
	if got := w.Now().Sub(epoch); got < 300*time.Millisecond || got > by+time.Second {
		t.Errorf("the clock has gone on by %v, it says by %v", got, by)
	}
	if err := w.Advance(epoch); err != nil {
		t.Fatal(err)
	}
	if got := w.Now().Sub(epoch); got < by {
		t.Errorf("the clock went back to %v", got)
	}
}

// TestEveryServiceIsClocked: the whole world has the time of before its first episode.
func TestEveryServiceIsClocked(t *testing.T) {
	t.Parallel()
	w := clockedWorld(t)
	ctx := testContext(t)
	before := w.Image().Spec.Clock.Add(-2 * time.Hour)
	rows, err := w.Reader().Query(ctx, "SELECT extract(epoch FROM now())::bigint::text, extract(epoch FROM pg_postmaster_start_time())::bigint::text")
	if err != nil {
		t.Fatal(err)
	}
	for i, cell := range rows.Text[0] {
		if want := before.Unix(); *cell != strconv.FormatInt(want, 10) {
			t.Errorf("cell %d is %s, expected %d", i, *cell, want)
		}
	}
}
