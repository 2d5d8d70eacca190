// Package browser drives one Chromium for one agent: it acts with trusted input,
// lets the page settle in virtual time, and reads what a user would see.
//
// A Browser is made from a connection; whoever started the process keeps it. Page
// time is virtual and stands still between calls, so however long the agent thinks,
// nothing happens. A step is
//
//	outcome, err := b.Do(ctx, calls)      // never fails for a bad action
//	obs, err := b.Observe(ctx, View{})
//
// # Concurrency
//
// Calls on one Browser are serialised; several goroutines may share it.
//
// # Failure
//
// What the agent did wrong is in Outcome.Err. A Go error means that the browser is
// gone or useless (fault.WorldLost) or that the caller's context ended.
package browser

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/cdp"
	"github.com/pommelgym/pommel/internal/fault"
)

// Config says how pages look and how long a step may take.
type Config struct {
	// Seed feeds Math.random and crypto of every page; Epoch is the page's time at the
	// start of the episode. SetEpisode changes both.
	Seed  uint64
	Epoch time.Time
	// Width and Height are the viewport in CSS pixels, Scale is image pixels per CSS pixel.
	Width, Height int
	Scale         float64
	Locale        string
	Timezone      string
	// Allow lists the origins that pages may go to; nil allows every http and https origin.
	Allow []string

	// Horizon is how far ahead, in virtual time, a step waits for timers of the page.
	Horizon time.Duration
	// ActionWait bounds, in virtual time, the wait for an element that is disabled or covered.
	ActionWait time.Duration
	// Cap bounds, in real time, the wait for requests after an action.
	Cap time.Duration
	// NavigationCap bounds, in real time, the wait for a document to load.
	NavigationCap time.Duration
	// Watchdog is how long, in real time, one task of the page may run before it is ended.
	Watchdog time.Duration

	// Proof makes every observation a second time with nothing remembered from the one
	// before, and fails if the two differ. It is for tests: it doubles what a look costs.
	Proof bool

	// UploadDir holds the files that upload_file may use, DownloadDir takes what pages
	// download; both are paths as the browser's process sees them. Empty: refused.
	UploadDir, DownloadDir string
}

// withDefaults fills in what was left zero.
func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Horizon, time.Second)
	def(&c.ActionWait, 5*time.Second)
	def(&c.Cap, 2*time.Second)
	def(&c.NavigationCap, 15*time.Second)
	def(&c.Watchdog, 5*time.Second)
	if c.Width <= 0 || c.Height <= 0 {
		c.Width, c.Height = 1280, 720
	}
	if c.Scale <= 0 {
		c.Scale = 1
	}
	if c.Locale == "" {
		c.Locale = "en-US"
	}
	if c.Timezone == "" {
		c.Timezone = "UTC"
	}
	if c.Epoch.IsZero() {
		c.Epoch = time.Date(2025, 1, 1, 9, 0, 0, 0, time.UTC)
	}
	return c
}

// Browser is one Chromium under control.
type Browser struct {
	conn *cdp.Conn
	root *cdp.Session
	cfg  Config
	// secret names the events between the page's world and ours; no page can guess it.
	secret string
	allow  map[string]bool

	// turn serialises the public calls: the page has one mouse, one clock and one focus.
	turn chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when anything below changes
	closed  bool          // guarded by mu
	shared                // guarded by mu

	own   // only touched by the holder of turn
	stats Stats
	looks int64 // observations so far; no rewind takes it back
}

// shared is what the reader of events and the calls both change. Nothing in it may refer
// to what a rewound browser would not know again: Save and Restore copy it whole.
type shared struct {
	tabs      []*page // in order of opening
	active    *page
	fresh     *page               // opened during this step
	newTabs   []attached          // waiting to be set up
	blocked   []string            // URLs that a rule stopped in this step
	notes     []string            // of this step
	loads     map[string]download // under way
	wanted    string              // the URL of the window that a page has asked for
	downloads int                 // begun so far
	now       episode             // windows that open in a step need it
	clockless bool                // the renderer's clock has yet to be stopped
	orphaned  bool                // a tab has closed
	tabSeq    int
	opening   int  // tabs that we are making ourselves
	expecting int  // windows that pages have asked for
	settingUp bool // new tabs are being set up

	friction Friction
	paused   []paused      // requests that wait for a decision
	deciding bool          // one is being decided about
	holdings []holding     // requests that virtual time holds back
	lag      time.Duration // that documents have taken, and that has still to pass
	at       float64       // virtual ms of the episode when the clock last stood still
}

// own is what only calls change. Save and Restore copy it whole.
type own struct {
	virtual  float64 // virtual ms since Open
	start    float64 // virtual at SetEpisode
	raw      float64 // the page's unpatched Date.now() at SetEpisode
	mouse    point
	torn     bool // a call was given up in the middle
	last     lastStep
	held     string // the mouse button that mouse_down holds
	heldKeys int    // modifiers that keyboard_down holds
}

// lastStep is what an observation says about the step before it.
type lastStep struct {
	action string
	err    *action.Error
}

// Stats counts what a browser has done.
type Stats struct {
	Steps       int64
	Frames      int64
	Screenshots int64
	Navigations int64
	Watchdogs   int64
	Capped      int64
	CDP         cdp.Stats
}

// Open takes control of a browser that was started with Flags, and leaves it with
// one blank tab, its clock stopped.
func Open(ctx context.Context, conn *cdp.Conn, cfg Config) (*Browser, error) {
	b := &Browser{
		conn:    conn,
		root:    conn.Session(""),
		cfg:     cfg.withDefaults(),
		turn:    make(chan struct{}, 1),
		changed: make(chan struct{}),
		shared:  shared{loads: map[string]download{}},
	}
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, fmt.Errorf("draw secret: %w", err)
	}
	b.secret = "x" + hex.EncodeToString(key[:])
	if err := b.setAllow(); err != nil {
		return nil, err
	}
	b.root.Handle(b.onRoot)
	go b.setUpTabs()
	if err := b.open(ctx); err != nil {
		b.stop()
		return nil, lost(err, "open browser")
	}
	return b, nil
}

func (b *Browser) setAllow() error {
	if b.cfg.Allow == nil {
		return nil
	}
	b.allow = map[string]bool{}
	for _, o := range b.cfg.Allow {
		host, port, err := splitOrigin(o)
		if err != nil {
			return fault.Wrap(fault.InvalidArgument, err, "browser settings")
		}
		scheme := "http"
		if len(o) > 5 && o[:5] == "https" {
			scheme = "https"
		}
		b.allow[originKey(scheme, host, port)] = true
	}
	return nil
}

// open makes the tab in which episodes begin. Frames on demand can only be had for
// targets made by us, so the browser's first tab is closed.
func (b *Browser) open(ctx context.Context) error {
	filter := []map[string]any{{"type": "page"}}
	err := b.root.Call(ctx, "Target.setAutoAttach", map[string]any{
		"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": filter,
	}, nil)
	if err != nil {
		return err
	}
	if b.cfg.DownloadDir != "" {
		err := b.root.Call(ctx, "Browser.setDownloadBehavior", map[string]any{
			"behavior": "allow", "downloadPath": b.cfg.DownloadDir, "eventsEnabled": true,
		}, nil)
		if err != nil {
			return err
		}
	} else if err := b.root.Call(ctx, "Browser.setDownloadBehavior", map[string]any{"behavior": "deny", "eventsEnabled": true}, nil); err != nil {
		return err
	}
	p, err := b.newTab(ctx)
	if err != nil {
		return err
	}
	if err := b.closeOthers(ctx, p); err != nil {
		return err
	}
	if err := p.firstFrame(ctx); err != nil {
		return err
	}
	if err := b.readClock(ctx, p); err != nil {
		return err
	}
	return p.replaceScript(ctx)
}

// readClock notes where the page's real clock stands, which SetEpisode's epoch is laid upon.
func (b *Browser) readClock(ctx context.Context, p *page) error {
	var now float64
	if err := p.evalAgent(ctx, "Date.now()", &now); err != nil {
		return fmt.Errorf("read clock: %w", err)
	}
	b.start = b.virtual
	b.setClock(b.cfg.Seed, b.cfg.Epoch, now)
	return nil
}

// silence is how long a call may go without the browser getting anywhere. Everything
// that a page may take its time for has a bound of its own, far below.
const silence = 60 * time.Second

var errSilent = errors.New("the browser does not answer")

// episode is what the init scripts of new documents are made from.
type episode struct {
	seed  uint64
	epoch int64   // ms
	raw   float64 // the page's own Date.now() at the epoch
}

func (b *Browser) setClock(seed uint64, epoch time.Time, raw float64) {
	b.raw = raw
	b.read(func() { b.now = episode{seed: seed, epoch: epoch.UnixMilli(), raw: raw} })
}

// lock takes the turn. The returned context bounds the call, and the function gives the
// turn back.
func (b *Browser) lock(ctx context.Context) (context.Context, func(), error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, lost(context.Cause(ctx), "wait for the browser")
	}
	if err := b.conn.Err(); err != nil {
		<-b.turn
		return nil, nil, lost(err, "use browser")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, silence, errSilent)
	if b.torn {
		b.mend(ctx)
	}
	return ctx, func() { cancel(); <-b.turn }, nil
}

// mend waits until the browser is done with what a call that was given up had asked for.
func (b *Browser) mend(ctx context.Context) {
	p, err := b.tab(ctx)
	if err != nil {
		return
	}
	p.s.Send("Emulation.setVirtualTimePolicy", json.RawMessage(`{"policy":"pause"}`))
	var now float64
	if p.evalAgent(ctx, "Date.now()", &now) == nil {
		b.virtual = now - b.raw + b.start
		b.torn = false
	}
}

// Close ends control. The process ends when its pipe ends, which is the business of
// whoever started it.
func (b *Browser) Close() error {
	b.stop()
	return b.conn.Close()
}

func (b *Browser) stop() {
	b.update(func() { b.closed = true })
	b.root.Handle(nil)
}

// Stats returns the counters so far.
func (b *Browser) Stats(ctx context.Context) (Stats, error) {
	_, unlock, err := b.lock(ctx)
	if err != nil {
		return Stats{}, err
	}
	defer unlock()
	s := b.stats
	s.CDP = b.conn.Stats()
	return s, nil
}

// update changes what mu guards and wakes everybody who waits for a change.
func (b *Browser) update(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

// read looks at what mu guards.
func (b *Browser) read(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// until waits for a condition on what mu guards; cond is called with mu held.
func (b *Browser) until(ctx context.Context, what string, cond func() bool) error {
	for {
		b.mu.Lock()
		ok, changed := cond(), b.changed
		b.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-b.conn.Done():
			return fmt.Errorf("%s: %w", what, b.conn.Err())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
	}
}

// lost turns a failure of the machinery into the fault that a caller acts on.
func lost(err error, doing string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(fault.Canceled, err, "%s", doing)
	}
	return fault.Wrap(fault.WorldLost, err, "%s", doing)
}
