package world

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// PoolOptions say how a pool works.
type PoolOptions struct {
	// Size is how many worlds there are; 0 means 1.
	Size int
	// Starts is how many may be started or reset at once; 0 is one a processor core.
	Starts int
	// Log receives failed starts and lost worlds. Nil is silence.
	Log *slog.Logger
	// Progress, if set, is told about the first start.
	Progress func(stage string)
}

// Pool keeps worlds ready. Each world has a slot, whose goroutine starts it, hands it
// out, resets it when it comes back and replaces it when it is lost. A Pool may be used by
// many goroutines.
type Pool struct {
	img    *Image
	driver Driver
	log    *slog.Logger
	size   int

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	starts chan struct{} // one token a start
	wants  chan *want    // taken by any slot
	direct []chan *want  // by slot: what only that one should take
	wg     sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}            // guarded by mu; closed and replaced at each change of a slot
	slots   []slot                   // guarded by mu
	taken   map[*World]chan struct{} // guarded by mu; closed by Release
	stats   Stats                    // guarded by mu
}

type slotState int

const (
	starting slotState = iota
	waiting            // after a failed start
	ready
	inUse
)

type slot struct {
	state slotState
	world *World
	err   error // of the last start
}

// Stats count what a pool has done, and what it is doing.
type Stats struct {
	Size     int `json:"size"`
	Ready    int `json:"ready"`
	InUse    int `json:"in_use"`
	Starting int `json:"starting"`
	// Failing slots wait before they try again.
	Failing int `json:"failing"`
	Starts  int `json:"starts"`
	Resets  int `json:"resets"`
	// SlowPaths are resets that had to start afresh; Failures are failed starts and resets;
	// Lost are worlds that died.
	SlowPaths int `json:"slow_paths"`
	Failures  int `json:"failures"`
	Lost      int `json:"lost"`
	// Verified are resets after which the world was compared with its snapshot byte for byte.
	Verified int `json:"verified"`
	// LastReset is the latest report.
	LastReset ResetReport `json:"last_reset"`
	LastError string      `json:"last_error,omitempty"`
}

// NewPool starts worlds and returns when the first is ready; the others follow behind
// it. When no world can be started it returns the reason.
func NewPool(ctx context.Context, img *Image, driver Driver, o PoolOptions) (*Pool, error) {
	if o.Size <= 0 {
		o.Size = 1
	}
	if o.Starts <= 0 {
		o.Starts = runtime.NumCPU()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	// Groups of servers that were killed are cleared away by the next one.
	if err := sandbox.Sweep(); err != nil {
		o.Log.Warn("sweep", "error", err)
	}
	p := &Pool{
		img: img, driver: driver, log: o.Log, size: o.Size,
		starts: make(chan struct{}, o.Starts), wants: make(chan *want), direct: make([]chan *want, o.Size),
		changed: make(chan struct{}), slots: make([]slot, o.Size), taken: map[*World]chan struct{}{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	first, err := p.start(ctx, o.Progress)
	if err != nil {
		p.cancel()
		return nil, err
	}
	for i := range o.Size {
		p.direct[i] = make(chan *want)
	}
	for i := range o.Size {
		p.wg.Add(1)
		go (&keeping{p: p, i: i, w: first, clean: true}).serve()
		first = nil
	}
	return p, nil
}

// Acquire hands out a ready world, waiting for one until ctx ends. When no world can be
// started at all it says so at once instead.
func (p *Pool) Acquire(ctx context.Context) (*World, error) { return p.AcquireAt(ctx, "") }

// AcquireAt is Acquire for an episode that may have begun before: a world that keeps its
// start is preferred and stands at it when it is handed out. See World.Started.
func (p *Pool) AcquireAt(ctx context.Context, key string) (*World, error) {
	for {
		changed, err := p.hopeless()
		if err != nil {
			return nil, err
		}
		r := &want{key: key, world: make(chan *World), gone: ctx.Done()}
		if !p.askOwner(r) {
			select {
			case p.wants <- r:
			case <-changed:
				continue
			case <-p.ctx.Done():
				return nil, errPoolClosed()
			case <-ctx.Done():
				return nil, p.noWorld(ctx)
			}
		}
		select {
		case w := <-r.world:
			if w != nil {
				return w, nil
			}
		case <-p.ctx.Done():
			return nil, errPoolClosed()
		case <-ctx.Done():
			return nil, p.noWorld(ctx)
		}
	}
}

// askOwner asks the slot whose world keeps the wanted start, if it is free.
func (p *Pool) askOwner(r *want) bool {
	for _, c := range p.owners(r.key) {
		select {
		case c <- r:
			return true
		default:
		}
	}
	return false
}

func (p *Pool) owners(key string) (out []chan *want) {
	if key == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if s := &p.slots[i]; s.world != nil && s.state != inUse && s.world.hasStart(key) {
			out = append(out, p.direct[i])
		}
	}
	return out
}

// TryAcquire hands out a world that is free now.
func (p *Pool) TryAcquire() (*World, error) {
	r := &want{world: make(chan *World), gone: p.ctx.Done()}
	select {
	case p.wants <- r:
		select {
		case w := <-r.world:
			if w != nil {
				return w, nil
			}
		case <-p.ctx.Done():
		}
	default:
	}
	if p.ctx.Err() != nil {
		return nil, errPoolClosed()
	}
	if _, err := p.hopeless(); err != nil {
		return nil, err
	}
	s := p.Stats()
	return nil, fault.New(fault.ResourceExhausted, "no world is free: %d of %d in use, %d starting", s.InUse, s.Size, s.Starting).
		WithHint("try again, or start the server with more worlds")
}

func errPoolClosed() error { return fault.New(fault.Canceled, "the pool is closed") }

// noWorld explains why the wait was in vain. A fault that the caller gave its context as
// cause stays what it is.
func (p *Pool) noWorld(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) {
		return fault.Wrap(fault.Canceled, cause, "wait for a world")
	}
	s := p.Stats()
	if s.LastError != "" && s.Failing > 0 {
		return fault.Wrap(fault.ResourceExhausted, cause, "no world came free; %d of %d cannot be started: %s", s.Failing, s.Size, s.LastError)
	}
	return fault.Wrap(fault.ResourceExhausted, cause, "no world came free: %d of %d in use, %d starting", s.InUse, s.Size, s.Starting)
}

// hopeless says that every slot failed to start; otherwise it returns what to wait on.
func (p *Pool) hopeless() (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		if s.state != waiting {
			return p.changed, nil
		}
	}
	return nil, fault.Wrap(fault.ResourceExhausted, p.slots[0].err, "no world can be started; the pool goes on trying")
}

// Release gives a world back; it is reset behind the caller's back. Only the first call counts.
func (p *Pool) Release(w *World) {
	p.mu.Lock()
	defer p.mu.Unlock()
	back := p.taken[w]
	if back == nil {
		return
	}
	delete(p.taken, w)
	close(back)
	// Who waits for worlds to be ready from now on waits for this one too.
	for i := range p.slots {
		if p.slots[i].world == w {
			p.slots[i].state = starting
		}
	}
}

// Close ends all worlds, those in use too, and waits until they are gone.
func (p *Pool) Close() error {
	p.cancel()
	p.wg.Wait()
	return nil
}

// Settled waits until no world is being started or reset.
func (p *Pool) Settled(ctx context.Context) error {
	for {
		p.mu.Lock()
		changed, busy := p.changed, false
		for _, s := range p.slots {
			busy = busy || s.state == starting
		}
		p.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return errPoolClosed()
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, context.Cause(ctx), "wait for worlds to start")
		}
	}
}

// Stats are the counts now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Size = len(p.slots)
	for _, sl := range p.slots {
		switch sl.state {
		case starting:
			s.Starting++
		case waiting:
			s.Failing++
		case ready:
			s.Ready++
		case inUse:
			s.InUse++
		}
	}
	return s
}

// Worlds are those that are up now.
func (p *Pool) Worlds() []*World {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*World
	for _, s := range p.slots {
		if s.world != nil && (s.state == ready || s.state == inUse) {
			out = append(out, s.world)
		}
	}
	return out
}

func (p *Pool) noteReset(report ResetReport, err error) {
	p.count(func(s *Stats) {
		s.Resets++
		s.LastReset = report
		if report.Verified {
			s.Verified++
		}
		if report.SlowPath {
			s.SlowPaths++
		}
		if err != nil {
			s.Failures++
			s.LastError = err.Error()
		}
	})
	if report.SlowPath && p.ctx.Err() == nil {
		p.log.Warn("world replaced", "world", p.img.Spec.Name, "reason", report.Reason)
	}
}

// failed reports a failed start and waits before the next.
func (p *Pool) failed(i int, err error, pause time.Duration) {
	if p.ctx.Err() != nil {
		return
	}
	p.count(func(s *Stats) { s.Failures++; s.LastError = err.Error() })
	p.log.Error("start failed", "world", p.img.Spec.Name, "again_in", pause, "error", err)
	p.set(i, waiting, nil, err)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

func (p *Pool) set(i int, state slotState, w *World, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots[i] = slot{state: state, world: w, err: err}
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Pool) count(f func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.stats)
}
