package soak

import (
	"context"
	"time"

	"github.com/pommelgym/pommel/client"
)

// trouble draws what happens to the client before or during its next call. Standing still is the
// one thing that takes time before it. It returns true when the client is to die in the call.
func (p *player) trouble(ctx context.Context) (dies bool) {
	lease := p.s.c.Lease
	switch n := p.rng.IntN(100); {
	case n < 1:
		return true
	case n < 2: // for longer than the lease
		p.stand(ctx, lease+lease/4)
	case n < 4: // and for less
		p.stand(ctx, p.between(0, lease/4))
	case n < 9:
		p.stall()
	case n < 24:
		p.cutSoon()
	}
	return false
}

func (p *player) between(from, to time.Duration) time.Duration {
	return from + time.Duration(p.rng.Int64N(int64(to-from)))
}

func (p *player) stand(ctx context.Context, d time.Duration) {
	p.s.count(&p.s.res.Pauses)
	_ = pause(ctx, d) // the caller looks at ctx
}

// cutSoon breaks the connection in the middle of the next call, or of one after it.
func (p *player) cutSoon() {
	p.s.count(&p.s.res.Cuts)
	p.pending = append(p.pending, time.AfterFunc(p.between(0, 40*time.Millisecond), p.line.cut))
}

// wasCut says whether the connection was broken in this episode, or right before it.
func (p *player) wasCut() bool { return p.line.cutAfter(p.began.Add(-time.Second)) }

// stall has nothing go through the line for a while.
func (p *player) stall() {
	p.s.count(&p.s.res.Stalls)
	p.line.hold()
	p.pending = append(p.pending, time.AfterFunc(p.between(0, 300*time.Millisecond), p.line.release))
}

// calm ends what has not struck yet.
func (p *player) calm() {
	for _, t := range p.pending {
		t.Stop()
	}
	p.pending = nil
	p.line.release()
}

// dieIn ends the client in the middle of a step. Half of those whose episodes are kept
// leave theirs to the next life; that of the others is for the lease to free.
func (p *player) dieIn(ctx context.Context, sess *client.Session, action string, e estate) {
	if p.keep && p.rng.IntN(2) == 0 {
		e.since = p.heard
		p.left = &e
	}
	ctx, cancel := context.WithTimeout(ctx, p.between(0, 40*time.Millisecond))
	defer cancel()
	_, _ = sess.Step(ctx, action) // nobody hears the answer
}
