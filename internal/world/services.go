package world

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// Services are a world without its browser: database and application alone, to measure
// what it takes to put them back. They are no world for episodes.
type Services struct {
	w      *World
	driver Rewind
}

// benchTable is written to by Work.
const benchTable = "pommel_bench"

// workedBefore is how often they work before they are saved, so that what is only slow at
// first is in the past: an emulator translates programs as they run.
const workedBefore = 5

// StartServices starts and saves them, as a driver would that can put them back in place.
func StartServices(ctx context.Context, img *Image, driver Driver, progress func(string)) (_ *Services, err error) {
	d, ok := driver.(Rewind)
	if !ok {
		return nil, fault.New(fault.InvalidArgument, "driver %s cannot put services back by themselves", driver.Name()).WithHint("take rewind, or microvm where machines are emulated (%s=%s)", microvm.EngineVariable, microvm.Emulated)
	}
	if err := d.Available(ctx); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(string) {}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	o := startOptions{room: snapshotRoom}
	if d.machine {
		if o.template, err = img.machine(ctx, microvm.Emulated, progress); err != nil {
			return nil, err
		}
	}
	w := newWorld(img)
	defer func() {
		if err != nil {
			_ = w.Close()
		}
	}()
	if w.box, err = sandbox.Start(ctx, o.sandbox(img)); err != nil {
		return nil, err
	}
	go w.watchBox()
	if d.machine {
		err = w.startMachine(ctx, progress, o.template)
	} else {
		err = w.startServices(ctx, progress)
	}
	if err != nil {
		return nil, err
	}
	if err := w.connectJudge(ctx); err != nil {
		return nil, err
	}
	s := &Services{w, d}
	err = w.Setup(ctx, []postgres.Statement{
		{SQL: "CREATE TABLE " + benchTable + " (n int PRIMARY KEY, v int NOT NULL)"},
		{SQL: "INSERT INTO " + benchTable + " SELECT n, 0 FROM generate_series(1, 100) n"},
	})
	for range workedBefore {
		if err == nil {
			err = s.Work(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return s, s.save(ctx)
}

func (s *Services) save(ctx context.Context) (err error) {
	w := s.w
	release, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	feed, err := w.judge.State()
	if err != nil {
		return err
	}
	thaw, err := w.freeze(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, thaw()) }()
	w.saved = &saved{first: &Checkpoint{feed: feed, guestNow: w.guestNow()}}
	if _, err = w.box.Snapshot(ctx, sandbox.SnapshotOptions{Rearm: rearm}); err != nil {
		return fmt.Errorf("save the services of %s: %w", w.img.Spec.Name, err)
	}
	return w.judge.Confirm(feed)
}

func (s *Services) hold(ctx context.Context) (func(), error) {
	judge, err := s.w.judge.Hold(ctx)
	if err != nil {
		return nil, err
	}
	setup, err := s.w.setup.Hold(ctx)
	if err != nil {
		judge()
		return nil, err
	}
	return func() { setup(); judge() }, nil
}

// Work changes rows and has the application make its start page.
func (s *Services) Work(ctx context.Context) error {
	err := s.w.Setup(ctx, []postgres.Statement{{SQL: "UPDATE " + benchTable + " SET v = v + 1 WHERE n <= 10"}})
	if err != nil {
		return err
	}
	if err := s.w.box.Probe(ctx, sandbox.Probe{HTTP: s.w.img.Spec.Browser.StartURL, Timeout: 10 * time.Second}); err != nil {
		return err
	}
	_, err = s.w.judge.Changes(ctx)
	return err
}

// Reset puts them back and looks whether the rows are.
func (s *Services) Reset(ctx context.Context, verify bool) (ResetReport, error) {
	report := ResetReport{Driver: s.driver.Name(), Split: map[string]time.Duration{}, Verified: verify}
	began := time.Now()
	release, err := s.hold(ctx)
	if err != nil {
		return report, err
	}
	err = s.w.rewindBox(ctx, 0, &report)
	if err == nil && s.w.vm != nil {
		lap := lapper(&report)
		err = s.w.resumed(ctx, s.w.saved.first)
		lap("machine")
	}
	release()
	if err != nil {
		return report, err
	}
	if err := s.w.judge.Restored(ctx, s.w.saved.first.feed); err != nil {
		return report, err
	}
	report.Took = time.Since(began)
	for name, d := range parts(report.Rewind.Split) {
		report.Split["rewind."+name] = d
	}
	rows, err := s.w.judge.Query(ctx, "SELECT max(v)::text FROM public."+benchTable)
	if err == nil && *rows.Text[0][0] != strconv.Itoa(workedBefore) {
		err = errors.New("the rows are not what they were")
	}
	return report, err
}

// Driver is the name of the driver that puts them back.
func (s *Services) Driver() string { return s.driver.Name() }

// Info looks at the processes.
func (s *Services) Info() Info { return s.w.Info() }

// Close ends them.
func (s *Services) Close() error { return s.w.Close() }
