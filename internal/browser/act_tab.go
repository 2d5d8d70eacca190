package browser

import (
	"context"
	"errors"
	"time"

	"github.com/pommelgym/pommel/internal/action"
)

// doGoto opens a URL in this tab.
func (a *act) doGoto(ctx context.Context) error {
	target, refuse := a.b.checkURL(a.p, a.call.Text("url"))
	if refuse != nil {
		return refuse
	}
	a.began()
	var v struct {
		ErrorText  string `json:"errorText"`
		IsDownload bool   `json:"isDownload"`
	}
	raw, err := a.p.await(ctx, a.p.s.Send("Page.navigate", map[string]any{"url": target}))
	if err != nil {
		if refused(err) {
			return fail(action.NavigationError, "%s could not be opened: %v", target, err)
		}
		return err
	}
	if err := decodeInto(raw, &v); err != nil {
		return err
	}
	if err := a.s.settleLoad(ctx); err != nil {
		return err
	}
	switch {
	case v.IsDownload:
		a.b.note("%s is a download; the page stays", target)
	case v.ErrorText == "net::ERR_ABORTED":
		a.b.note("%s has no page to show; the page stays", target)
	}
	return nil
}

// doHistory goes back or forward.
func (a *act) doHistory(ctx context.Context) error {
	step := 1
	if a.call.Name == "go_back" {
		step = -1
	}
	a.began()
	return a.b.historyStep(ctx, a.p, step)
}

// history is what the tab remembers.
type history struct {
	CurrentIndex int `json:"currentIndex"`
	Entries      []struct {
		ID  int    `json:"id"`
		URL string `json:"url"`
	} `json:"entries"`
}

func (b *Browser) historyStep(ctx context.Context, p *page, step int) error {
	var h history
	if err := p.s.Call(ctx, "Page.getNavigationHistory", nil, &h); err != nil {
		return err
	}
	i := h.CurrentIndex + step
	if i < 0 || i >= len(h.Entries) || (h.Entries[i].URL == "about:blank" && i == 0) {
		where := "back"
		if step > 0 {
			where = "forward"
		}
		return fail(action.NavigationError, "there is no page to go %s to", where)
	}
	var out Settle
	s := b.settler(p, &out)
	if _, err := p.await(ctx, p.s.Send("Page.navigateToHistoryEntry", map[string]any{"entryId": h.Entries[i].ID})); err != nil {
		return err
	}
	// The answer comes before the navigation has begun.
	wait, cancel := context.WithTimeoutCause(ctx, openWait, errCapped)
	defer cancel()
	var before string
	b.read(func() { before = p.url })
	err := b.until(wait, "wait for the history", func() bool {
		return p.url != before || len(p.loading) > 0 || p.commits != s.commits || p.trouble() != nil
	})
	if err != nil && !errors.Is(err, errCapped) {
		return err
	}
	return s.settleLoad(ctx)
}

// isBlankHistory says that a tab has shown nothing but what it opened with.
func (b *Browser) isBlankHistory(ctx context.Context, p *page) bool {
	var h history
	return p.s.Call(ctx, "Page.getNavigationHistory", nil, &h) == nil && h.CurrentIndex == 0
}

func (b *Browser) hasTab(target string) (yes bool) {
	b.read(func() {
		for _, p := range b.tabs {
			yes = yes || p.target == target
		}
	})
	return yes
}

func (a *act) doNewTab(ctx context.Context) error {
	a.began()
	p, err := a.b.newTab(ctx)
	if err != nil {
		return err
	}
	return p.firstFrame(ctx)
}

func (a *act) doTabClose(ctx context.Context) error {
	a.began()
	var others int
	a.b.read(func() { others = len(a.b.tabs) - 1 })
	if others == 0 {
		// The last tab is replaced before it goes: its renderer would end with it, and with
		// the renderer the page's clock.
		if _, err := a.b.newTab(ctx); err != nil {
			return err
		}
	}
	if err := a.b.closeTab(ctx, a.p); err != nil {
		return err
	}
	p, err := a.b.tab(ctx)
	if err != nil {
		return err
	}
	if err := p.firstFrame(ctx); err != nil {
		return err
	}
	return a.b.settleTab(ctx, p, &a.out.Settle)
}

func (a *act) doTabFocus(ctx context.Context) error {
	i := int(a.call.Number("index"))
	var p *page
	var n int
	a.b.read(func() {
		n = len(a.b.tabs)
		if i >= 0 && i < n && float64(i) == a.call.Number("index") {
			p = a.b.tabs[i]
			a.b.active = p
		}
	})
	if p == nil {
		return fail(action.InvalidValue, "there is no tab %g; there are %d, from 0", a.call.Number("index"), n)
	}
	a.began()
	return a.b.settleTab(ctx, p, &a.out.Settle)
}

// doDialog answers the open dialog and goes on with what it held up.
func (a *act) doDialog(ctx context.Context) error {
	var d *Dialog
	a.b.read(func() { d = a.p.dialog })
	if d == nil {
		return fail(action.NoDialog, "no dialog is open")
	}
	text := a.call.Text("text")
	if _, given := a.call.Args["text"]; !given && d.Type == "prompt" {
		text = d.Default
	}
	a.began()
	if err := a.p.answerDialog(ctx, a.call.Name == "dialog_accept", text); err != nil {
		return err
	}
	w, err := a.s.ask(ctx, "P.state()")
	if err != nil {
		return err
	}
	return a.s.run(ctx, w)
}

// doWait lets the page's time go on.
func (a *act) doWait(ctx context.Context) error {
	ms := a.call.Number("wait_ms")
	if a.call.Name == "wait" {
		ms = a.call.Number("ms")
	}
	if ms < 0 || ms > 3_600_000 {
		return fail(action.InvalidValue, "the time must be from 0 to 3600000 milliseconds, not %g", ms)
	}
	if err := a.p.evalAgent(ctx, "P.listen()", nil); err != nil {
		return err
	}
	a.began()
	if d := time.Duration(ms) * time.Millisecond; d > shortBudget {
		if err := a.s.advance(ctx, d-shortBudget); err != nil {
			return err
		}
		a.s.used = 0
	}
	_, err := a.settle(ctx)
	return err
}
