package episode

import (
	"context"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

// Live is a running episode as the table sees it.
type Live interface {
	ID() string
	Step(ctx context.Context, action string, view browser.View) (*Result, error)
	Observe(ctx context.Context, view browser.View) (*browser.Observation, error)
	Checkpoint(ctx context.Context) (string, error)
	Restore(ctx context.Context, checkpoint string) (*Result, error)
	Forget(ctx context.Context, checkpoint string) error
	// End frees the world. Only the first call counts.
	End(reason string)
}

// Start waits at most wait for a free world and starts an episode in it.
type Start func(ctx context.Context, r Request, wait time.Duration) (Live, *Result, error)

// Limits of a Table; zero fields get the defaults.
type Limits struct {
	Lease    time.Duration // default lease, 60 s
	MaxLease time.Duration // 1 h
	Step     time.Duration // longest step, 60 s
	Reset    time.Duration // longest start of an episode beyond the wait for a world, 60 s
	Wait     time.Duration // default wait for a world, 60 s
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&l.Lease, time.Minute)
	set(&l.MaxLease, time.Hour)
	set(&l.Step, time.Minute)
	set(&l.Reset, time.Minute)
	set(&l.Wait, time.Minute)
	return l
}

// ResetCall is a Request from a caller that may vanish and retry.
type ResetCall struct {
	Request
	RequestID string
	Previous  string
	Wait      time.Duration // 0: default, negative: not at all
	Lease     time.Duration // 0: default
}

// Table holds episodes by id for callers that may vanish, retry and come late.
type Table struct {
	start  Start
	limits Limits

	mu       sync.Mutex
	closed   bool              // guarded by mu
	byID     map[string]*entry // guarded by mu
	requests map[string]*entry // guarded by mu: by ResetCall.RequestID
	gone     *tombstones       // guarded by mu
	changed  chan struct{}     // guarded by mu: closed and replaced when an episode ends
	running  sync.WaitGroup    // starts in progress
}

// entry is one episode in the table. Its turn orders the calls on it.
type entry struct {
	turn  chan struct{} // holds one token; taken for the length of a call
	ready chan struct{} // closed when the start has ended

	// Set before ready is closed.
	live  Live
	first *Result
	err   error
	lease time.Duration

	requestID string

	request Request

	// Owned by the holder of turn.
	total  float64
	over   bool
	last   *Result            // what the agent saw last, nil before the first step
	saved  map[string]float64 // total by checkpoint
	failed error              // why the episode is void
	call   numbered           // the last numbered call

	timer   *time.Timer // guarded by Table.mu
	expires time.Time   // guarded by Table.mu: when the timer fires
}

// NewTable makes a table that starts its episodes with start.
func NewTable(start Start, l Limits) *Table {
	return &Table{
		start: start, limits: l.withDefaults(),
		byID: map[string]*entry{}, requests: map[string]*entry{}, gone: newTombstones(4096), changed: make(chan struct{}),
	}
}

// Lease is the default lease.
func (t *Table) Lease() time.Duration { return t.limits.Lease }

// Len is the number of episodes held.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// Reset starts an episode, or returns the answer of the same request made before.
func (t *Table) Reset(ctx context.Context, c ResetCall) (*Result, error) {
	if c.Lease < 0 || c.Lease > t.limits.MaxLease {
		return nil, fault.New(fault.InvalidArgument, "lease %v is out of range: 0 to %v", c.Lease, t.limits.MaxLease)
	}
	if err := checkView(c.View); err != nil {
		return nil, err
	}
	e, owner, err := t.claim(c)
	if err != nil {
		return nil, err
	}
	if !owner {
		return e.wait(ctx)
	}
	if c.RequestID == "" {
		t.launch(ctx, e, c)
		return e.first, e.err
	}
	// The caller may retry with the same id, so its going away must not end the start.
	go t.launch(context.WithoutCancel(ctx), e, c)
	return e.wait(ctx)
}

func (e *entry) wait(ctx context.Context) (*Result, error) {
	select {
	case <-e.ready:
		return e.first, e.err
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Canceled, context.Cause(ctx), "wait for the episode to start")
	}
}

// claim finds the entry of a repeated request, or makes a new one that the caller must launch.
func (t *Table) claim(c ResetCall) (e *entry, owner bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false, fault.New(fault.Canceled, "the server is shutting down")
	}
	if c.RequestID != "" {
		if e := t.requests[c.RequestID]; e != nil {
			return e, false, nil
		}
	}
	e = &entry{turn: make(chan struct{}, 1), ready: make(chan struct{}), requestID: c.RequestID, lease: c.Lease, request: c.Request, saved: map[string]float64{}}
	if e.lease == 0 {
		e.lease = t.limits.Lease
	}
	if c.RequestID != "" {
		t.requests[c.RequestID] = e
	}
	t.running.Add(1)
	return e, true, nil
}

// launch starts the episode of e and opens it to calls.
func (t *Table) launch(ctx context.Context, e *entry, c ResetCall) {
	defer t.running.Done()
	defer close(e.ready)
	if c.Previous != "" {
		t.end(c.Previous, "closed")
	}
	wait := c.Wait
	if wait == 0 {
		wait = t.limits.Wait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, max(wait, 0)+t.limits.Reset,
		fault.New(fault.WorldLost, "the episode did not start within %v", max(wait, 0)+t.limits.Reset))
	defer cancel()
	e.live, e.first, e.err = t.start(ctx, c.Request, wait)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.err != nil:
		delete(t.requests, e.requestID)
	case t.closed:
		e.live.End("closed")
		e.first, e.err = nil, fault.New(fault.Canceled, "the server is shutting down")
	default:
		t.byID[e.live.ID()] = e
		e.expires = time.Now().Add(e.lease)
		e.timer = time.AfterFunc(e.lease, func() { t.expire(e) })
	}
}

// expire ends an episode whose caller fell silent. A call in progress renews the lease at its end.
func (t *Table) expire(e *entry) {
	select {
	case e.turn <- struct{}{}:
		t.end(e.live.ID(), "lease_expired")
		<-e.turn
	default:
	}
}

// end takes an episode out of the table and frees its world.
func (t *Table) end(id, reason string) {
	t.mu.Lock()
	e := t.byID[id]
	if e != nil {
		delete(t.byID, id)
		delete(t.requests, e.requestID)
		e.timer.Stop()
		t.gone.add(id, reason)
		close(t.changed)
		t.changed = make(chan struct{})
	}
	t.mu.Unlock()
	if e != nil {
		e.live.End(reason)
	}
}

// with runs f as the only call on the episode and renews its lease.
func (t *Table) with(ctx context.Context, id string, f func(e *entry) error) error {
	e, err := t.lookup(id)
	if err != nil {
		return err
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, context.Cause(ctx), "wait for the call before this one")
	}
	defer func() { <-e.turn }()
	if _, err := t.lookup(id); err != nil { // it may have been closed while this call waited
		return err
	}
	t.renew(e)
	defer t.renew(e)
	return f(e)
}

func (t *Table) lookup(id string) (*entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byID[id]; e != nil {
		return e, nil
	}
	switch reason, ok := t.gone.find(id); {
	case !ok:
		return nil, fault.New(fault.NotFound, "episode %q is not known", id).WithHint("call Reset to start one")
	case reason == "lease_expired":
		return nil, fault.New(fault.LeaseExpired, "episode %q was closed: its caller was silent for longer than the lease", id).
			WithHint("send heartbeats, or ask for a longer lease; then Reset")
	default:
		return nil, fault.New(fault.StaleEpisode, "episode %q was closed", id).WithHint("use the id of the newest Reset")
	}
}

func (t *Table) renew(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[e.live.ID()] == e {
		e.expires = time.Now().Add(e.lease)
		e.timer.Reset(e.lease)
	}
}

// Observe looks again without a step.
func (t *Table) Observe(ctx context.Context, id string, view browser.View) (*browser.Observation, error) {
	if err := checkView(view); err != nil {
		return nil, err
	}
	var o *browser.Observation
	err := t.with(ctx, id, func(e *entry) (err error) {
		ctx, cancel := context.WithTimeout(ctx, t.limits.Step)
		defer cancel()
		o, err = e.live.Observe(ctx, view)
		return err
	})
	return o, err
}

// Heartbeat renews the lease and returns its length. It does not wait for a call in progress.
func (t *Table) Heartbeat(_ context.Context, id string) (time.Duration, error) {
	e, err := t.lookup(id)
	if err != nil {
		return 0, err
	}
	t.renew(e)
	return e.lease, nil
}

// CloseEpisode frees the world of an episode. An id that is not held is no error.
func (t *Table) CloseEpisode(ctx context.Context, id string) error {
	err := t.with(ctx, id, func(*entry) error { t.end(id, "closed"); return nil })
	if k := fault.KindOf(err); k == fault.NotFound || k == fault.StaleEpisode || k == fault.LeaseExpired {
		return nil
	}
	return err
}

// Drain refuses new episodes and waits until those held have ended or ctx is done.
// Close ends what is left.
func (t *Table) Drain(ctx context.Context) error {
	for {
		t.mu.Lock()
		t.closed = true
		held, changed := len(t.byID), t.changed
		t.mu.Unlock()
		if held == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, context.Cause(ctx), "drain %d episodes", held)
		}
	}
}

// Close ends all episodes and waits for starts in progress.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	ids := make([]string, 0, len(t.byID))
	for id := range t.byID {
		ids = append(ids, id)
	}
	t.mu.Unlock()
	for _, id := range ids {
		t.end(id, "closed")
	}
	t.running.Wait()
}
