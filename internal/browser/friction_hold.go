package browser

import (
	"context"
	"slices"
	"strings"
	"time"
)

// holding is a request that is held until virtual time has come.
type holding struct {
	p    *page
	ev   pausedEvent
	name string  // as the page's script knows it; "" if no script made it
	due  float64 // raw ms of the page's clock
	fate Fate
}

// hold holds a request until virtual time has come, unless the page does not answer.
func (p *page) hold(ev pausedEvent, r Request, fate Fate) bool {
	now := p.rawNow()
	if now == 0 {
		return false
	}
	h := holding{p: p, ev: ev, due: now + 1 + float64(fate.Hold.Milliseconds()), fate: fate}
	if typeOf(ev.ResourceType) == "fetch" {
		h.name = nameOf(r)
	}
	p.b.update(func() { p.b.holdings = append(p.b.holdings, h) })
	if h.name != "" {
		p.tellHeld("P.held", h.name)
	}
	return true
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
		h.p.proceed(h.ev, h.fate)
	}
	return len(due) > 0
}

// rawTime is what the page's own clock shows when virtual time is v.
func (b *Browser) rawTime(v float64) float64 { return v - b.start + b.raw }
