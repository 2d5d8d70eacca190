package agent

import (
	"context"
	"net/url"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
)

// take is one action of a rehearsal, and what came of it.
type take struct {
	text string
	// about is the element that it named by a selector.
	about *gym.About
	// before and after are the addresses of the page.
	before, after string
	// potential is what had been reached after it.
	potential float64
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
	at := first.Observation.URL
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
		t.after, t.potential, t.failed = at, res.Info.Potential, res.Observation.LastActionError != nil
		r.score = append(r.score, t)
		return res, nil
	})
	return lost
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
