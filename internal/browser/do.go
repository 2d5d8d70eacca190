package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/action"
)

// act is one call being carried out.
type act struct {
	b    *Browser
	p    *page
	call action.Call
	s    *settler
	out  *Outcome
	in   *route // the frame of another origin that the element lies in, if any
	sent bool   // input has been sent: from here on a dialog is a result, not an obstacle
}

// perform carries out one kind of action: it acts and settles. A failure of the agent
// is an *action.Error; any other error is for others to judge.
type perform func(*act, context.Context) error

// performs maps the names of actions to what does them.
var performs = map[string]perform{
	"click":                (*act).doClick,
	"dblclick":             (*act).doClick,
	"hover":                (*act).doHover,
	"fill":                 (*act).doFill,
	"clear":                (*act).doFill,
	"select_option":        (*act).doSelect,
	"check":                (*act).doCheck,
	"uncheck":              (*act).doCheck,
	"press":                (*act).doPress,
	"focus":                (*act).doFocus,
	"drag_and_drop":        (*act).doDrag,
	"upload_file":          (*act).doUpload,
	"scroll":               (*act).doScroll,
	"scroll_at":            (*act).doScroll,
	"mouse_move":           (*act).doMouse,
	"mouse_down":           (*act).doMouse,
	"mouse_up":             (*act).doMouse,
	"mouse_click":          (*act).doMouse,
	"mouse_dblclick":       (*act).doMouse,
	"mouse_drag_and_drop":  (*act).doDrag,
	"mouse_upload_file":    (*act).doUpload,
	"keyboard_down":        (*act).doKeyboard,
	"keyboard_up":          (*act).doKeyboard,
	"keyboard_press":       (*act).doKeyboard,
	"keyboard_type":        (*act).doKeyboard,
	"keyboard_insert_text": (*act).doKeyboard,
	"goto":                 (*act).doGoto,
	"go_back":              (*act).doHistory,
	"go_forward":           (*act).doHistory,
	"new_tab":              (*act).doNewTab,
	"tab_close":            (*act).doTabClose,
	"tab_focus":            (*act).doTabFocus,
	"dialog_accept":        (*act).doDialog,
	"dialog_dismiss":       (*act).doDialog,
	"noop":                 (*act).doWait,
	"wait":                 (*act).doWait,
}

// Do carries out the calls of one step in order and lets the page settle after each.
// The first call that fails ends the step; its failure is in Outcome.Err. The error is
// for faults of the machinery only.
func (b *Browser) Do(ctx context.Context, calls []action.Call) (Outcome, error) {
	var out Outcome
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return out, err
	}
	defer unlock()
	b.stats.Steps++
	b.read(func() { b.notes, b.blocked, b.fresh = nil, nil, nil })
	var sources []string
	for i, c := range calls {
		sources = append(sources, c.Source)
		failure, err := b.one(ctx, c, &out)
		if err == nil {
			err = b.meetFront(ctx, &out.Settle)
		}
		if err != nil {
			b.torn = true
			return out, lost(err, c.Name)
		}
		if failure != nil {
			failure.Call = i
			out.Err = failure
			break
		}
		if out.Finished {
			break
		}
	}
	b.read(func() { out.Notes = append(out.Notes, b.notes...) })
	b.last = lastStep{action: strings.Join(sources, "\n"), err: out.Err}
	return out, nil
}

// one carries out one call.
func (b *Browser) one(ctx context.Context, c action.Call, out *Outcome) (*action.Error, error) {
	if said(c, out) {
		return nil, nil
	}
	do, ok := performs[c.Name]
	if !ok {
		return fail(action.InvalidAction, "there is no action %s", c.Name), nil
	}
	p, err := b.tab(ctx)
	if err != nil {
		return nil, err
	}
	var dialog *Dialog
	b.read(func() { dialog = p.dialog; b.fresh = nil })
	if dialog != nil && c.Name != "dialog_accept" && c.Name != "dialog_dismiss" {
		return dialogOpen(dialog), nil
	}
	a := &act{b: b, p: p, call: c, s: b.settler(p, &out.Settle), out: out}
	if t, ok := c.Target("bid"); ok {
		err = a.enter(ctx, t)
	}
	if err == nil {
		err = do(a, ctx)
	}
	if errors.Is(err, errGone) {
		a.sent = true // only a page that has been acted on closes its own tab
		err = b.awaitEnd(ctx, p)
	}
	if err == nil {
		err = b.arrive(ctx, a)
	}
	return b.judge(a, err)
}

// judge tells failures of the agent from faults of the machinery.
func (b *Browser) judge(a *act, err error) (*action.Error, error) {
	var failure *action.Error
	switch {
	case err == nil:
		return b.stopped(a), nil
	case errors.As(err, &failure):
		return failure, nil
	case errors.Is(err, errDialog):
		if a.sent {
			return nil, nil
		}
		var d *Dialog
		b.read(func() { d = a.p.dialog })
		if d == nil {
			d = &Dialog{Type: "alert"}
		}
		return dialogOpen(d), nil
	case errors.Is(err, errGone):
		if a.sent {
			return nil, nil
		}
		return fail(action.Stale, "the tab has closed"), nil
	}
	return nil, err
}

// stopped reports a navigation that a rule has stopped.
func (b *Browser) stopped(a *act) *action.Error {
	var urls []string
	b.read(func() { urls, b.blocked = b.blocked, nil })
	if len(urls) == 0 || !a.sent {
		return nil
	}
	return fail(action.BlockedURL, "%s lies outside of this world and was not opened", urls[0])
}

func dialogOpen(d *Dialog) *action.Error {
	return fail(action.DialogOpen, "a dialog is open (%s: %s); answer it with dialog_accept() or dialog_dismiss()", d.Type, action.Quote(d.Message))
}

// said handles the calls that do nothing to the page.
func said(c action.Call, out *Outcome) bool {
	switch c.Name {
	case "send_msg_to_user":
		out.Messages = append(out.Messages, c.Text("text"))
	case "report_infeasible":
		reason := c.Text("reason")
		out.Finished, out.Infeasible, out.Answer = true, true, &reason
	case "finish":
		out.Finished = true
		if v, ok := c.Args["answer"]; ok && v != nil {
			s := answerText(v)
			out.Answer = &s
		}
	default:
		return false
	}
	return true
}

// answerText writes an answer that is no text the way a person would.
func answerText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64, bool:
		return strings.Trim(encode(v), `"`)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// route leads to a frame that the main frame's world cannot enter.
type route struct {
	Bid  string `json:"bid"` // of its iframe element
	Path []int  `json:"path"`
}

// enter looks where the element of a bid lies. Only bids of frames have letters.
func (a *act) enter(ctx context.Context, t action.Target) error {
	a.in, a.s.in = nil, nil
	if t.Bid == "" || t.Bid[0] < 'a' {
		return nil
	}
	if err := a.p.evalAgent(ctx, "P.route("+encode(t.Bid)+")", &a.in); err != nil || a.in == nil {
		return err
	}
	a.s.in = a.in.Path
	return a.p.evalAgent(ctx, "P.begin()", nil)
}

// eval evaluates in the world of the frame that the element lies in.
func (a *act) eval(ctx context.Context, expr string, out any) error {
	if a.in == nil {
		return a.p.evalAgent(ctx, expr, out)
	}
	err := a.p.evalFrame(ctx, a.in.Path, expr, out)
	if errors.Is(err, errNoFrame) {
		return fail(action.Stale, "the frame [%s] has changed; look at the page again", a.in.Bid)
	}
	return err
}

// look evaluates a question about an element; points in the answer are the main frame's.
func (a *act) look(ctx context.Context, expr string) (f found, err error) {
	if err := a.eval(ctx, expr, &f); err != nil || a.in == nil || !f.Point {
		return f, err
	}
	var g found
	err = a.p.evalAgent(ctx, fmt.Sprintf("P.carry(%s,%g,%g)", encode(a.in.Bid), f.X, f.Y), &g)
	f.X, f.Y, f.Error, f.Wait, f.Scrolled = g.X, g.Y, g.Error, g.Wait, f.Scrolled || g.Scrolled
	return f, err
}

// spec writes a target for the page.
func spec(t action.Target) string {
	if t.Bid != "" {
		return encode(map[string]string{"bid": t.Bid})
	}
	return encode(map[string]string{"selector": t.Selector})
}

// miss is a failure or a reason to wait as the page reports it.
type miss struct {
	Kind    action.ErrorKind `json:"kind"`
	Message string           `json:"message"`
}

// found is the page's answer to the question where and whether to act.
type found struct {
	Error    *miss   `json:"error"`
	Wait     *miss   `json:"wait"`
	X        float64 `json:"x"`
	Y        float64 `json:"y"`
	Scrolled bool    `json:"scrolled"`
	Point    bool    `json:"point"` // X and Y are meant
	Set      bool    `json:"set"`
	Changed  bool    `json:"changed"`
	Value    string  `json:"value"`
	Empty    bool    `json:"empty"`
	Lines    bool    `json:"lines"`
	Checked  bool    `json:"checked"`
	Radio    bool    `json:"radio"`
}

func (f found) at() point { return point{f.X, f.Y} }

// waits are how far virtual time goes between two looks at an element that is not ready.
var waits = []time.Duration{20, 80, 100, 200, 300, 300, 500, 500, 500, 500, 500, 500, 500, 500}

// ready evaluates a question until the page says yes or no. An element that is
// disabled, covered or hidden gets time, as a user would give it.
func (a *act) ready(ctx context.Context, expr string) (f found, err error) {
	waited := time.Duration(0)
	for i := 0; ; i++ {
		if f, err = a.look(ctx, expr); err != nil {
			return f, err
		}
		if f.Error != nil {
			return f, fail(f.Error.Kind, "%s", f.Error.Message)
		}
		if f.Wait == nil {
			a.s.scrolled = a.s.scrolled || f.Scrolled
			return f, nil
		}
		if waited >= a.b.cfg.ActionWait || time.Since(a.s.began) > a.b.cfg.NavigationCap {
			return f, fail(f.Wait.Kind, "%s", f.Wait.Message)
		}
		d := min(waits[min(i, len(waits)-1)]*time.Millisecond, a.b.cfg.ActionWait-waited)
		if err := a.linger(ctx, d); err != nil {
			return f, err
		}
		waited += d
	}
}

// linger lets time go on while an element is waited for.
func (a *act) linger(ctx context.Context, d time.Duration) error {
	s := a.b.settler(a.p, &a.out.Settle)
	s.in = a.s.in
	if err := s.advance(ctx, d); err != nil {
		return err
	}
	w, err := s.ask(ctx, "P.state()")
	if err != nil {
		return err
	}
	return s.frames(ctx, w)
}

// settle waits for the consequences of the input that was sent.
func (a *act) settle(ctx context.Context) (work, error) {
	w, err := a.s.ask(ctx, "P.state(1)")
	if err != nil {
		return w, err
	}
	return w, a.s.run(ctx, w)
}

// began restarts the real-time bounds at the moment of acting.
func (a *act) began() {
	a.s.began = time.Now()
	a.sent = true
}

// moved says that the main frame shows another document than when the act began.
func (a *act) moved() (yes bool) {
	a.b.read(func() { yes = a.p.commits != a.s.arrivals || a.p.closed })
	return yes
}

// arrive looks after the tabs when a call is done: a new window comes to the front and
// is waited for; what fails to load for a rule is undone.
func (b *Browser) arrive(ctx context.Context, a *act) error {
	var fresh *page
	b.read(func() {
		fresh = b.fresh
		if fresh != nil && fresh.closed {
			fresh = nil
		}
		if fresh != nil {
			b.active = fresh
		}
	})
	if fresh != nil {
		if err := b.settleTab(ctx, fresh, &a.out.Settle); err != nil {
			return err
		}
		if refuse, err := b.refuseTab(ctx, fresh); refuse != nil || err != nil {
			if err != nil {
				return err
			}
			return refuse
		}
		b.note("a new tab was opened and is now active")
	}
	p, err := b.tab(ctx)
	if err != nil || (p == a.p && fresh == nil && !a.moved()) {
		return err
	}
	return b.undoFailed(ctx, p)
}

// refuseTab closes a new tab that was to show what no rule allows.
func (b *Browser) refuseTab(ctx context.Context, p *page) (*action.Error, error) {
	var wanted, shown string
	b.read(func() { wanted, shown = p.wanted, p.url })
	if wanted == "" || strings.HasPrefix(wanted, "javascript:") || shown != "about:blank" && shown != "" {
		return nil, nil
	}
	if _, refuse := b.checkURL(p, wanted); refuse == nil {
		return nil, nil
	}
	return fail(action.BlockedURL, "%s lies outside of this world; its tab was closed", wanted), b.closeTab(ctx, p)
}

// settleTab waits for a tab that has just come to the front.
func (b *Browser) settleTab(ctx context.Context, p *page, out *Settle) error {
	s := b.settler(p, out)
	if err := s.windows(ctx); err != nil {
		return err
	}
	if err := p.firstFrame(ctx); err != nil {
		return err
	}
	w, err := s.ask(ctx, "P.state()")
	if err != nil {
		return err
	}
	return s.run(ctx, w)
}

// undoFailed leaves an error page that the browser shows for an address that no rule
// allows: a redirect can lead to one. Another failure to load stays: a user sees it.
func (b *Browser) undoFailed(ctx context.Context, p *page) error {
	var failed string
	b.read(func() { failed = p.failedURL })
	if failed == "" {
		return nil
	}
	if _, refuse := b.checkURL(p, failed); refuse == nil {
		return fail(action.NavigationError, "%s could not be loaded", failed)
	}
	if p.opener != "" && b.hasTab(p.opener) && b.isBlankHistory(ctx, p) {
		if err := b.closeTab(ctx, p); err != nil {
			return err
		}
		return fail(action.BlockedURL, "%s lies outside of this world; the tab was closed", failed)
	}
	if err := b.historyStep(ctx, p, -1); err != nil {
		return err
	}
	return fail(action.BlockedURL, "%s lies outside of this world; the page before it is shown again", failed)
}
