package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/cdp"
)

// Friction decides what becomes of requests and of documents. Its methods are called from
// one goroutine at a time, must not block and must not call the Browser.
type Friction interface {
	// Patterns are the requests that it wants to hear of. All others are untouched.
	Patterns() []Pattern
	// Request decides about one of them, in the order in which they are made.
	Request(r Request) Fate
	// Shown is told of each document that a tab shows, and says what to do to it.
	Shown(p Shown) []Change
}

// Pattern chooses requests by address (* is any text, ? any character) and by type as
// DevTools names it; "" is any type.
type Pattern struct{ URL, Type string }

// Request is a request that a page makes.
type Request struct {
	Method, URL string
	// Type is document, fetch, script, stylesheet, image, font, media or other.
	Type string
	// Accept is the header of that name.
	Accept string
	// At is the virtual time since the episode began.
	At time.Duration
}

// Fate is what becomes of a request. The zero Fate lets it go.
type Fate struct {
	// Hold is how long, in virtual time, it is held before anything else.
	Hold time.Duration
	// Fail makes it fail with a reason of DevTools: ConnectionReset, TimedOut.
	Fail string
	// Answer is given instead of asking the server.
	Answer *Answer
	// Rewrite gets the server's answer and gives another one, or how it fails. Returning
	// nil and "" leaves it.
	Rewrite func(Answer) (*Answer, string)
}

// Answer is a response.
type Answer struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// Shown is a document that has come to rest in a tab.
type Shown struct {
	URL string
	At  time.Duration
}

// Change is something to do to a document or its window.
type Change struct {
	// Script runs in the page's own world. Done, if set, is given its value, a string.
	Script string
	Done   func(value string)
	// Width and Height, if not 0, are the window's new size.
	Width, Height int
	// Scheme, if not "", is what prefers-color-scheme says.
	Scheme string
}

// paused is a request that waits for its fate.
type paused struct {
	p  *page
	ev pausedEvent
}

// holding is a request that is held until virtual time has come.
type holding struct {
	p    *page
	id   string
	name string  // as the page's script knows it; "" if no script made it
	due  float64 // raw ms of the page's clock
	fate Fate
}

// SetFriction puts a Friction in charge, or with nil takes the one away that is. The
// document that is shown counts as the first.
func (b *Browser) SetFriction(ctx context.Context, f Friction) error {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := b.tab(ctx)
	if err != nil {
		return lost(err, "set friction")
	}
	b.update(func() { b.friction = f })
	if f == nil {
		for _, q := range b.pages() {
			q.s.Send("Fetch.disable", nil)
		}
		return nil
	}
	go b.decide(f)
	if len(f.Patterns()) > 0 {
		for _, q := range b.pages() {
			if _, err := q.await(ctx, q.intercept(f)); err != nil && !errors.Is(err, errDialog) {
				return lost(err, "set friction")
			}
		}
	}
	p.seen = -1
	var out Settle
	return lost(b.meet(ctx, p, &out), "set friction")
}

func (b *Browser) pages() (out []*page) {
	b.read(func() {
		for _, p := range b.tabs {
			if p.number > 0 && p.trouble() == nil {
				out = append(out, p)
			}
		}
	})
	return out
}

// resourceTypes are the names of DevTools for the types of requests.
var resourceTypes = map[string]string{
	"document": "Document", "fetch": "Fetch", "xhr": "XHR", "script": "Script", "stylesheet": "Stylesheet",
	"image": "Image", "font": "Font", "media": "Media", "other": "Other",
}

// intercept asks for the requests that f wants to hear of.
func (p *page) intercept(f Friction) *cdp.Pending {
	var patterns []map[string]string
	for _, w := range f.Patterns() {
		types := []string{resourceTypes[w.Type]}
		if w.Type == "fetch" {
			types = append(types, resourceTypes["xhr"])
		}
		for _, t := range types {
			one := map[string]string{"urlPattern": w.URL, "requestStage": "Request"}
			if t != "" {
				one["resourceType"] = t
			}
			patterns = append(patterns, one)
		}
	}
	return p.s.Send("Fetch.enable", map[string]any{"patterns": patterns})
}

// onPaused takes a request that was intercepted. It runs on the reader: it only notes.
func (p *page) onPaused(raw json.RawMessage) {
	var ev pausedEvent
	if json.Unmarshal(raw, &ev) == nil {
		p.b.update(func() { p.b.paused = append(p.b.paused, paused{p, ev}) })
	}
}

// decide asks f about requests as they come, until another Friction is in charge.
func (b *Browser) decide(f Friction) {
	for {
		var next paused
		var mine bool
		err := b.until(context.Background(), "wait for requests", func() bool {
			mine = b.friction == f && !b.closed
			if mine && len(b.paused) > 0 {
				next, b.paused = b.paused[0], b.paused[1:]
				b.deciding = true
			}
			return !mine || next.p != nil
		})
		if err != nil || !mine {
			return
		}
		next.p.rule(f, next.ev)
		b.update(func() { b.deciding = false })
	}
}

// pausedEvent is Fetch.requestPaused.
type pausedEvent struct {
	RequestID           string `json:"requestId"`
	ResourceType        string `json:"resourceType"`
	RedirectedRequestID string `json:"redirectedRequestId"`
	Request             struct {
		URL     string            `json:"url"`
		Method  string            `json:"method"`
		Headers map[string]string `json:"headers"`
	} `json:"request"`
	ErrorReason string `json:"responseErrorReason"`
	Status      int    `json:"responseStatusCode"`
	Headers     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"responseHeaders"`
}

func (e *pausedEvent) accept() string {
	for k, v := range e.Request.Headers {
		if strings.EqualFold(k, "accept") {
			return v
		}
	}
	return ""
}

// rule decides about a request, or about its answer when that was put off.
func (p *page) rule(f Friction, ev pausedEvent) {
	var fate Fate
	var again bool
	p.b.read(func() { fate, again = p.rewrites[ev.RequestID]; delete(p.rewrites, ev.RequestID) })
	switch {
	case again:
		p.rewrite(ev, fate)
		return
	case ev.Status != 0 || ev.ErrorReason != "" || ev.RedirectedRequestID != "":
		// The next leg of a request that has been decided about.
		p.proceed(ev.RequestID, Fate{})
		return
	}
	r := Request{Method: ev.Request.Method, URL: ev.Request.URL, Type: typeOf(ev.ResourceType), Accept: ev.accept()}
	p.b.read(func() { r.At = time.Duration(p.b.at) * time.Millisecond })
	fate = f.Request(r)
	switch {
	case fate.Hold <= 0:
	case r.Type == "document":
		// A renderer does not answer while a document is held up on the way to it, so its
		// clock cannot go on then. The step lets the time pass when the document is there.
		p.b.update(func() { p.b.lag += fate.Hold })
	case p.hold(ev.RequestID, r, ev.ResourceType, fate):
		return
	}
	p.proceed(ev.RequestID, fate)
}

// hold holds a request until virtual time has come, unless the page does not answer.
func (p *page) hold(id string, r Request, devtoolsType string, fate Fate) bool {
	now := p.rawNow()
	if now == 0 {
		return false
	}
	h := holding{p: p, id: id, due: now + 1 + float64(fate.Hold.Milliseconds()), fate: fate}
	if devtoolsType == "Fetch" || devtoolsType == "XHR" {
		h.name = nameOf(r)
	}
	p.b.update(func() { p.b.holdings = append(p.b.holdings, h) })
	if h.name != "" {
		p.tellHeld("P.held", h.name)
	}
	return true
}

func typeOf(devtools string) string {
	if devtools == "XHR" {
		return "fetch"
	}
	return strings.ToLower(devtools)
}

// nameOf is how the page's world names a request.
func nameOf(r Request) string {
	u := r.URL
	if i := strings.IndexAny(u, "?#"); i >= 0 {
		u = u[:i]
	}
	return r.Method + " " + u
}

// holdWait bounds the questions to a page whose request is intercepted; virtual time
// stands still while they are asked.
const holdWait = 5 * time.Second

// rawNow is the page's own clock, or 0 when it does not answer.
func (p *page) rawNow() float64 {
	var now float64
	if p.tell("Date.now()", &now) != nil {
		return 0
	}
	return now
}

// tellHeld tells the page's world that a request is held, or is no more.
func (p *page) tellHeld(f, name string) { _ = p.tell(f+"("+encode(name)+")", nil) }

// tell evaluates beside the call that is under way.
func (p *page) tell(expr string, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), holdWait)
	defer cancel()
	var id int64
	p.b.read(func() { id = p.agentCtx })
	if id == 0 {
		return errGone
	}
	call := p.s.Send("Runtime.evaluate", evalParams(id, expr))
	for {
		var changed chan struct{}
		var state error
		p.b.read(func() {
			changed, state = p.b.changed, p.trouble()
			if state == nil && slices.ContainsFunc(p.b.paused, func(w paused) bool { return w.p == p && w.ev.ResourceType == "Document" }) {
				state = errGone // it answers no more before that document has come
			}
		})
		if state != nil {
			call.Abandon()
			return state
		}
		select {
		case <-call.Done():
			raw, err := call.Wait(ctx)
			if err != nil {
				return err
			}
			return decodeEval(raw, out)
		case <-changed:
		case <-ctx.Done():
			call.Abandon()
			return ctx.Err()
		}
	}
}

// proceed carries out a fate whose time has come.
func (p *page) proceed(id string, fate Fate) {
	switch {
	case fate.Fail != "":
		p.s.Send("Fetch.failRequest", map[string]any{"requestId": id, "errorReason": fate.Fail})
	case fate.Answer != nil:
		p.fulfil(id, fate.Answer)
	case fate.Rewrite != nil:
		p.b.read(func() { p.rewrites[id] = fate })
		p.s.Send("Fetch.continueRequest", map[string]any{"requestId": id, "interceptResponse": true})
	default:
		p.s.Send("Fetch.continueRequest", map[string]any{"requestId": id})
	}
}

func (p *page) fulfil(id string, a *Answer) {
	headers := []map[string]string{}
	for _, h := range a.Headers {
		headers = append(headers, map[string]string{"name": h[0], "value": h[1]})
	}
	p.s.Send("Fetch.fulfillRequest", map[string]any{
		"requestId": id, "responseCode": a.Status, "responseHeaders": headers, "body": base64.StdEncoding.EncodeToString(a.Body),
	})
}

// rewrite gives the page another answer than the server's.
func (p *page) rewrite(ev pausedEvent, fate Fate) {
	if ev.ErrorReason != "" {
		p.proceed(ev.RequestID, Fate{})
		return
	}
	body, err := p.bodyOf(ev)
	if err != nil {
		p.proceed(ev.RequestID, Fate{})
		return
	}
	got := Answer{Status: ev.Status, Body: body}
	for _, h := range ev.Headers {
		got.Headers = append(got.Headers, [2]string{h.Name, h.Value})
	}
	answer, fail := fate.Rewrite(got)
	switch {
	case fail != "":
		p.proceed(ev.RequestID, Fate{Fail: fail})
	case answer != nil:
		p.fulfil(ev.RequestID, answer)
	default:
		p.proceed(ev.RequestID, Fate{})
	}
}

// bodyOf reads the body of an answer; a redirect has none.
func (p *page) bodyOf(ev pausedEvent) ([]byte, error) {
	if ev.Status >= 300 && ev.Status < 400 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), holdWait)
	defer cancel()
	var v struct {
		Body    string `json:"body"`
		Encoded bool   `json:"base64Encoded"`
	}
	if err := p.s.Call(ctx, "Fetch.getResponseBody", map[string]any{"requestId": ev.RequestID}, &v); err != nil {
		return nil, fmt.Errorf("read the body of an answer: %w", err)
	}
	if !v.Encoded {
		return []byte(v.Body), nil
	}
	return base64.StdEncoding.DecodeString(v.Body)
}

// anyHeld says whether a request is held that time should go on for. It is called with
// mu held.
func (b *Browser) anyHeld() bool { return len(b.holdings) > 0 }

// dueIn is how many ms of virtual time lie ahead of the next held request, of all or of
// those that a document needs to load. It is -1 when there is none.
func (b *Browser) dueIn(now float64, forLoading bool) float64 {
	next := -1.0
	b.read(func() {
		for _, h := range b.holdings {
			if forLoading && h.name != "" {
				continue
			}
			if d := max(0, h.due-now); next < 0 || d < next {
				next = d
			}
		}
	})
	return next
}

// overtaken makes what a tab's old document waited for due at once: it may be gone. It is
// called with mu held.
func (b *Browser) overtaken(p *page) {
	for i := range b.holdings {
		if b.holdings[i].p == p {
			b.holdings[i].due = 0
		}
	}
}

// letGo sends on the held requests whose time has come, and says whether there were any.
func (b *Browser) letGo(now float64) bool {
	var due []holding
	b.read(func() {
		var rest []holding
		for _, h := range b.holdings {
			if h.due <= now {
				due = append(due, h)
			} else {
				rest = append(rest, h)
			}
		}
		b.holdings = rest
	})
	for _, h := range due {
		if h.name != "" {
			h.p.tellHeld("P.freed", h.name)
		}
		h.p.proceed(h.id, h.fate)
	}
	return len(due) > 0
}

// rawTime is what the page's own clock shows when virtual time is v.
func (b *Browser) rawTime(v float64) float64 { return v - b.start + b.raw }

// meet lets the Friction see a document that it has not seen yet.
func (b *Browser) meet(ctx context.Context, p *page, out *Settle) error {
	var f Friction
	var commits int
	shown := Shown{At: time.Duration(b.virtual-b.start) * time.Millisecond}
	b.read(func() { f, commits, shown.URL = b.friction, p.commits, p.url })
	if f == nil || commits == p.seen || !strings.HasPrefix(shown.URL, "http") {
		return nil
	}
	p.seen = commits
	changes := f.Shown(shown)
	if len(changes) == 0 {
		return nil
	}
	for _, c := range changes {
		if err := p.change(ctx, c); err != nil {
			return err
		}
	}
	s := b.settler(p, out)
	s.frame = true
	w, err := s.ask(ctx, "P.state()")
	if err != nil {
		return err
	}
	return s.run(ctx, w)
}

// meetFront is meet for the tab in front, after an action. What keeps the page from
// answering is what the observation will show.
func (b *Browser) meetFront(ctx context.Context, out *Settle) error {
	var none bool
	b.read(func() { none = b.friction == nil })
	if none {
		return nil
	}
	p, err := b.tab(ctx)
	if err == nil {
		err = b.meet(ctx, p, out)
	}
	if errors.Is(err, errDialog) || errors.Is(err, errGone) || errors.Is(err, errCrashed) {
		return nil
	}
	return err
}

func (p *page) change(ctx context.Context, c Change) error {
	var calls []*cdp.Pending
	if c.Script != "" {
		raw, err := p.await(ctx, p.s.Send("Runtime.evaluate", map[string]any{"expression": c.Script, "returnByValue": true}))
		if err != nil {
			return err
		}
		var value string
		if decodeEval(raw, &value) == nil && c.Done != nil {
			c.Done(value)
		}
	}
	if c.Width > 0 && c.Height > 0 {
		calls = append(calls, p.s.Send("Emulation.setDeviceMetricsOverride", map[string]any{
			"width": c.Width, "height": c.Height, "deviceScaleFactor": p.b.cfg.Scale, "mobile": false,
		}))
	}
	if c.Scheme != "" {
		calls = append(calls, p.s.Send("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
			{"name": "prefers-reduced-motion", "value": "reduce"}, {"name": "prefers-color-scheme", "value": c.Scheme},
		}}))
	}
	for _, call := range calls {
		if _, err := p.await(ctx, call); err != nil {
			return err
		}
	}
	return nil
}

// ClearCookies takes all cookies away from the browser.
func (b *Browser) ClearCookies(ctx context.Context) error {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return lost(b.root.Call(ctx, "Storage.clearCookies", nil, nil), "clear cookies")
}
