package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/sandbox"
)

var clockStart = time.Date(2025, 3, 10, 9, 0, 0, 0, time.UTC)

// clockedBox is a sandbox with a clock, if the host can.
func clockedBox(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	cfg := config()
	cfg.Clock = &sandbox.Clock{Start: clockStart, Label: "test"}
	s := start(t, cfg)
	if err := s.Clocked(); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	return s
}

func TestClockOfASandbox(t *testing.T) {
	t.Parallel()
	s := clockedBox(t)
	for i := range 20 {
		at := clockStart.Add(time.Duration(i) * 13 * time.Hour)
		if err := s.SetClock(at); err != nil {
			t.Fatal(err)
		}
		out, _ := run(t, s, shell(appUID, "date -u +%s; sh -c 'exec date -u +%s' | cat"))
		if want := fmt.Sprintf("%d\n%d", at.Unix(), at.Unix()); strings.TrimSpace(out) != want {
			t.Fatalf("got %q, expected %q", out, want)
		}
	}
}

// asker answers each line on its input with what it draws and what time it is; from time
// to time it lets another program tell.
const asker = `
import os, subprocess, sys, time
n = 0
for line in sys.stdin:
    n += 1
    a = time.monotonic()
    time.sleep(0.001)
    told = subprocess.run(["date", "-u", "+%s"], capture_output=True).stdout.decode().strip() if n % 2 else ""
    print(n, time.time_ns(), os.urandom(4).hex(), told, time.monotonic() - a >= 0.001, flush=True)
`

// TestRewindsOfTheClock: with one seed each episode is the same, whatever was before it.
func TestRewindsOfTheClock(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("unsupported: " + err.Error())
	}
	s := clockedBox(t)
	ctx := testContext(t)
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer inW.Close()
	defer outR.Close()
	p := shell(appUID, "exec /usr/bin/python3 -u -c \"$PROGRAM\" <&3 >&4")
	p.Env = append(p.Env, "PROGRAM="+asker)
	if _, err := s.Run(ctx, p, inR, outW); err != nil {
		t.Fatal(err)
	}
	_, _ = inR.Close(), outW.Close()
	out := bufio.NewReader(outR)
	ask := func() string {
		if _, err := inW.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	ask()
	if _, err := s.Snapshot(ctx, sandbox.SnapshotOptions{}); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	seen := map[uint64]string{}
	for i := range 100 {
		seed := uint64(i % 3)
		if err := s.Reseed(ctx, "episode", seed); err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		for step := range 4 {
			if err := s.SetClock(clockStart.Add(time.Duration(step) * time.Second)); err != nil {
				t.Fatal(err)
			}
			all.WriteString(ask())
		}
		if want, ok := seen[seed]; ok && want != all.String() {
			t.Fatalf("episode %d, seed %d:\n%sbefore:\n%s", i, seed, all.String(), want)
		}
		seen[seed] = all.String()
		if i%10 == 9 {
			if _, proof, err := s.Verify(ctx, 0); err != nil || !proof.OK() {
				t.Fatalf("rewind %d: %v, %+v", i, err, proof)
			}
		} else if _, err := s.Rewind(ctx, 0); err != nil {
			t.Fatalf("rewind %d: %v", i, err)
		}
		if got := s.Now(); !got.Equal(clockStart) {
			t.Fatalf("after rewind %d the clock shows %v", i, got)
		}
	}
	if seen[0] == seen[1] || seen[1] == seen[2] {
		t.Errorf("different seeds, one episode: %s", seen[0])
	}
}

// TestRewindsAmongExecs: a rewind finds programs in all stages of a start, and may not
// hang, nor leave one behind that lives by another clock.
func TestRewindsAmongExecs(t *testing.T) {
	t.Parallel()
	s := clockedBox(t)
	ctx := testContext(t)
	goR, goW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer goW.Close()
	p, err := s.Run(ctx, shell(appUID, `while read -r line <&3; do
		for i in 1 2 3 4 5 6 7 8 9; do [ "$(date -u +%Y)" = 2025 ] || echo wrong; done; done`), goR)
	if err != nil {
		t.Fatal(err)
	}
	_ = goR.Close()
	if _, err := s.Snapshot(ctx, sandbox.SnapshotOptions{}); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	for i := range 100 {
		if _, err := goW.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		// Somewhere in the middle: each Check is a round trip to the keeper.
		for range i % 17 {
			if err := s.Check(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Rewind(ctx, 0); err != nil {
			t.Fatalf("rewind %d: %v", i, err)
		}
	}
	if log := p.Log(); log != "" {
		t.Error(log)
	}
}

// TestNoClockAskedFor: without one a sandbox lives by the real time and says so.
func TestNoClockAskedFor(t *testing.T) {
	t.Parallel()
	s := start(t, config())
	if err := s.Clocked(); err == nil || !strings.Contains(err.Error(), "no clock") {
		t.Errorf("got %v", err)
	}
	if err := s.Reseed(context.Background(), "x", 1); err != nil {
		t.Error(err)
	}
	out, _ := run(t, s, shell(appUID, "date -u +%Y"))
	if got := strings.TrimSpace(out); got != fmt.Sprint(time.Now().UTC().Year()) {
		t.Errorf("the year is %s", got)
	}
}
