package agent

import (
	"context"
	"net/url"
	"regexp"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
)

// take is one action of a rehearsal, and what came of it.
type take struct {
	text string
	// about is the element that it named by a selector.
	about *gym.About
	// before and after are the addresses of the page, title what it was called afterwards.
	before, after, title string
	// potential is what had been reached after it, gained that it changed that.
	potential float64
	gained    bool
	// news is what the page showed after it and not before, for presses that stay on the page.
	news map[string]int
	// failed says that it failed without perturbations too: the script counts on it.
	failed bool
}

// rehearsal is an episode without perturbations, as the script played it.
type rehearsal []take

// Rehearse plays the script without perturbations and notes what each action did: what a
// person knows who has used the application before.
func (r *recovering) Rehearse(ctx context.Context, env *gym.Env, task string, seed int64) error {
	r.score = nil
	first, err := env.Reset(ctx, gym.Request{Task: task, Seed: seed, View: gym.View{}, Client: "rehearsal"})
	if err != nil {
		return err
	}
	at, shown, reached := first.Observation.URL, first.Observation.Text, first.Info.Potential
	var lost error
	// What the script itself makes of it shows when it is played for good.
	_ = env.Oracle(ctx, func(ctx context.Context, text string) (*gym.Result, error) {
		t := take{text: text, before: at}
		if s := selectorOf(text); s != "" {
			if t.about, lost = env.Describe(ctx, s); lost != nil {
				return nil, lost
			}
		}
		res, err := env.Step(ctx, text, gym.View{Elements: true})
		if err != nil {
			if gym.ErrorKind(err) != gym.EpisodeOver {
				lost = err
			}
			return nil, err
		}
		at = res.Observation.URL
		t.after, t.title = at, res.Observation.Title
		t.potential, t.failed = res.Info.Potential, res.Observation.LastActionError != nil
		t.gained, reached = t.potential != reached, t.potential
		if samePage(t.before, t.after) && presses(&t) {
			t.news = newIn(shown, res.Observation.Text)
		}
		shown = res.Observation.Text
		r.score = append(r.score, t)
		return res, nil
	})
	return lost
}

// presses says whether an action is one that an application answers to.
func presses(t *take) bool {
	name, _, _ := strings.Cut(t.text, "(")
	return (name == "click" || name == "press") && !fills(t)
}

// newIn is what a page shows more often than another: elements by role and name, and, as
// words may change, by role and the numbers in their names.
func newIn(before, after string) map[string]int {
	old, news := features(before), map[string]int{}
	for k, n := range features(after) {
		if n > old[k] {
			news[k] = n
		}
	}
	return news
}

var digits = regexp.MustCompile(`\d+`)

func features(text string) map[string]int {
	out := map[string]int{}
	for _, l := range parseText(text) {
		if l.name == "" {
			continue
		}
		out[l.role+" "+l.name]++
		if n := digits.FindAllString(l.name, -1); n != nil {
			out[l.role+" #"+strings.Join(n, " ")]++
		}
	}
	return out
}

// shows says whether a page has any of the news.
func (t *take) shows(text string) bool {
	if len(t.news) == 0 {
		return true
	}
	now := features(text)
	for k, n := range t.news {
		if now[k] >= n {
			return true
		}
	}
	return false
}

// selectorOf is the selector of an action of one call, or "".
func selectorOf(text string) string {
	calls, err := action.Parse(text)
	if err != nil || len(calls) != 1 {
		return ""
	}
	t, ok := calls[0].Target("bid")
	if !ok {
		return ""
	}
	return t.Selector
}

// samePage compares addresses without what a page may add to them.
func samePage(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Host == y.Host && x.Path == y.Path && x.RawQuery == y.RawQuery
}
