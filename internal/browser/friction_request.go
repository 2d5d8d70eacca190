package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/cdp"
)

// paused is a request that waits for its fate.
type paused struct {
	p  *page
	ev pausedEvent
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
		p.proceed(ev, Fate{})
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
	case p.hold(ev, r, fate):
		return
	}
	p.proceed(ev, fate)
}

func typeOf(devtools string) string {
	if devtools == "XHR" {
		return "fetch"
	}
	return strings.ToLower(devtools)
}

// proceed carries out a fate whose time has come. A document does not fail: a page tells of it.
func (p *page) proceed(ev pausedEvent, fate Fate) {
	id := ev.RequestID
	switch {
	case fate.Fail != "" && typeOf(ev.ResourceType) == "document":
		p.fulfil(id, unreachable(ev.Request.URL, fate.Fail))
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
		p.proceed(ev, Fate{})
		return
	}
	body, err := p.bodyOf(ev)
	if err != nil {
		p.proceed(ev, Fate{})
		return
	}
	got := Answer{Status: ev.Status, Body: body}
	for _, h := range ev.Headers {
		got.Headers = append(got.Headers, [2]string{h.Name, h.Value})
	}
	answer, fail := fate.Rewrite(got)
	switch {
	case fail != "":
		p.proceed(ev, Fate{Fail: fail})
	case answer != nil:
		p.fulfil(ev.RequestID, answer)
	default:
		p.proceed(ev, Fate{})
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
