package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/fault"
)

// SetEpisode gives the pages that are loaded from now on a seed and a clock. It is
// called before the start page is loaded.
func (b *Browser) SetEpisode(ctx context.Context, seed uint64, epoch time.Time) error {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := b.revived(ctx)
	if err != nil {
		return lost(err, "begin episode")
	}
	b.cfg.Seed = seed
	if !epoch.IsZero() {
		b.cfg.Epoch = epoch
	}
	if err := b.closeOthers(ctx, p); err != nil {
		return lost(err, "begin episode")
	}
	// Numbers of tabs are part of what pages draw, so every episode counts from one.
	b.update(func() { b.tabSeq = 1; p.number = 1; b.notes, b.blocked = nil, nil })
	if err := b.readClock(ctx, p); err != nil {
		return lost(err, "begin episode")
	}
	b.last, b.held, b.heldKeys = lastStep{}, "", 0
	// The pointer's place is seen by the next document as well.
	if err := p.hover(ctx, point{}, 0, 0); err != nil {
		return lost(err, "begin episode")
	}
	return lost(p.replaceScript(ctx), "begin episode")
}

// replaceScript puts the page's init script in place anew, with the settings of now.
func (p *page) replaceScript(ctx context.Context) error {
	var old []string
	p.b.read(func() { old, p.scripts = p.scripts, nil })
	for _, id := range old {
		p.s.Send("Page.removeScriptToEvaluateOnNewDocument", map[string]any{"identifier": id})
	}
	raw, err := p.await(ctx, p.s.Send("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": p.pageSource()}))
	if err != nil {
		return err
	}
	p.noteScript(raw)
	return nil
}

// Cookie is one cookie to set before an episode.
type Cookie struct {
	Name, Value string
	URL         string // the page that would have set it
	HTTPOnly    bool
}

// SetCookies sets session cookies.
func (b *Browser) SetCookies(ctx context.Context, cookies []Cookie) error {
	if len(cookies) == 0 {
		return nil
	}
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	list := make([]map[string]any, 0, len(cookies))
	for _, c := range cookies {
		list = append(list, map[string]any{"name": c.Name, "value": c.Value, "url": c.URL, "path": "/", "httpOnly": c.HTTPOnly})
	}
	err = b.root.Call(ctx, "Storage.setCookies", map[string]any{"cookies": list}, nil)
	if refused(err) {
		return fault.Wrap(fault.InvalidArgument, err, "set cookies")
	}
	return lost(err, "set cookies")
}

// ClearState removes cookies, caches and everything that pages have stored.
func (b *Browser) ClearState(ctx context.Context) error {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := b.revived(ctx)
	if err != nil {
		return lost(err, "clear state")
	}
	// The name of a window outlives its documents.
	if _, err := p.await(ctx, p.s.Send("Runtime.evaluate", map[string]any{"expression": "name=''"})); err != nil && !errors.Is(err, errDialog) {
		return lost(err, "clear state")
	}
	// The storage of a document that is open would be written back by it.
	if err := b.load(ctx, p, "about:blank"); err != nil {
		return lost(err, "clear state")
	}
	if err := b.closeOthers(ctx, p); err != nil {
		return lost(err, "clear state")
	}
	if err := b.root.Call(ctx, "Storage.clearCookies", nil, nil); err != nil {
		return lost(err, "clear cookies")
	}
	for _, origin := range b.cfg.Allow {
		params := map[string]any{"origin": normalOrigin(origin), "storageTypes": "all"}
		if err := p.s.Call(ctx, "Storage.clearDataForOrigin", params, nil); err != nil {
			return lost(err, "clear storage")
		}
	}
	for _, method := range []string{"Network.clearBrowserCache", "Page.resetNavigationHistory"} {
		if err := p.s.Call(ctx, method, nil, nil); err != nil {
			return lost(err, "clear state")
		}
	}
	return nil
}

// Navigate loads a page for the episode itself (not for the agent), answers any
// dialog in its way, and waits until it has settled. A page that cannot be loaded is
// a fault of the infrastructure.
func (b *Browser) Navigate(ctx context.Context, target string) error {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := b.revived(ctx)
	if err != nil {
		return lost(err, "navigate")
	}
	if err := b.load(ctx, p, target); err != nil {
		return lost(err, "navigate to "+target)
	}
	var failed string
	b.read(func() { failed = p.failedURL })
	if failed != "" {
		return fault.New(fault.WorldLost, "%s could not be loaded", failed)
	}
	return nil
}

// Answered is the status of the answer from which the page in front was made, 0 if it was none of HTTP.
func (b *Browser) Answered(ctx context.Context) (status int, err error) {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	p, err := b.tab(ctx)
	if err == nil {
		err = p.evalAgent(ctx, `(performance.getEntriesByType("navigation")[0] || {}).responseStatus || 0`, &status)
	}
	if err != nil {
		return 0, lost(err, "ask how the page was answered")
	}
	return status, nil
}

// revived is the tab in front, or a new one when that has crashed.
func (b *Browser) revived(ctx context.Context) (*page, error) {
	p, err := b.tab(ctx)
	if err != nil {
		return nil, err
	}
	var crashed bool
	b.read(func() { crashed = p.crashed })
	if !crashed {
		return p, nil
	}
	// The tabs that shared the renderer have died with it.
	b.update(func() { b.clockless = true })
	fresh, err := b.newTab(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.closeOthers(ctx, fresh); err != nil {
		return nil, err
	}
	if err := fresh.firstFrame(ctx); err != nil {
		return nil, err
	}
	return fresh, b.resync(ctx, fresh)
}

// resync lays the episode's clock upon that of a new renderer, whose virtual time
// starts anew.
func (b *Browser) resync(ctx context.Context, p *page) error {
	var now float64
	if err := p.evalAgent(ctx, "Date.now()", &now); err != nil {
		return err
	}
	want := b.raw + b.virtual - b.start
	if now == want {
		return nil
	}
	b.setClock(b.cfg.Seed, b.cfg.Epoch, b.raw+now-want)
	return p.replaceScript(ctx)
}

// load navigates without asking anybody and settles.
func (b *Browser) load(ctx context.Context, p *page, target string) error {
	var out Settle
	s := b.settler(p, &out)
	call := p.s.Send("Page.navigate", map[string]any{"url": target})
	for tries := 0; ; tries++ {
		_, err := p.await(ctx, call)
		if err == nil {
			err = s.settleLoad(ctx)
		}
		if !errors.Is(err, errDialog) || tries > 100 {
			return err
		}
		if err := p.answerDialog(ctx, true, ""); err != nil {
			return err
		}
	}
}

// settleLoad waits for a document that was asked for.
func (s *settler) settleLoad(ctx context.Context) error {
	s.b.stats.Navigations++
	s.frame = true
	if err := s.advance(ctx, shortBudget); err != nil {
		return err
	}
	if err := s.windows(ctx); err != nil {
		return err
	}
	w, err := s.ask(ctx, "P.state()")
	if err != nil {
		return err
	}
	return s.run(ctx, w)
}

// checkURL says why the agent may not go to a URL; nil when it may. A relative one is
// taken relative to the page.
func (b *Browser) checkURL(p *page, raw string) (string, *action.Error) {
	var base string
	b.read(func() { base = p.url })
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return "", fail(action.InvalidValue, "%q is not a URL", raw)
	}
	if !u.IsAbs() {
		from, err := url.Parse(base)
		if err != nil || from.Scheme == "" || from.Opaque != "" {
			return "", fail(action.InvalidValue, "%q is not a full URL; write http://...", raw)
		}
		u = from.ResolveReference(u)
	}
	if u.String() == "about:blank" {
		return u.String(), nil
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", fail(action.BlockedURL, "%s: only http and https pages may be opened", u.Redacted())
	}
	if b.allow == nil {
		return u.String(), nil
	}
	port := 80
	if u.Scheme == "https" {
		port = 443
	}
	if n, err := strconv.Atoi(u.Port()); err == nil {
		port = n
	}
	if !b.allow[originKey(u.Scheme, strings.ToLower(u.Hostname()), port)] {
		return "", fail(action.BlockedURL, "%s lies outside of this world; only %s may be opened", u.Redacted(), strings.Join(b.cfg.Allow, ", "))
	}
	return u.String(), nil
}

func originKey(scheme, host string, port int) string {
	return fmt.Sprintf("%s %s %d", scheme, host, port)
}

func fail(kind action.ErrorKind, format string, args ...any) *action.Error {
	return &action.Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
