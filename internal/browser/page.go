package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/cdp"
)

// agentWorldName is the isolated world of the injected agent. No page can see it.
const agentWorldName = "agent"

var (
	errDialog  = errors.New("a dialog is open")
	errCrashed = errors.New("the page has crashed")
	errGone    = errors.New("the tab has closed")
)

// page is one tab. Its main frame's id is the target's id.
type page struct {
	b              *Browser
	s              *cdp.Session
	target, opener string
	number         int // of the tab in this browser; part of its random seed

	// Guarded by b.mu.
	ready      bool // the init scripts are in place
	agentCtx   int64
	contexts   map[int64]frameContext
	loading    map[string]bool // frames that load
	scheduled  map[string]bool // frames that are about to navigate
	commits    int             // documents of the main frame so far
	departures int             // navigations of the main frame so far; not all arrive
	coming     bool            // the main frame's next document is on its way
	url        string
	title      string // as last observed
	wanted     string // what the page that opened this tab wanted in it
	failedURL  string // what the main frame could not load; it shows an error page
	dialog     *Dialog
	dialogs    int // opened so far
	crashed    bool
	closed     bool
	closing    bool // its script has asked for its end
	expired    int  // budgets of virtual time that have ended
	dirty      bool // the page started something since it was last asked
	streams    bool // the page holds requests open that never end
	drag       json.RawMessage
	rewrites   map[string]Fate // requests whose answer is to be changed

	// Only touched by the holder of the turn.
	parked    []*cdp.Pending // commands that a dialog holds up
	scripts   []string       // ids of the init scripts
	endless   bool           // requestAnimationFrame never stops here
	firstDone bool
	seen      int // the document that Friction was told of
	kept      kept
}

// frameContext is our world in a frame that the main frame's world cannot enter.
type frameContext struct{ frame, unique string }

func newPage(b *Browser, a attached) *page {
	p := &page{
		b: b, s: b.conn.Session(a.session), target: a.target, opener: a.opener,
		contexts: map[int64]frameContext{}, loading: map[string]bool{}, scheduled: map[string]bool{}, rewrites: map[string]Fate{}, seen: -1,
	}
	b.read(func() { b.tabSeq++; p.number = b.tabSeq })
	return p
}

// setUp puts a new tab under control and lets it run. All is sent at once: the
// commands of one session are carried out in order.
func (p *page) setUp() {
	cfg := p.b.cfg
	send := func(method string, params any) *cdp.Pending { return p.s.Send(method, params) }
	send("Page.enable", nil)
	send("Runtime.enable", nil)
	send("HeadlessExperimental.enable", nil)
	send("Runtime.addBinding", map[string]any{"name": p.b.secret})
	world := map[string]any{"source": agentSource(p.b.secret, p.b.cfg.Allow), "worldName": agentWorldName, "runImmediately": true}
	main := map[string]any{"source": p.pageSource(), "runImmediately": true}
	mainID := send("Page.addScriptToEvaluateOnNewDocument", main)
	send("Page.addScriptToEvaluateOnNewDocument", world)
	send("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": cfg.Width, "height": cfg.Height, "deviceScaleFactor": cfg.Scale, "mobile": false,
	})
	p.setPlace()
	send("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-reduced-motion", "value": "reduce"}}})
	send("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	send("Page.setInterceptFileChooserDialog", map[string]any{"enabled": true})
	if p.b.takeClock() {
		// Virtual time is the renderer's, which all tabs share. A policy set for a second
		// tab would come back with its next document and stop the clock. Half a millisecond
		// keeps the clock's floor away from rounding noise.
		epoch := float64(cfg.Epoch.UnixMilli())/1000 + 0.0005
		send("Emulation.setVirtualTimePolicy", map[string]any{"policy": "pause", "initialVirtualTime": epoch})
	}
	var f Friction
	p.b.read(func() { f = p.b.friction })
	if f != nil && len(f.Patterns()) > 0 {
		p.intercept(f)
	}
	last := send("Runtime.runIfWaitingForDebugger", nil)
	ctx, cancel := context.WithTimeout(context.Background(), cfg.NavigationCap)
	defer cancel()
	if raw, err := mainID.Wait(ctx); err == nil {
		p.noteScript(raw)
	}
	if _, err := last.Wait(ctx); err == nil {
		p.b.update(func() { p.ready = true })
	}
}

// setPlace sets language and time zone. They are settings of the renderer: a second tab
// is refused, and has them, until the tab that set them closes.
func (p *page) setPlace() {
	p.s.Send("Emulation.setLocaleOverride", map[string]any{"locale": p.b.cfg.Locale})
	p.s.Send("Emulation.setTimezoneOverride", map[string]any{"timezoneId": p.b.cfg.Timezone})
}

// takeClock says, once for each renderer, that its clock is to be stopped.
func (b *Browser) takeClock() (yes bool) {
	b.read(func() { yes, b.clockless = b.clockless, false })
	return yes
}

func (p *page) noteScript(raw json.RawMessage) {
	var v struct {
		Identifier string `json:"identifier"`
	}
	if json.Unmarshal(raw, &v) == nil {
		p.b.read(func() { p.scripts = append(p.scripts, v.Identifier) })
	}
}

// evalAgent evaluates an expression in the agent's world of the main frame and
// decodes its value. A promise is awaited. When the document changes under the
// expression it is evaluated again in the new one, so it must be harmless to repeat.
func (p *page) evalAgent(ctx context.Context, expr string, out any) error {
	for gone, bare := 0, 0; gone < 20; {
		err := p.evalOnce(ctx, expr, out)
		switch {
		case errors.Is(err, errBare) && bare < maxBare:
			// The first, empty document of a renderer that has just come has a world without
			// our script; the one that is to be shown follows.
			bare++
			p.pause(ctx, hop)
		case contextGone(err):
			gone++
		default:
			return err
		}
	}
	return fmt.Errorf("evaluate in page: the document changed 20 times")
}

// maxBare bounds how many hops a document may be without our script.
const maxBare = 500

var errBare = errors.New("the document has not begun")

// pause waits for another document, d at most.
func (p *page) pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var id int64
	p.b.read(func() { id = p.agentCtx })
	_ = p.b.until(ctx, "wait for the document", func() bool { return p.agentCtx != id || p.trouble() != nil })
}

func (p *page) evalOnce(ctx context.Context, expr string, out any) error {
	id, err := p.agentContext(ctx)
	if err != nil {
		return err
	}
	raw, err := p.await(ctx, p.s.Send("Runtime.evaluate", evalParams(id, expr)))
	if err != nil {
		return err
	}
	return decodeEval(raw, out)
}

// agentContext waits for the agent's world of the document that is shown.
func (p *page) agentContext(ctx context.Context) (id int64, err error) {
	var state error
	err = p.b.until(ctx, "wait for the document", func() bool {
		id, state = p.agentCtx, p.trouble()
		return id != 0 || state != nil
	})
	if err != nil {
		return 0, err
	}
	return id, state
}

// trouble says why the page cannot be used just now. It is called with b.mu held.
func (p *page) trouble() error {
	switch {
	case p.closed:
		return errGone
	case p.crashed:
		return errCrashed
	case p.dialog != nil:
		return errDialog
	}
	return nil
}

// begun says whether the tab has a document or is about to have one. It is called with
// b.mu held.
func (p *page) begun() bool {
	return p.commits+p.departures+len(p.loading)+len(p.scheduled) > 0
}

// evalParams is the hot path: one evaluation is sent in every step at least thrice.
func evalParams(contextID int64, expr string) json.RawMessage {
	b := make([]byte, 0, len(expr)+96)
	b = append(b, `{"returnByValue":true,"awaitPromise":true,"contextId":`...)
	b = strconv.AppendInt(b, contextID, 10)
	b = append(b, `,"expression":`...)
	b = appendString(b, expr)
	return append(b, '}')
}

func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // a string always encodes
	}
	return append(b, q...)
}

func decodeEval(raw json.RawMessage, out any) error {
	if decodeFast(raw, out) {
		return nil
	}
	var v struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("decode evaluation: %w", err)
	}
	if v.Exception != nil && strings.HasPrefix(v.Exception.Exception.Description, "ReferenceError: P is not defined") {
		return errBare
	}
	if v.Exception != nil {
		return fmt.Errorf("evaluate in page: %s %s", v.Exception.Text, v.Exception.Exception.Description)
	}
	if out == nil || v.Result.Value == nil {
		return nil
	}
	if err := json.Unmarshal(v.Result.Value, out); err != nil {
		return fmt.Errorf("decode value of evaluation: %w", err)
	}
	return nil
}

// contextGone tells that an evaluation met a navigation.
func contextGone(err error) bool {
	var refused *cdp.Error
	if !errors.As(err, &refused) {
		return false
	}
	m := refused.Message
	return strings.Contains(m, "Cannot find context") || strings.Contains(m, "context was destroyed") ||
		strings.Contains(m, "Inspected target navigated") || strings.Contains(m, "uniqueContextId not found")
}

// await waits for commands, and gives up when a dialog or a crash means that they
// will not be answered. Commands held up by a dialog are parked. A page that does
// not answer at all is in an endless loop, which is ended.
func (p *page) await(ctx context.Context, calls ...*cdp.Pending) (raw json.RawMessage, err error) {
	watchdog := time.NewTimer(p.b.cfg.Watchdog)
	defer watchdog.Stop()
	for i, c := range calls {
		for {
			select {
			case <-c.Done():
				if raw, err = c.Wait(ctx); err != nil {
					return nil, sessionGone(err)
				}
			default:
				var changed chan struct{}
				var state error
				p.b.read(func() { changed, state = p.b.changed, p.trouble() })
				if state != nil {
					if errors.Is(state, errDialog) {
						p.parked = append(p.parked, calls[i:]...)
					}
					return nil, state
				}
				select {
				case <-c.Done():
				case <-changed:
				case <-watchdog.C:
					p.b.stats.Watchdogs++
					p.b.note("%s", "a script of the page ran for more than "+p.b.cfg.Watchdog.String()+" and was ended")
					p.s.Send("Runtime.terminateExecution", nil)
					watchdog.Reset(p.b.cfg.Watchdog)
				case <-ctx.Done():
					c.Abandon()
					return nil, fmt.Errorf("wait for the page (%s): %w", c.Method(), context.Cause(ctx))
				}
				continue
			}
			break
		}
	}
	return raw, nil
}

// noSession is the protocol's code for a session whose target has gone.
const noSession = -32001

// sessionGone tells the end of a tab, which its event may report only later.
func sessionGone(err error) error {
	var r *cdp.Error
	if errors.As(err, &r) && r.Code == noSession {
		return errGone
	}
	return err
}

// note records a fact about the running step.
func (b *Browser) note(format string, args ...any) {
	b.read(func() { b.notes = append(b.notes, fmt.Sprintf(format, args...)) })
}
