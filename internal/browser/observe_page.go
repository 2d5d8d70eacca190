package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pommelgym/pommel/internal/action"
)

// Observe reads what a user would see now.
func (b *Browser) Observe(ctx context.Context, v View) (*Observation, error) {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := b.tab(ctx)
	if err != nil {
		return nil, lost(err, "observe")
	}
	v.proof = b.cfg.Proof
	v.kept = p.kept.next(b)
	o := &Observation{LastAction: b.last.action, LastActionError: b.last.err, VirtualTimeMS: b.virtual - b.start}
	err = b.look(ctx, p, v, o)
	switch {
	case errors.Is(err, errDialog):
		// While a dialog is open the page answers nothing, and a user could do nothing
		// else either.
		b.read(func() { o.Dialog, o.URL, o.Title = p.dialog, p.url, p.title })
		if o.Dialog != nil {
			o.Text = fmt.Sprintf("dialog %s %s\n", o.Dialog.Type, action.Quote(o.Dialog.Message))
		}
	case errors.Is(err, errGone):
		return b.observeAgain(ctx, p, v, o)
	case err != nil:
		b.torn = true
		return nil, lost(err, "observe")
	default:
		b.read(func() { p.title = o.Title })
	}
	b.titles(ctx, p)
	o.Tabs = b.tabList()
	return o, nil
}

// titles asks the tabs in the background for their titles.
func (b *Browser) titles(ctx context.Context, front *page) {
	var others []*page
	b.read(func() {
		for _, p := range b.tabs {
			if p != front && p.trouble() == nil && p.agentCtx != 0 {
				others = append(others, p)
			}
		}
	})
	for _, p := range others {
		var title string
		// One that is just loading keeps the title that it had.
		if err := p.evalOnce(ctx, "document.title.slice(0, 300).toWellFormed()", &title); err == nil {
			b.read(func() { p.title = title })
		}
	}
}

// observeAgain reads the tab that came to the front when the other closed.
func (b *Browser) observeAgain(ctx context.Context, gone *page, v View, o *Observation) (*Observation, error) {
	if err := b.awaitEnd(ctx, gone); err != nil {
		return nil, lost(err, "observe")
	}
	p, err := b.tab(ctx)
	if err != nil {
		return nil, lost(err, "observe")
	}
	v.kept = p.kept.next(b)
	if err := b.look(ctx, p, v, o); err != nil {
		return nil, lost(err, "observe")
	}
	o.Tabs = b.tabList()
	return o, nil
}

func (b *Browser) look(ctx context.Context, p *page, v View, o *Observation) error {
	if err := readPage(ctx, p, v, o); err != nil {
		return err
	}
	var err error
	if v.AXTree {
		if o.AXTree, err = axTree(ctx, p.s); err != nil {
			return err
		}
	}
	if v.Screenshot != "" {
		if o.Screenshot, err = p.screenshot(ctx, v.Screenshot); err != nil {
			return err
		}
	}
	return nil
}

// tabList lists the tabs.
func (b *Browser) tabList() (tabs []Tab) {
	b.read(func() {
		for i, p := range b.tabs {
			tabs = append(tabs, Tab{Index: i, URL: p.url, Title: p.title, Active: p == b.active})
		}
	})
	return tabs
}

// object evaluates an expression in the world of the element and keeps the result there.
func (a *act) object(ctx context.Context, expr string) (string, error) {
	var id int64
	var err error
	if a.in == nil {
		id, err = a.p.agentContext(ctx)
	} else {
		id, err = a.p.frameContext(ctx, a.in.Path)
	}
	if err != nil {
		return "", err
	}
	raw, err := a.p.await(ctx, a.p.s.Send("Runtime.evaluate", map[string]any{"expression": expr, "contextId": id}))
	if err != nil {
		return "", err
	}
	var v struct {
		Result struct {
			ObjectID string `json:"objectId"`
		} `json:"result"`
	}
	err = decodeInto(raw, &v)
	return v.Result.ObjectID, err
}

func decodeInto(raw json.RawMessage, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}
