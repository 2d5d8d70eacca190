package soak

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pommelgym/pommel/client"
	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
)

// callLimit bounds every call of a player: what takes longer hangs.
const callLimit = 3 * time.Minute

// player is one client. It lives many lives, each of which ends by its own death.
type player struct {
	s    *soaking
	rng  *rand.Rand
	line *line
	left *estate

	// Of the life under way.
	keep    bool // its episodes survive its connections
	began   time.Time
	heard   time.Time     // when the last answer came
	pending []*time.Timer // what is still to strike in this episode
}

// estate is an episode that was left behind in the middle: who takes it over knows how many
// answers its owner had seen.
type estate struct {
	plan  *plan
	id    string
	made  int
	total float64
	since time.Time
}

func (s *soaking) client(ctx context.Context, n int, target string) error {
	l, err := newLine(ctx, target)
	if err != nil {
		return err
	}
	defer l.close()
	p := &player{s: s, line: l, rng: rand.New(rand.NewPCG(uint64(s.c.Seed), uint64(n)+1))}
	for s.more(ctx) {
		if err := p.life(ctx); err != nil {
			return err
		}
	}
	return nil
}

// life is a client from its start to its death. Its error is none of the server's.
func (p *player) life(ctx context.Context) error {
	if p.left != nil {
		p.takeOver(ctx, *p.left)
		p.left = nil
	}
	o := client.Options{Name: "soak"}
	if p.keep = p.rng.IntN(4) > 0; !p.keep {
		o.Retries = -1
	}
	c, err := client.Dial(p.line.addr(), o)
	if err != nil {
		return err
	}
	defer c.Close()
	sess, err := c.Session(ctx)
	if err != nil {
		return ignore(client.Unavailable, err) // cut while it was being opened
	}
	for p.s.more(ctx) {
		if !p.episode(ctx, sess) {
			p.line.cut() // without a farewell
			p.s.count(&p.s.res.Deaths)
			return nil
		}
	}
	if ctx.Err() != nil {
		p.line.cut()
		return nil
	}
	return ignore(client.Unavailable, sess.Close())
}

func ignore(kind client.Kind, err error) error {
	if client.KindOf(err) == kind {
		return nil
	}
	return err
}

// episode plays one. It returns false when the client is dead.
func (p *player) episode(ctx context.Context, sess *client.Session) (alive bool) {
	plan := p.s.plans[p.rng.IntN(len(p.s.plans))]
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	defer p.calm()
	p.began, p.heard = time.Now(), time.Now()
	if p.rng.IntN(10) == 0 {
		p.cutSoon()
	}
	r, err := sess.Reset(limited, client.Request{Task: plan.task, Seed: plan.seed})
	if err != nil {
		return p.void(ctx, plan, "reset", err)
	}
	p.heard = time.Now()
	if r.Info.GetObservationHash() != plan.first {
		p.s.fault(&p.s.res.Unlike, "%s: episode %s begins as %.12s, undisturbed as %.12s", plan, r.EpisodeID, r.Info.GetObservationHash(), plan.first)
		return true
	}
	e := estate{plan: plan, id: r.EpisodeID}
	for e.made < len(plan.actions) {
		action := plan.actions[e.made]
		if dies := p.trouble(ctx); dies {
			p.dieIn(ctx, sess, action, e)
			return false
		}
		if r, err = sess.Step(limited, action); err != nil {
			return p.void(ctx, plan, "step", err)
		}
		p.heard = time.Now()
		if !p.compare(&e, r.Step, r.Reward, r.Done(), r.Info) {
			return true
		}
	}
	p.close(ctx, e)
	return true
}

// void notes an episode that the client could not finish. Only its own faults may cause
// that: silence, or a cut that it does not get over.
func (p *player) void(ctx context.Context, plan *plan, call string, err error) (alive bool) {
	if ctx.Err() != nil {
		return true
	}
	kind := client.KindOf(err)
	silent := time.Since(p.heard)
	switch {
	case kind == client.LeaseExpired && silent > p.s.c.Lease*3/4:
	case kind == client.Unavailable && p.wasCut():
	default:
		p.s.fault(&p.s.res.Failures, "%s: %s, after a silence of %v: %v", plan, call, silent.Round(time.Millisecond), err)
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.res.Void[string(kind)]++
	return p.keep
}

// takeOver plays an episode of a dead client to its end, as another one that was told its id.
func (p *player) takeOver(ctx context.Context, e estate) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	p.began, p.heard = time.Now(), e.since
	st, err := p.s.direct.Episode(ctx, e.id)
	if err != nil {
		p.void(ctx, e.plan, "take over", err)
		return
	}
	// The dead one may have asked for one step more than it has seen the answer of.
	if calls := int(st.GetCalls()); calls < e.made || calls > e.made+1 || int(st.GetLast().GetStep()) != calls {
		p.s.fault(&p.s.res.Twice, "%s: episode %s has made %d calls and %d steps; its client has seen %d answers", e.plan, e.id, calls, st.GetLast().GetStep(), e.made)
	}
	for e.made < len(e.plan.actions) {
		p.heard = time.Now()
		r, err := p.s.direct.Step(ctx, &pommelv1.StepRequest{EpisodeId: e.id, Step: int32(e.made) + 1, Action: e.plan.actions[e.made]})
		if err != nil {
			p.void(ctx, e.plan, "step after taking over", err)
			return
		}
		if !p.compare(&e, int(r.GetStep()), r.GetReward(), r.GetTerminated() || r.GetTruncated(), r.GetInfo()) {
			return
		}
	}
	p.heard = time.Now()
	p.s.count(&p.s.res.TakenOver)
	p.close(ctx, e)
	if err := p.s.direct.CloseEpisode(ctx, e.id); err != nil && ctx.Err() == nil {
		p.s.fault(&p.s.res.Failures, "%s: close: %v", e.plan, err)
	}
}
