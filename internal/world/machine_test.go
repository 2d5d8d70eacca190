package world_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/world"
	"github.com/pommelgym/pommel/internal/world/worldtest"
)

func startMachine(t *testing.T, img *world.Image) *rewound {
	t.Helper()
	return startMachineBy(t, img, func(*world.Rewind) {})
}

func startMachineBy(t *testing.T, img *world.Image, change func(*world.Rewind)) *rewound {
	t.Helper()
	r := &rewound{t: t, driver: world.MicroVM()}
	change(&r.driver)
	if err := r.driver.Available(testContext(t)); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	began := time.Now()
	var err error
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	r.w, err = r.driver.Start(ctx, img, func(s string) { t.Logf("%6.2fs %s", time.Since(began).Seconds(), s) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.w == nil {
			return
		}
		if err := r.w.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%6.2fs up", time.Since(began).Seconds())
	return r
}

// harm is something that root of a guest may do to it.
type harm struct {
	name, script string
	// ends says that it is over soon; lost that the world is lost by it. What else is done is under
	// way when the world is put back.
	ends, lost bool
}

var hostile = []harm{
	{name: "no database", script: "d=/proc/$(pgrep -o -x postgres)/root/var/lib/postgresql/data; rm -rf $d/*; test ! -e $d/base", ends: true},
	{name: "no server", script: "pkill -KILL -o -x postgres", lost: true},
	{name: "2030", script: "date -s 2030-01-01", ends: true},
	{name: "fork bomb", script: "b() { b | b & }; b; sleep 100"},
	{name: "off", script: "echo o > /proc/sysrq-trigger", lost: true},
	{name: "crash", script: "echo c > /proc/sysrq-trigger", lost: true},
	{name: "no keeper", script: "pkill -KILL -o -f ^pommel-keeper", lost: true},
	{name: "no memory", script: "dd if=/dev/zero of=/tmp/full bs=1M count=512; sleep 100"},
}

// harmTime is how long something goes on that has no end.
const harmTime = time.Second

func (r *rewound) suffer(h harm) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(testContext(r.t))
	defer cancel()
	if !h.ends && !h.lost {
		ctx, cancel = context.WithTimeout(ctx, harmTime)
		defer cancel()
	}
	if h.lost {
		// The answer may not come any more.
		go func() {
			select {
			case <-r.w.Lost():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	out, code, err := r.w.Exec(ctx, "sh", "-c", h.script)
	switch {
	case h.ends && (err != nil || code != 0):
		r.t.Fatalf("%s: %q %d %v", h.name, out, code, err)
	case h.lost:
		select {
		case <-r.w.Lost():
		case <-testContext(r.t).Done():
			r.t.Fatalf("%s: the world is not lost: %q %d %v", h.name, out, code, err)
		}
	case !h.ends && err == nil:
		r.t.Fatalf("%s: it was over: %q %d", h.name, out, code)
	}
}

// A guest in which root has destroyed the database, the clock, the kernel or everything is
// whole again after a reset in place.
func TestMachineAfterHostileRoot(t *testing.T) {
	t.Parallel()
	r := startMachine(t, worldtest.MiniImage(t))
	open, rows := r.observe(browser.View{Elements: true}), r.fingerprint()
	began, done := time.Now(), 0
	for round := range rounds() {
		for _, h := range hostile {
			r.suffer(h)
			r.reset(h.name)
			r.asBefore(h.name, open, rows)
			done++
		}
		t.Logf("%6.1fs round %d", time.Since(began).Seconds(), round)
	}
	slices.Sort(r.took)
	t.Logf("%d harms, %v each; %d resets in place; p50 %v max %v", done, time.Since(began)/time.Duration(done), len(r.took), r.took[len(r.took)/2], r.took[len(r.took)-1])
}

// rounds is how often each is done: a hundred harms and more with POMMEL_SOAK.
func rounds() int {
	if os.Getenv("POMMEL_SOAK") != "" {
		return 13
	}
	return 1
}

// What is done in a rehearsal leaves nothing in rows, files, counters, page and clock: the world is the
// one that a driver without rehearsals starts.
func TestMachineAfterRehearsal(t *testing.T) {
	t.Parallel()
	img := worldtest.MiniImage(t)
	plain := startRewound(t, img, 0)
	var rehearsed []string
	r := startMachineBy(t, img, func(d *world.Rewind) {
		d.Rehearse = func(_ context.Context, w *world.World) error {
			r := &rewound{t: t, w: w}
			must(t, w.BeginEpisode(testContext(t), img.Spec.Clock, 7))
			r.begin(7, img.Spec.Browser.StartURL)
			r.do(`click(selector="text=Add")`)
			rehearsed = append(rehearsed, r.observe(browser.View{}).Title, r.fingerprint())
			return nil
		}
	})
	open, rows := plain.observe(browser.View{Elements: true}), plain.fingerprint()
	if len(rehearsed) != 2 || rehearsed[0] != "Added" || rehearsed[1] == rows {
		t.Fatalf("the rehearsal was %q", rehearsed)
	}
	if now, want := r.w.Now(), plain.w.Now(); !now.Equal(want) {
		t.Errorf("the clock is at %v, want %v", now, want)
	}
	for _, after := range []string{"a rehearsal", "a reset"} {
		r.asBefore(after, open, rows)
	}
	if err := r.w.Reproducible(); err != nil {
		t.Error(err)
	}
}

// Checkpoints are of the guest too: its rows and its clock.
func TestMachineCheckpoint(t *testing.T) {
	t.Parallel()
	r := startMachine(t, worldtest.MiniImage(t))
	lap := time.Now()
	note := func(what string) {
		t.Logf("%8.1f ms %s", float64(time.Since(lap).Microseconds())/1000, what)
		lap = time.Now()
	}
	ctx := testContext(t)
	must(t, r.w.BeginEpisode(ctx, r.w.Image().Spec.Clock, 7))
	note("begin")
	first := r.begin(7, r.w.Image().Spec.Browser.StartURL)
	note("first page")
	c, err := r.w.Checkpoint(ctx)
	must(t, err)
	note("checkpoint")
	rows, now := r.fingerprint(), r.w.Now()
	for i := range 3 {
		lap = time.Now()
		r.do(`click(selector="text=Add")`)
		note("click")
		must(t, r.w.Advance(now.Add(time.Duration(i+1)*time.Hour)))
		note("advance")
		if r.fingerprint() == rows {
			t.Fatal("a click changes no row: the test proves nothing")
		}
		note("rows")
		report, err := r.w.Restore(ctx, c)
		must(t, err)
		note("restore")
		t.Log(report.Split)
		if got := r.observe(browser.View{Elements: true}); !same(got, first) {
			t.Fatalf("the page is\n%+v\nwant\n%+v", got, first)
		}
		if got := r.fingerprint(); got != rows || !r.w.Now().Equal(now) {
			t.Fatalf("at %v the rows are\n%s\nat %v they were\n%s", r.w.Now(), got, now, rows)
		}
	}
	lap = time.Now()
	r.reset("a checkpoint")
	note("reset")
}

// The guest's own clocks go on where they stood when the world was saved, whatever has gone by since:
// the machine was halted then, so its clock is memory of the emulator like everything else.
func TestMachineClockGoesBack(t *testing.T) {
	t.Parallel()
	r := startMachine(t, worldtest.MiniImage(t))
	uptime := func() (seconds float64) {
		t.Helper()
		out, code, err := r.w.Exec(testContext(t), "cat", "/proc/uptime")
		if err != nil || code != 0 {
			t.Fatalf("%q %d %v", out, code, err)
		}
		if _, err := fmt.Sscan(out, &seconds); err != nil {
			t.Fatal(err)
		}
		return seconds
	}
	r.reset("the start")
	before := uptime()
	if out, code, err := r.w.Exec(testContext(t), "sleep", "10"); err != nil || code != 0 {
		t.Fatalf("%q %d %v", out, code, err)
	}
	later := uptime()
	if later < before+10 {
		t.Fatalf("ten seconds took %v: the test proves nothing", later-before)
	}
	r.reset("ten seconds")
	if again := uptime(); again >= later {
		t.Errorf("the guest was up for %v, %v later; after the reset %v", before, later-before, again)
	}
}
