package agent

import (
	"context"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
)

// recovering plays the task's script and gets over what is in its way by means that any
// agent has: it closes windows, waits, tries again, finds controls by role and name, goes
// back to the page where it was, signs in again. What it knows of the application comes
// from a rehearsal.
type recovering struct{ score rehearsal }

func (*recovering) View() gym.View { return gym.View{Elements: true} }
func (*recovering) Close() error   { return nil }

// Play implements Agent.
func (r *recovering) Play(ctx context.Context, e Episode) error {
	p := &performance{score: r.score, last: e.First(), raw: e.Step}
	if s := signInAs.FindStringSubmatch(e.First().Instruction); s != nil {
		p.email, p.password = s[1], s[2]
	}
	r.score = nil
	if !e.First().Info.Perturbed {
		return e.Oracle(ctx, nil)
	}
	err := e.Oracle(ctx, p.step)
	if err == nil && !p.last.Done() {
		err = p.encore(ctx)
	}
	return err
}

// maxMends bounds how often one action is mended.
const maxMends = 10

// performance is one episode of the recovering oracle.
type performance struct {
	score rehearsal
	k     int // the next action of the script
	last  *gym.Result
	raw   Step

	email, password string
}

// do performs one action.
func (p *performance) do(ctx context.Context, text string) (*gym.Result, error) {
	if p.last.Done() {
		return p.last, nil
	}
	res, err := p.raw(ctx, text)
	if err == nil {
		p.last = res
	}
	return res, err
}

// step performs an action of the script until it has done what it did in the rehearsal.
func (p *performance) step(ctx context.Context, text string) (*gym.Result, error) {
	want := p.expect(text)
	res, err := p.attempt(ctx, text, want)
	for try := 0; err == nil && try < maxMends && !p.good(res, want); try++ {
		res, err = p.mend(ctx, text, want, try)
	}
	return res, err
}

// expect is the take of the next action, if the script goes as it went.
func (p *performance) expect(text string) *take {
	p.k++
	if p.k > len(p.score) || p.score[p.k-1].text != text {
		return nil
	}
	return &p.score[p.k-1]
}

// good says whether an action has done what it should.
func (p *performance) good(res *gym.Result, want *take) bool {
	switch {
	case res.Done():
		return true
	case want == nil:
		return res.Observation.LastActionError == nil
	case want.failed:
		return true
	}
	o := res.Observation
	return o.LastActionError == nil && samePage(o.URL, want.after) && o.Title == want.title &&
		res.Info.Potential >= want.potential-1e-9 && want.shows(o.Text)
}

// attempt performs an action and clears away what keeps it from being performed.
func (p *performance) attempt(ctx context.Context, text string, want *take) (*gym.Result, error) {
	res, err := p.do(ctx, text)
	for try := 0; err == nil && try < maxMends; try++ {
		failure := res.Observation.LastActionError
		if res.Done() || failure == nil || want != nil && want.failed {
			return res, err
		}
		next := text
		switch b := inTheWay(res.Observation); {
		case res.Observation.Dialog != nil:
			_, err = p.do(ctx, "dialog_accept()")
		case failure.Kind == action.Obscured && b != "":
			_, err = p.do(ctx, "click("+action.Quote(b)+")")
		case failure.Kind == action.Disabled || failure.Kind == action.Obscured:
			_, err = p.do(ctx, "wait(ms=4000)")
		case failure.Kind == action.NotFound || failure.Kind == action.NotVisible || failure.Kind == action.Ambiguous:
			if next = p.refind(text, want); next == "" {
				return res, nil
			}
		default:
			return res, nil
		}
		if err == nil {
			res, err = p.do(ctx, next)
		}
		if next != text && err == nil && res.Observation.LastActionError != nil && res.Observation.LastActionError.Kind == action.NotFound {
			return res, nil
		}
	}
	return res, err
}

// refind names the element of an action by what it is instead of by its selector.
func (p *performance) refind(text string, want *take) string {
	if want == nil || want.about == nil || !samePage(p.last.Observation.URL, want.before) {
		return ""
	}
	var alike, named []gym.Element
	above := inOverlays(p.last.Observation)
	for _, e := range p.last.Observation.Elements {
		if e.Role != want.about.Role {
			continue
		}
		if !above[e.Bid] {
			alike = append(alike, e)
		}
		if e.Name == want.about.Name {
			named = append(named, e)
		}
	}
	bid := ""
	switch {
	case want.about.Place < len(named):
		bid = named[want.about.Place].Bid
	case want.about.Index < len(alike) && len(alike) >= want.about.Of: // with fewer it is another page
		bid = alike[want.about.Index].Bid
	default:
		return ""
	}
	selector := selectorOf(text)
	for _, name := range []string{"selector=", ""} {
		if old := name + action.Quote(selector); strings.Contains(text, old) {
			return strings.Replace(text, old, "bid="+action.Quote(bid), 1)
		}
	}
	return ""
}

// mend looks at what an action has led to, and does something about it.
func (p *performance) mend(ctx context.Context, text string, want *take, try int) (*gym.Result, error) {
	o := p.last.Observation
	if o.Dialog != nil {
		return p.do(ctx, "dialog_accept()")
	}
	if p.signedOut(want) {
		if err := p.signIn(ctx); err != nil || p.good(p.last, want) {
			return p.last, err
		}
		return p.again(ctx, text, want)
	}
	if link := signInLink(o); link != "" && p.password != "" && o.LastActionError != nil && o.LastActionError.Kind == action.NotFound {
		// A page that anybody may see, without what is only there for those who are signed in.
		if res, err := p.do(ctx, "click("+action.Quote(link)+")"); err != nil || res.Done() {
			return res, err
		}
		if err := p.signIn(ctx); err != nil {
			return p.last, err
		}
		return p.again(ctx, text, want)
	}
	if b := confirming(o); b != "" && o.LastActionError == nil {
		return p.do(ctx, "click("+action.Quote(b)+")")
	}
	if o.LastActionError == nil && want != nil && samePage(o.URL, want.after) && o.Title != want.title {
		// The right address, but an error stands in the place of the page.
		return p.do(ctx, "goto("+action.Quote(want.after)+")")
	}
	if try == 0 && o.LastActionError == nil {
		// Perhaps it only takes its time. A page that is left sends nothing that is still held.
		return p.do(ctx, "wait(ms=9000)")
	}
	return p.again(ctx, text, want)
}

// again goes back to the page on which an action was to be made, fills in what had been
// filled in there, and makes it once more.
func (p *performance) again(ctx context.Context, text string, want *take) (*gym.Result, error) {
	if want == nil {
		return p.attempt(ctx, text, want)
	}
	res, err := p.do(ctx, "goto("+action.Quote(want.before)+")")
	if err != nil || res.Done() {
		return res, err
	}
	if !samePage(res.Observation.URL, want.before) || res.Observation.LastActionError != nil {
		return res, nil
	}
	if (want.potential > 0 || len(want.news) > 0) && p.good(res, want) {
		return res, nil // it had taken effect after all
	}
	first := p.k - 1
	for first > 0 && samePage(p.score[first-1].before, want.before) && (fills(&p.score[first-1]) || p.score[first-1].opens(want)) {
		first--
	}
	for i := first; i < p.k-1; i++ {
		if res, err = p.attempt(ctx, p.score[i].text, &p.score[i]); err != nil || res.Done() {
			return res, err
		}
	}
	return p.attempt(ctx, text, want)
}

// opens says whether a press brought about the element that a later action is about, and
// nothing else: what has taken effect is not done twice.
func (t *take) opens(later *take) bool {
	return !t.gained && later.about != nil && later.about.Name != "" && t.news[later.about.Role+" "+later.about.Name] > 0
}

// fills says whether an action only changes what a form holds.
func fills(t *take) bool {
	switch name, _, _ := strings.Cut(t.text, "("); name {
	case "fill", "clear", "select_option", "check", "uncheck", "focus", "hover", "upload_file":
		return true
	case "click":
		return t.about != nil && (t.about.Role == "radio" || t.about.Role == "checkbox" || t.about.Role == "option")
	}
	return false
}

// encore is what is left when the script is over and the task is not done: a window that
// asked at the very end, or an answer that is still to come.
func (p *performance) encore(ctx context.Context) error {
	if len(p.score) == 0 || p.k == 0 || p.k > len(p.score) {
		return nil
	}
	want := p.score[p.k-1]
	for try := 0; try < maxMends && !p.last.Done(); try++ {
		if _, err := p.mend(ctx, want.text, &want, try); err != nil {
			return err
		}
	}
	return nil
}
