package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/rewind"
)

// Checkpoint is a saved state of a world: that of all its processes and files, and what
// this side knows of the browser and of the row changes. Any number of them make a tree of
// states. It belongs to one world and ends with it, and at the latest with its next reset.
type Checkpoint struct {
	number  int // the keeper's
	browser *browser.State
	// feed is nil where the application wrote while the world was being saved.
	feed *postgres.FeedState
	// guestNow is the instant that the services of a machine read.
	guestNow time.Time
}

const (
	// activeTries is how often a world in which rows are being written is saved again.
	activeTries = 5
	// checkpointQuiet bounds the wait for processes to become quiet: an agent waits for it.
	checkpointQuiet = 2 * time.Second
)

// Checkpoint saves the state of now. An error of kind unsupported says that the world
// cannot be saved, or not in this state; it goes on as if nothing had been asked.
func (w *World) Checkpoint(ctx context.Context) (*Checkpoint, error) {
	if err := w.savable(); err != nil {
		return nil, err
	}
	if err := w.Cause(); err != nil {
		return nil, err
	}
	// Once begun it is finished: a state that nobody knows of would be kept for nothing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rewindTimeout)
	defer cancel()
	for try := 1; ; try++ {
		c, err := w.checkpoint(ctx)
		switch {
		case errors.Is(err, postgres.ErrActive) && try < activeTries:
		case errors.Is(err, postgres.ErrActive):
			return nil, &fault.Error{Kind: fault.Unsupported, Msg: "the world cannot be saved now", Hint: "try again when the application is at rest", Err: err}
		case err != nil:
			return nil, err
		default:
			return c, nil
		}
	}
}

func (w *World) savable() error {
	switch {
	case w.saved == nil:
		return fault.New(fault.Unsupported, "the driver of this world cannot save its state").WithHint("use --driver rewind; `pommel doctor` says what it needs")
	case w.saved.refused != nil:
		return fault.Wrap(fault.Unsupported, w.saved.refused, "this world cannot be saved")
	}
	return nil
}

func (w *World) checkpoint(ctx context.Context) (_ *Checkpoint, err error) {
	// All row changes until now are fetched, so that none is on its way.
	if _, err := w.judge.Changes(ctx); err != nil {
		return nil, err
	}
	held, err := w.hold(ctx)
	if err != nil {
		return nil, w.unheld(ctx, err)
	}
	defer held.release()
	feed, err := w.judge.State()
	if err != nil {
		return nil, err
	}
	thaw, err := w.freeze(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, thaw()) }()
	s, err := w.box.Checkpoint(ctx, sandbox.SnapshotOptions{Quiet: checkpointQuiet})
	if err != nil {
		return nil, w.unsaved(ctx, err)
	}
	w.saved.kept = s.Kept
	w.saved.taken[s.Number] = true
	c := &Checkpoint{number: s.Number, browser: held.browser.Save(), feed: feed, guestNow: w.guestNow()}
	if err := w.judge.Confirm(feed); err != nil {
		w.Forget(ctx, c)
		return nil, err
	}
	limit, took := w.saved.limit, w.Kept()
	for crowded := s.Crowded; crowded || w.Kept() > limit; crowded = false {
		if old := w.saved.starts.drop(); old != nil {
			w.Forget(ctx, old)
			continue
		}
		w.Forget(ctx, c)
		if crowded {
			return nil, fault.New(fault.ResourceExhausted, "the checkpoints of this world would hold too many files open").WithHint("forget some first")
		}
		return nil, fault.New(fault.ResourceExhausted, "the checkpoints of this world would take %d MiB, more than the %d they may", took>>20, limit>>20).
			WithHint("forget some first, or give the world more (CheckpointMB)")
	}
	return c, nil
}

// unheld explains why a world did not come to rest.
func (w *World) unheld(ctx context.Context, err error) error {
	if lost := w.Check(ctx); lost != nil {
		return lost
	}
	return &fault.Error{Kind: fault.Unsupported, Msg: "the world cannot be saved now: it did not come to rest", Err: err}
}

// unsaved tells a world that goes on from one that does not.
func (w *World) unsaved(ctx context.Context, err error) error {
	var needs *rewind.NeedsRespawnError
	switch {
	case errors.Is(err, rewind.ErrRefused):
		return fault.Wrap(fault.Unsupported, err, "the world cannot be saved now")
	case errors.As(err, &needs):
		w.lose(fault.Wrap(fault.WorldLost, err, "save the world"))
		return w.Cause()
	case ctx.Err() != nil:
		return fault.Wrap(fault.Canceled, context.Cause(ctx), "save the world")
	}
	return fault.Wrap(fault.WorldLost, err, "save the world")
}

// Restore puts the world back to a checkpoint, in place. When that fails the world is lost.
func (w *World) Restore(ctx context.Context, c *Checkpoint) (ResetReport, error) {
	report := ResetReport{Split: map[string]time.Duration{}}
	if err := w.savable(); err != nil {
		return report, err
	}
	report.Driver = w.saved.driver
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rewindTimeout)
	defer cancel()
	began := time.Now()
	err := w.rewindTo(ctx, c, w.saved.verifyEvery, &report)
	report.Took = time.Since(began)
	if err != nil {
		report.SlowPath, report.Reason = true, reasonOf(err)
		w.lose(fault.Wrap(fault.WorldLost, err, "the world could not be put back"))
		return report, w.Cause()
	}
	return report, nil
}

// Forget frees checkpoints. What cannot be freed ends with the world.
func (w *World) Forget(ctx context.Context, list ...*Checkpoint) {
	if len(list) == 0 || w.saved == nil {
		return
	}
	var numbers []int
	for _, c := range list {
		numbers = append(numbers, c.number)
		delete(w.saved.taken, c.number)
	}
	w.forget(ctx, numbers)
}

// forgetAll frees what an episode has left.
func (w *World) forgetAll(ctx context.Context) {
	if len(w.saved.taken) > 0 {
		w.forget(ctx, slices.Collect(maps.Keys(w.saved.taken)))
		clear(w.saved.taken)
	}
}

func (w *World) forget(ctx context.Context, numbers []int) {
	if kept, err := w.box.Forget(ctx, numbers...); err == nil {
		w.saved.kept = kept
	}
}

// Kept is how many bytes the checkpoints of the world take, the first snapshot left out.
func (w *World) Kept() int64 {
	if w.saved == nil {
		return 0
	}
	return w.saved.kept - w.saved.base
}

// rewindTo puts the processes back and then this side of each connection with them.
func (w *World) rewindTo(ctx context.Context, c *Checkpoint, verifyEvery int, report *ResetReport) error {
	if err := w.rewindable(ctx); err != nil {
		return err
	}
	lap := lapper(report)
	held, err := w.hold(ctx)
	if err != nil {
		return err
	}
	lap("hold")
	held.browser.Forget()
	w.saved.resets++
	report.Verified = verifyEvery > 0 && w.saved.resets%verifyEvery == 0
	err = w.rewindBox(ctx, c.number, report)
	lap("rewind")
	if r := report.Rewind; r != nil {
		for name, d := range parts(r.Split) {
			report.Split["rewind."+name] = d
		}
	}
	if err != nil {
		held.release()
		return err
	}
	if w.vm != nil {
		if err := w.resumed(ctx, c); err != nil {
			held.release()
			return err
		}
		lap("machine")
	}
	// The browser takes a while to answer; the database is put back meanwhile.
	answer := make(chan error, 1)
	go func() {
		err := held.browser.Restore(ctx, c.browser)
		held.browser.Release()
		answer <- err
	}()
	held.releaseConnections()
	err = w.restoreFeed(ctx, c)
	lap("judge")
	if lost := <-answer; lost != nil {
		return lost
	}
	lap("browser")
	if err != nil {
		return err
	}
	if w.vm != nil {
		return w.hostCause()
	}
	return w.settledCause()
}

func (w *World) restoreFeed(ctx context.Context, c *Checkpoint) error {
	if c.feed != nil {
		return w.judge.Restored(ctx, c.feed)
	}
	if err := w.judge.Rewound(ctx); err != nil {
		return fmt.Errorf("put the judge back: %w", err)
	}
	return w.judge.Mark(ctx)
}
