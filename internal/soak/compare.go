package soak

import (
	"context"
	"math"
	"time"

	"github.com/pommelgym/pommel/client"
)

// same says whether two rewards are one: sums of weights may differ in their last bits.
func same(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// compare holds the answer of the next step against the undisturbed one. Only the first
// difference of an episode is counted; then it returns false.
func (p *player) compare(e *estate, step int, reward float64, done bool, info *client.Info) bool {
	want := e.plan.moments[e.made]
	e.made++
	e.total += reward
	res := &p.s.res
	switch {
	case step != e.made:
		p.s.fault(&res.Twice, "%s: episode %s counts %d steps after %d", e.plan, e.id, step, e.made)
	case info.GetCapped():
		// A request was slower than a step waits for: this machine's fault, and it is said.
		p.s.count(&res.Capped)
		return false
	case !same(reward, want.reward) || done != want.done || info.GetSuccess() != want.success:
		p.s.fault(&res.FalseRewards, "%s: episode %s, step %d: reward %g, done %v, success %v; undisturbed %g, %v, %v",
			e.plan, e.id, step, reward, done, info.GetSuccess(), want.reward, want.done, want.success)
	case info.GetObservationHash() != want.hash:
		p.s.fault(&res.Unlike, "%s: episode %s, step %d: the chain is %.12s, undisturbed %.12s", e.plan, e.id, step, info.GetObservationHash(), want.hash)
	default:
		return true
	}
	return false
}

// close compares the server's book of a finished episode with the client's.
func (p *player) close(ctx context.Context, e estate) {
	st, err := p.s.direct.Episode(ctx, e.id)
	switch {
	case ctx.Err() != nil:
		return
	case client.KindOf(err) == client.LeaseExpired && time.Since(p.heard) > p.s.c.Lease*3/4:
	case client.KindOf(err) == client.StaleEpisode && !p.keep && p.wasCut(): // closed with its stream
	case err != nil:
		p.s.fault(&p.s.res.Failures, "%s: look at episode %s: %v", e.plan, e.id, err)
	case int(st.GetLast().GetStep()) != e.made || int(st.GetCalls()) != e.made:
		p.s.fault(&p.s.res.Twice, "%s: episode %s has made %d calls and %d steps for %d", e.plan, e.id, st.GetCalls(), st.GetLast().GetStep(), e.made)
	case !same(st.GetReward(), e.total) || !same(e.total, e.plan.reward):
		p.s.fault(&p.s.res.FalseRewards, "%s: episode %s earned %g by the client's book, %g by the server's, %g undisturbed", e.plan, e.id, e.total, st.GetReward(), e.plan.reward)
	}
	p.s.finished(e.made)
}
