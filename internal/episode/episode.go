package episode

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/perturb/profile"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/reward"
	"github.com/pommelgym/pommel/internal/task"
	"github.com/pommelgym/pommel/internal/trace"
	"github.com/pommelgym/pommel/internal/world"
)

// World is what an episode needs of a running world.
type World interface {
	Browser() *browser.Browser
	// Reader is the judge's connection; Setup runs a task's setup as the application's role.
	Reader() postgres.Reader
	Setup(ctx context.Context, statements []postgres.Statement) error
	// StartURL is the world's start page; Epoch the instant at which its episodes start.
	StartURL() string
	Epoch() time.Time
	// BeginEpisode sets the clock and the seed of the world's programs, and Advance lets the
	// clock go on. Reproducible says why an episode in it need not come out like the same one
	// in another world, or nil. Unstall lets the
	// clock go on by itself if what is done until the function that it returns is called
	// waits for it; that answers by how much it did.
	BeginEpisode(ctx context.Context, at time.Time, seed uint64) error
	Advance(to time.Time) error
	Reproducible() error
	Unstall() func() time.Duration
	// Lost is closed when a process of the world has died; Cause says which.
	Lost() <-chan struct{}
	Cause() error
	// Check asks the world's keeper whether all its processes live.
	Check(ctx context.Context) error
	// Checkpoint saves the world's state and Restore puts it back. An error of kind
	// world_lost is the only one after which the world is not as it was.
	Checkpoint(ctx context.Context) (*world.Checkpoint, error)
	Restore(ctx context.Context, c *world.Checkpoint) (world.ResetReport, error)
	Forget(ctx context.Context, list ...*world.Checkpoint)
	// KeepStart saves the world's state with a value, to begin the same episode there again;
	// Started is that value when the world stands at such a state, or nil.
	KeepStart(ctx context.Context, key string, value any) error
	Started() any
}

// Episode is one run of a task.
type Episode struct {
	id      string
	world   World
	inst    *task.Instance
	judge   *reward.Judge
	rec     *trace.Recorder
	release func()
	limit   int
	view    browser.View // of Reset
	started time.Time

	mu       sync.Mutex
	progress                       // guarded by mu
	done     bool                  // guarded by mu: terminated, truncated, lost or closed
	ended    bool                  // guarded by mu: the record is closed and the world released
	saved    map[string]checkpoint // guarded by mu
	named    int                   // guarded by mu: checkpoints so far
	browse   *browser.Browser      // the world's
	friction *friction             // nil without perturbations
	told     string                // what the instruction says in addition
}

// NewID makes an episode's id: its time, so that ids sort by age, and enough chance that no stranger guesses it.
func NewID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return time.Now().UTC().Format("20060102T150405.000") + "-" + hex.EncodeToString(b[:])
}

// Deps are what Begin needs beside the request.
type Deps struct {
	World World
	Spec  *task.Spec
	// Profile is what is in the agent's way; nil is nothing.
	Profile *profile.Profile
	// Traces may be nil. Header holds what the caller knows of the record's header.
	Traces *trace.Store
	Header trace.Header
	// StartKey, if set, names everything that the start of the episode depends on.
	StartKey string
	// Release gives the world back; it is called once, at the latest by End.
	Release func()
}

// Begin starts an episode in a fresh world and returns its first observation. On an
// error the world has been released.
func Begin(ctx context.Context, d Deps, r Request) (*Episode, *Result, error) {
	e := &Episode{id: NewID(), world: d.World, browse: d.World.Browser(), release: sync.OnceFunc(d.Release), view: r.View, started: time.Now(), saved: map[string]checkpoint{}}
	ctx, stop := e.watch(ctx)
	defer stop()
	res, err := e.begin(ctx, d, r)
	if err != nil {
		err = e.cause(ctx, err)
		e.finish("world_lost", err.Error())
		return nil, nil, err
	}
	return e, res, nil
}

func (e *Episode) begin(ctx context.Context, d Deps, r Request) (*Result, error) {
	if o, ok := e.world.Started().(*opening); ok {
		return e.reopen(ctx, d, r, o)
	}
	if err := e.world.BeginEpisode(ctx, e.world.Epoch(), uint64(r.Seed)); err != nil {
		return nil, fmt.Errorf("set the world's clock and seed: %w", err)
	}
	unstalled := e.world.Unstall()
	defer unstalled()
	inst, err := task.Instantiate(ctx, d.Spec, r.Seed, e.world.Reader())
	if err != nil {
		return nil, fmt.Errorf("draw the task's parameters: %w", err)
	}
	if len(inst.Setup) > 0 {
		if err := e.world.Setup(ctx, inst.Setup); err != nil {
			return nil, fmt.Errorf("set the task up: %w", err)
		}
	}
	e.setTask(inst, r)
	if err := e.planFriction(ctx, d); err != nil {
		return nil, err
	}
	if err := e.open(ctx); err != nil {
		return nil, err
	}
	if err := e.startFriction(ctx); err != nil {
		return nil, err
	}
	obs, err := e.browse.Observe(ctx, r.View)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	// Opening the page may have written (a visit, a session); what the agent does counts from here.
	verdict, err := e.judge.Start(ctx)
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.pass(obs, unstalled()); err != nil {
		return nil, err
	}
	res := e.result(obs, verdict, e.collect())
	res.Instruction = strings.TrimSpace(inst.Instruction + " " + e.told)
	e.last = res
	if err := e.keepStart(ctx, d); err != nil {
		return nil, err
	}
	e.begun(d, r)
	return res, nil
}

// setTask gives the episode its task, limits and judge.
func (e *Episode) setTask(inst *task.Instance, r Request) {
	e.inst, e.limit = inst, inst.Limits.Steps
	if e.limit == 0 {
		e.limit = task.DefaultSteps
	}
	if r.MaxSteps > 0 {
		e.limit = r.MaxSteps
	}
	e.judge = reward.New(inst, e.world.Reader(), probe{e.browse, e.world.StartURL()})
}

// begun completes the first result and records it.
func (e *Episode) begun(d Deps, r Request) {
	ms := msSince(e.started)
	e.last.Info.Timing = Timing{TotalMS: ms, ResetMS: ms}
	e.record(d, r, e.last)
}

// open brings the browser to the task's start page.
func (e *Episode) open(ctx context.Context) error {
	b := e.browse
	if err := b.SetEpisode(ctx, uint64(e.inst.Seed), e.world.Epoch()); err != nil {
		return fmt.Errorf("set the page's seed and clock: %w", err)
	}
	url, err := resolveURL(e.world.StartURL(), e.inst.StartURL)
	if err != nil {
		return fmt.Errorf("start url of the task: %w", err)
	}
	if err := b.SetCookies(ctx, e.cookies()); err != nil {
		return fmt.Errorf("set the task's cookies: %w", err)
	}
	if err := b.Navigate(ctx, url); err != nil {
		return fmt.Errorf("open the start page: %w", err)
	}
	return nil
}

// cookies are the task's, as the world's own server would have set them.
func (e *Episode) cookies() []browser.Cookie {
	var out []browser.Cookie
	for name, value := range e.inst.Cookies {
		out = append(out, browser.Cookie{Name: name, Value: value, URL: e.world.StartURL(), HTTPOnly: true})
	}
	slices.SortFunc(out, func(a, b browser.Cookie) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ID is the episode's id.
func (e *Episode) ID() string { return e.id }

// Instance is the task with its parameters: for oracles and for proofs, not for agents.
func (e *Episode) Instance() *task.Instance { return e.inst }

// World is the world that the episode runs in.
func (e *Episode) World() World { return e.world }

// View is what Reset asked observations to hold.
func (e *Episode) View() browser.View { return e.view }

// Step carries out one action string.
func (e *Episode) Step(ctx context.Context, text string, view browser.View) (*Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return nil, e.over()
	}
	ctx, stop := e.watch(ctx)
	defer stop()
	res, err := e.act(ctx, text, view)
	if err != nil {
		err = e.cause(ctx, err)
		e.done = true
		e.finish("world_lost", err.Error())
		return nil, err
	}
	// An episode that can still be put back to a checkpoint keeps its world.
	if e.done = res.Done(); e.done && len(e.saved) == 0 {
		e.finish(endReason(res), "")
	}
	return res, nil
}

func endReason(r *Result) string {
	if r.Terminated {
		return "terminated"
	}
	return "truncated"
}

// act does the work of a step: act, settle, observe, judge.
func (e *Episode) act(ctx context.Context, text string, view browser.View) (*Result, error) {
	start := time.Now()
	unstalled := e.world.Unstall()
	defer unstalled()
	if err := e.disturb(ctx); err != nil {
		return nil, err
	}
	out, err := e.do(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("act: %w", err)
	}
	e.step++
	events := e.collect()
	e.said = append(e.said, out.Messages...)
	acted := time.Now()
	last := out.Finished || out.Infeasible || e.step >= e.limit+e.extra
	obs, verdict, t, err := e.look(ctx, view, reward.Input{Final: last, Answer: out.Answer, Infeasible: out.Infeasible})
	if err != nil {
		return nil, err
	}
	if err := e.pass(obs, unstalled()); err != nil {
		return nil, err
	}
	obs.LastAction, obs.LastActionError = text, out.Err
	res := e.result(obs, verdict, events)
	// The judge calls an episode done at its limit too; that is truncation, unless the task is won.
	res.Terminated = out.Finished || out.Infeasible || verdict.Done && !last || verdict.Success && e.inst.Reward.Until == task.UntilSuccess
	res.Truncated = !res.Terminated && e.step >= e.limit+e.extra
	res.Info.Infeasible = out.Infeasible
	res.Info.Messages = e.said
	res.Info.Notes = out.Notes
	res.Info.StillRunning, res.Info.Capped = out.Settle.Running, out.Settle.Capped
	t.ActMS = float64(acted.Sub(start).Microseconds()) / 1000
	t.TotalMS = msSince(start)
	res.Info.Timing = t
	e.won = res.Info.Success
	e.total += res.Reward
	e.last = res
	e.rec.Step(traceStep(res, text, view))
	return res, nil
}

// do parses and performs the action. A string that cannot be parsed is a failed action.
func (e *Episode) do(ctx context.Context, text string) (browser.Outcome, error) {
	calls, err := action.Parse(text)
	if err != nil {
		var bad *action.Error
		if !errors.As(err, &bad) {
			bad = &action.Error{Kind: action.InvalidAction, Message: err.Error()}
		}
		return browser.Outcome{Err: bad}, nil
	}
	return e.browse.Do(ctx, calls)
}

// look observes and judges at the same time: one reads the page, the other the database.
// Meanwhile the keeper is asked whether all processes live: a page that shows an error may
// do so because its server has died a moment ago, and then it is no observation of the task.
func (e *Episode) look(ctx context.Context, view browser.View, in reward.Input) (*browser.Observation, *reward.Verdict, Timing, error) {
	var t Timing
	var verdict *reward.Verdict
	judged, checked := make(chan error, 1), make(chan error, 1)
	go func() { checked <- e.world.Check(ctx) }()
	go func() {
		start := time.Now()
		var err error
		verdict, err = e.judge.Evaluate(ctx, in)
		t.JudgeMS = msSince(start)
		judged <- err
	}()
	start := time.Now()
	obs, err := e.browse.Observe(ctx, view)
	observeMS := msSince(start)
	judgeErr, checkErr := <-judged, <-checked
	t.ObserveMS = observeMS
	switch {
	case checkErr != nil:
		return nil, nil, t, checkErr
	case err != nil:
		return nil, nil, t, fmt.Errorf("observe: %w", err)
	case judgeErr != nil:
		return nil, nil, t, fmt.Errorf("judge: %w", judgeErr)
	}
	return obs, verdict, t, nil
}

// Observe looks again without acting.
func (e *Episode) Observe(ctx context.Context, view browser.View) (*browser.Observation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return nil, e.over()
	}
	ctx, stop := e.watch(ctx)
	defer stop()
	o, err := e.browse.Observe(ctx, view)
	if err != nil {
		return nil, e.cause(ctx, err)
	}
	return o, nil
}

// Judge asks the judge about the present state, as often as one likes: it changes nothing.
func (e *Episode) Judge(ctx context.Context) (json.RawMessage, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return nil, e.over()
	}
	v, err := e.judge.Peek(ctx, reward.Input{})
	if err != nil {
		return nil, e.cause(ctx, err)
	}
	return json.Marshal(v)
}

// Query reads the database as the judge.
func (e *Episode) Query(ctx context.Context, sql string) (*postgres.Rows, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return nil, e.over()
	}
	return e.world.Reader().Query(ctx, sql)
}

// End frees the world. The reason is recorded unless the episode had ended before.
func (e *Episode) End(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last != nil && e.last.Done() {
		reason = endReason(e.last)
	}
	e.done = true
	e.finish(reason, "")
}

// finish closes the record and releases the world, once.
func (e *Episode) finish(reason, detail string) {
	if e.ended {
		return
	}
	e.ended = true
	clear(e.saved) // they end with the next reset of the world
	e.rec.End(trace.End{
		Reason: reason, Detail: detail, Success: e.won, Reward: e.total, Steps: e.step, At: trace.Now(),
	})
	e.release()
}

// watch makes a context that ends when the world is lost, so that no call waits for the dead.
func (e *Episode) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-e.world.Lost():
			cancel(e.world.Cause())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// cause turns whatever failed in a lost world into the loss itself.
func (e *Episode) cause(ctx context.Context, err error) error {
	select {
	case <-e.world.Lost():
		return fault.Wrap(fault.WorldLost, e.world.Cause(), "the world was lost")
	default:
	}
	if c := context.Cause(ctx); c != nil && fault.KindOf(c) == fault.WorldLost {
		return c
	}
	if k := fault.KindOf(err); k != fault.Internal {
		return err
	}
	return fault.Wrap(fault.WorldLost, err, "the episode could not go on")
}

func msSince(t time.Time) float64 { return float64(time.Since(t).Microseconds()) / 1000 }

// probe is the page as the judge sees it.
type probe struct {
	b    *browser.Browser
	base string
}

func (p probe) Base() string { return p.base }

func (p probe) URL(ctx context.Context) (string, error) {
	o, err := p.b.Observe(ctx, browser.View{})
	if err != nil {
		return "", err
	}
	return o.URL, nil
}

func (p probe) Text(ctx context.Context) (string, error) {
	o, err := p.b.Observe(ctx, browser.View{})
	if err != nil {
		return "", err
	}
	return o.Text, nil
}
