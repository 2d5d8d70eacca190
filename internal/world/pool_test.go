package world

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
)

// fakeDriver makes worlds without processes: the pool is what is tested here.
type fakeDriver struct {
	broken  atomic.Bool
	running atomic.Int32 // starts and resets under way
	most    atomic.Int32
	gate    chan struct{} // a start takes one, if set
}

func (d *fakeDriver) Name() string                    { return "fake" }
func (d *fakeDriver) Available(context.Context) error { return nil }

func (d *fakeDriver) Start(ctx context.Context, img *Image, _ func(string)) (*World, error) {
	n := d.running.Add(1)
	defer d.running.Add(-1)
	for m := d.most.Load(); n > m && !d.most.CompareAndSwap(m, n); m = d.most.Load() {
	}
	if d.gate != nil {
		select {
		case <-d.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if d.broken.Load() {
		return nil, errors.New("no luck")
	}
	return newWorld(img), nil
}

func (d *fakeDriver) Reset(ctx context.Context, w *World) (*World, ResetReport, error) {
	_ = w.Close()
	fresh, err := d.Start(ctx, w.img, nil)
	return fresh, ResetReport{Driver: "fake"}, err
}

func fakePool(t *testing.T, d *fakeDriver, o PoolOptions) *Pool {
	t.Helper()
	p, err := NewPool(deadline(t), &Image{Spec: &Spec{Name: "fake"}}, d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestPoolHandsOutAndTakesBack(t *testing.T) {
	t.Parallel()
	p := fakePool(t, &fakeDriver{}, PoolOptions{Size: 2})
	a, err := p.Acquire(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Acquire(deadline(t))
	if err != nil || a == b {
		t.Fatal(a == b, err)
	}
	if _, err := p.TryAcquire(); fault.KindOf(err) != fault.ResourceExhausted || fault.HintOf(err) == "" {
		t.Errorf("none is free: %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(deadline(t), time.Millisecond, fault.New(fault.ResourceExhausted, "too long"))
	defer cancel()
	if _, err := p.Acquire(ctx); fault.KindOf(err) != fault.ResourceExhausted {
		t.Errorf("the cause's kind: %v", err)
	}
	gone, cancel := context.WithCancel(deadline(t))
	cancel()
	if _, err := p.Acquire(gone); fault.KindOf(err) != fault.Canceled {
		t.Errorf("the caller went: %v", err)
	}
	p.Release(a)
	p.Release(a) // counts once
	c, err := p.Acquire(deadline(t))
	if err != nil || c == a || c == b {
		t.Fatal("a used world came back as it was", err)
	}
	p.Release(b)
	p.Release(c)
	if err := p.Settled(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

func TestPoolSettledSeesTheReset(t *testing.T) {
	t.Parallel()
	p := fakePool(t, &fakeDriver{}, PoolOptions{Size: 1})
	for i := range 20 {
		w, err := p.Acquire(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		p.Release(w)
		if w, err = p.Acquire(deadline(t)); err != nil {
			t.Fatal(err)
		}
		if got := p.Stats().Resets; got != 2*i+1 {
			t.Fatalf("%d resets, want %d", got, 2*i+1)
		}
		p.Release(w)
	}
}

func TestPoolBoundsStarts(t *testing.T) {
	t.Parallel()
	d := &fakeDriver{gate: make(chan struct{})}
	go func() {
		for range 16 {
			d.gate <- struct{}{}
		}
	}()
	p := fakePool(t, d, PoolOptions{Size: 16, Starts: 3})
	if err := p.Settled(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if got := d.most.Load(); got > 3 {
		t.Errorf("%d starts at once, want 3 at most", got)
	}
}

func TestPoolReplacesTheLost(t *testing.T) {
	t.Parallel()
	p := fakePool(t, &fakeDriver{}, PoolOptions{Size: 1})
	idle := p.Worlds()
	for len(idle) == 0 {
		if err := p.Settled(deadline(t)); err != nil {
			t.Fatal(err)
		}
		idle = p.Worlds()
	}
	idle[0].lose(errors.New("it fell"))
	w, err := p.Acquire(deadline(t))
	for err == nil && w == idle[0] { // it may have been on its way out already
		p.Release(w)
		w, err = p.Acquire(deadline(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.lose(errors.New("it fell in use"))
	p.Release(w)
	if _, err := p.Acquire(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Lost != 2 {
		t.Errorf("%+v", s)
	}
}

func TestPoolThatCannotStartSaysSo(t *testing.T) {
	t.Parallel()
	d := &fakeDriver{}
	d.broken.Store(true)
	if _, err := NewPool(deadline(t), &Image{Spec: &Spec{Name: "fake"}}, d, PoolOptions{}); err == nil {
		t.Fatal("no error")
	}
	d.broken.Store(false)
	p := fakePool(t, d, PoolOptions{Size: 1})
	w, err := p.Acquire(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	d.broken.Store(true)
	p.Release(w)
	if _, err := p.Acquire(deadline(t)); fault.KindOf(err) != fault.ResourceExhausted {
		t.Fatalf("got %v", err)
	}
	d.broken.Store(false)
	// It goes on trying by itself.
	for {
		w, err := p.Acquire(deadline(t))
		if err == nil {
			p.Release(w)
			break
		}
		if fault.KindOf(err) != fault.ResourceExhausted {
			t.Fatal(err)
		}
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		<-changed
	}
	if s := p.Stats(); s.Failures < 1 || s.LastError == "" {
		t.Errorf("%+v", s)
	}
}

func TestPoolCloseEndsAll(t *testing.T) {
	t.Parallel()
	p := fakePool(t, &fakeDriver{}, PoolOptions{Size: 3})
	used, err := p.Acquire(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() {
		for {
			if _, err := p.Acquire(context.Background()); err != nil {
				waits <- err
				return
			}
		}
	}()
	if err := p.Settled(deadline(t)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	<-used.Lost()
	if err := <-waits; fault.KindOf(err) != fault.Canceled {
		t.Errorf("got %v", err)
	}
	p.Release(used)
	if _, err := p.TryAcquire(); fault.KindOf(err) != fault.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestPoolUnderLoad(t *testing.T) {
	t.Parallel()
	p := fakePool(t, &fakeDriver{}, PoolOptions{Size: 4})
	var held sync.Map
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				w, err := p.Acquire(deadline(t))
				if err != nil {
					t.Error(err)
					return
				}
				if _, twice := held.LoadOrStore(w, true); twice {
					t.Error("one world in two hands")
				}
				p.Release(w)
			}
		})
	}
	wg.Wait()
}
