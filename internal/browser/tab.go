package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pommelgym/pommel/internal/cdp"
)

// attached is a target that the browser has attached us to.
type attached struct {
	session, target, opener string
	waiting                 bool
}

// onRoot takes the browser's own events. It runs on the reader: it only notes.
func (b *Browser) onRoot(ev cdp.Event) {
	switch ev.Method {
	case "Target.attachedToTarget":
		var v struct {
			SessionID  string `json:"sessionId"`
			TargetInfo struct {
				TargetID string `json:"targetId"`
				Type     string `json:"type"`
				OpenerID string `json:"openerId"`
			} `json:"targetInfo"`
			WaitingForDebugger bool `json:"waitingForDebugger"`
		}
		if json.Unmarshal(ev.Params, &v) == nil && v.TargetInfo.Type == "page" {
			b.attach(attached{session: v.SessionID, target: v.TargetInfo.TargetID, opener: v.TargetInfo.OpenerID, waiting: v.WaitingForDebugger})
		}
	case "Target.detachedFromTarget":
		var v struct {
			SessionID string `json:"sessionId"`
		}
		if json.Unmarshal(ev.Params, &v) == nil {
			b.detach(v.SessionID)
		}
	case "Browser.downloadWillBegin", "Browser.downloadProgress":
		b.onDownload(ev)
	}
}

// attach adds a tab. Its events are taken from now on; setting it up needs commands,
// which the reader must not send, so that is left to setUpTabs.
func (b *Browser) attach(a attached) {
	p := newPage(b, a)
	p.s.Handle(p.onEvent)
	b.update(func() {
		b.tabs = append(b.tabs, p)
		b.newTabs = append(b.newTabs, a)
		if a.waiting {
			b.expecting = max(0, b.expecting-1)
		}
		if a.opener != "" || (a.waiting && b.opening == 0) {
			b.fresh = p
			p.wanted, b.wanted = b.wanted, ""
		}
	})
}

func (b *Browser) detach(session string) {
	b.conn.Session(session).Handle(nil)
	b.update(func() {
		i := slices.IndexFunc(b.tabs, func(p *page) bool { return p.s.ID() == session })
		if i < 0 {
			return
		}
		p := b.tabs[i]
		p.closed = true
		b.holdings = slices.DeleteFunc(slices.Clone(b.holdings), func(h holding) bool { return h.p == p })
		b.tabs = slices.Delete(slices.Clone(b.tabs), i, i+1)
		b.orphaned = true
		if b.fresh == p {
			b.fresh = nil
		}
		if b.active == p {
			b.active = b.successor(p)
		}
	})
}

// successor is the tab that comes to the front when p closes: its opener, or the
// tab opened last. It is called with mu held.
func (b *Browser) successor(p *page) *page {
	for _, q := range b.tabs {
		if q.target == p.opener {
			return q
		}
	}
	if len(b.tabs) > 0 {
		return b.tabs[len(b.tabs)-1]
	}
	return nil
}

// The tab that the browser starts with is not waiting: it is left alone, and closed.
//
// setUpTabs prepares tabs as they come. A page that opens a window stands still
// until the window may run, so this cannot wait for the step to end.
func (b *Browser) setUpTabs() {
	for {
		var todo []attached
		var orphaned bool
		err := b.until(context.Background(), "wait for tabs", func() bool {
			todo, b.newTabs = b.newTabs, nil
			orphaned, b.orphaned = b.orphaned, false
			b.settingUp = len(todo) > 0 || orphaned
			return b.settingUp || b.closed
		})
		if err != nil {
			return
		}
		if orphaned {
			b.placeAgain()
		}
		for _, a := range todo {
			if p := b.tabOf(a.session); p != nil && a.waiting {
				p.setUp()
			}
		}
		var closed bool
		b.update(func() { closed, b.settingUp = b.closed, false })
		if closed {
			return
		}
	}
}

// placeAgain sets anew what the tab that has closed had set for all.
func (b *Browser) placeAgain() {
	var tabs []*page
	b.read(func() { tabs = b.tabs })
	for _, p := range tabs {
		if p.number > 0 {
			p.setPlace()
		}
	}
}

func (b *Browser) tabOf(session string) (found *page) {
	b.read(func() {
		for _, p := range b.tabs {
			if p.s.ID() == session {
				found = p
			}
		}
	})
	return found
}

// newTab opens a blank tab and brings it to the front.
func (b *Browser) newTab(ctx context.Context) (*page, error) {
	b.update(func() { b.opening++ })
	defer b.update(func() { b.opening-- })
	var created struct {
		TargetID string `json:"targetId"`
	}
	err := b.root.Call(ctx, "Target.createTarget", map[string]any{
		"url": "about:blank", "enableBeginFrameControl": true, "width": b.cfg.Width, "height": b.cfg.Height,
	}, &created)
	if err != nil {
		return nil, err
	}
	var p *page
	err = b.until(ctx, "wait for the new tab", func() bool {
		for _, q := range b.tabs {
			if q.target == created.TargetID {
				p = q
			}
		}
		return p != nil && p.ready && p.agentCtx != 0
	})
	if err != nil {
		return nil, err
	}
	b.update(func() { b.active = p })
	return p, nil
}

// closeOthers closes every tab but one.
func (b *Browser) closeOthers(ctx context.Context, keep *page) error {
	var others []*page
	b.read(func() {
		for _, p := range b.tabs {
			if p != keep {
				others = append(others, p)
			}
		}
	})
	for _, p := range others {
		if err := b.closeTab(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// closeTab closes a tab without asking its page. It is a no-op for a tab that has gone.
func (b *Browser) closeTab(ctx context.Context, p *page) error {
	err := b.root.Call(ctx, "Target.closeTarget", map[string]any{"targetId": p.target}, nil)
	var refused *cdp.Error
	if err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("close tab: %w", err)
	}
	return b.awaitEnd(ctx, p)
}

// awaitEnd waits until the end of a tab has been reported, so that another is in front.
func (b *Browser) awaitEnd(ctx context.Context, p *page) error {
	return b.until(ctx, "wait for the tab to close", func() bool { return p.closed })
}

// tab is the tab in front. There always is one: the last to close is replaced.
func (b *Browser) tab(ctx context.Context) (*page, error) {
	var p *page
	b.read(func() { p = b.active })
	if p != nil {
		return p, nil
	}
	p, err := b.newTab(ctx)
	if err != nil {
		return nil, err
	}
	return p, p.firstFrame(ctx)
}
