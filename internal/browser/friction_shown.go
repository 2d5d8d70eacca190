package browser

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/cdp"
)

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
