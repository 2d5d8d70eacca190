package server

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
)

// TestLostReplyOnEachSurface: the connection is cut after a step has begun. The repetition gets
// the result of the first, the step is made once, the number with another action is an error, and
// so is a step of an episode that is over.
func TestLostReplyOnEachSurface(t *testing.T) {
	t.Parallel()
	eachSurface(t, func(t *testing.T, s surface) {
		var proxy *cuttingProxy
		var cut atomic.Bool
		sessions := newScripted(t, script{step: func(context.Context, string) error {
			if cut.Swap(false) {
				proxy.cut()
			}
			return nil
		}})
		srv := serve(t, sessions, Options{}, "127.0.0.1:0")
		proxy = newProxy(t, srv.url[len("http://"):])
		first, again := s.open(t, "http://"+proxy.l.Addr().String()), s.open(t, srv.url)
		if s.kept { // a socket takes its own episode with it: one that was begun elsewhere outlives it
			first.take(begun(t, sessions))
		} else {
			first.reset()
		}
		cut.Store(true)
		if r := first.step(1, noop); !r.broken {
			t.Errorf("the reply was not lost: %+v", r)
		}
		again.take(first)
		if r := again.step(1, noop); r.broken || r.kind != "" || !strings.Contains(r.text, "page 1") {
			t.Errorf("repeated = %+v", r)
		}
		if done := sessions.done(first.episode); len(done) != 1 {
			t.Errorf("steps made = %q", done)
		}
		if s.name != "nemo gym" { // there the number is the cookie's, see TestNemoCookies
			if r := again.step(1, other); r.kind != string(fault.InvalidArgument) || r.reward != nil && *r.reward != 0 {
				t.Errorf("another action under the same number = %+v", r)
			}
		}
		if err := sessions.CloseEpisode(t.Context(), first.episode); err != nil {
			t.Fatal(err)
		}
		if r := again.step(2, noop); r.kind != string(fault.StaleEpisode) {
			t.Errorf("a step of a closed episode = %+v", r)
		}
		if done := sessions.done(first.episode); len(done) != 1 {
			t.Errorf("steps made = %q", done)
		}
	})
}

// begun is an episode that is nobody's connection's.
func begun(t *testing.T, s *scripted) *player {
	t.Helper()
	res, err := s.Reset(t.Context(), gym.SessionRequest{Request: gym.Request{Task: "buy"}})
	if err != nil {
		t.Fatal(err)
	}
	return &player{episode: res.EpisodeID}
}

// TestForeignTextOnEachSurface: what a page writes, and how much of it, never makes an answer
// that a client cannot read.
func TestForeignTextOnEachSurface(t *testing.T) {
	t.Parallel()
	eachSurface(t, func(t *testing.T, s surface) {
		sessions := newScripted(t, script{observation: func(int) *gym.Observation {
			return &gym.Observation{
				Title: "half \xed\xa0\xbd smile", Text: "nul\x00 and \uffff half \xed\xa0\xbd end", HTML: strings.Repeat("\u6f22", maxPart/3+2),
				Dialog: &gym.Dialog{Message: "\xc0"}, Elements: []gym.Element{{Bid: "1", Name: "\xfe"}},
			}
		}})
		p := s.open(t, serve(t, sessions, Options{}, "127.0.0.1:0").url)
		for i, r := range []reply{p.reset(), p.step(1, noop)} {
			if r.broken || r.kind != "" || !utf8.ValidString(r.text) || !strings.Contains(r.text, "nul\x00 and \uffff half ") || !strings.Contains(r.text, "\uFFFD") {
				t.Errorf("call %d: %+q, kind %q, broken %v", i, r.text[:min(len(r.text), 200)], r.kind, r.broken)
			}
		}
	})
}

// TestEndOnEachSurface: the last answer of an episode is of that episode, a step after it is an
// error and no reward, and the next episode begins with its own first page.
func TestEndOnEachSurface(t *testing.T) {
	t.Parallel()
	eachSurface(t, func(t *testing.T, s surface) {
		url := serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0").url
		p := s.open(t, url)
		first := p.reset()
		if !strings.Contains(first.text, "page 0") || first.reward != nil || first.done {
			t.Errorf("reset = %+v", first)
		}
		if r := p.step(1, noop); !strings.Contains(r.text, "page 1") || r.done {
			t.Errorf("step = %+v", r)
		}
		end := p.step(2, finish)
		if !strings.Contains(end.text, "page 2") || !end.done || !s.silent && (end.reward == nil || *end.reward <= 0) {
			t.Errorf("end = %+v", end)
		}
		if r := p.step(3, noop); r.kind != string(fault.EpisodeOver) || r.reward != nil && *r.reward != 0 {
			t.Errorf("after the end = %+v", r)
		}
		if next := p.reset(); next.episode == first.episode || !strings.Contains(next.text, "page 0") || next.done {
			t.Errorf("next = %+v", next)
		}
	})
}

// TestFaultOnEachSurface: a lost world is an error of its kind without a reward, never said to be a
// success or the agent's doing, and the other callers' episodes go on.
func TestFaultOnEachSurface(t *testing.T) {
	t.Parallel()
	eachSurface(t, func(t *testing.T, s surface) {
		var broken atomic.Bool
		sessions := newScripted(t, script{step: func(context.Context, string) error {
			if broken.Swap(false) {
				return fault.New(fault.WorldLost, "the browser died")
			}
			return nil
		}})
		url := serve(t, sessions, Options{}, "127.0.0.1:0").url
		bad, good := s.open(t, url), s.open(t, url)
		bad.reset()
		good.reset()
		broken.Store(true)
		for n := 1; n <= 2; n++ { // the second call must not take what is left for an honest failure
			r := bad.step(n, finish)
			if r.kind != string(fault.WorldLost) || r.reward != nil && *r.reward != 0 || strings.Contains(r.raw, "success") || strings.Contains(r.raw, `"reward"`) && !strings.Contains(r.raw, `"reward":null`) {
				t.Errorf("call %d of the lost episode = %+v", n, r)
			}
		}
		if r := good.step(1, finish); r.kind != "" || !r.done {
			t.Errorf("the other episode = %+v", r)
		}
	})
}

// TestSilenceOnEachSurface: a caller that says nothing for longer than its lease frees its world, and
// is told so when it comes back. Where the connection keeps the lease, see TestSocketHalfOpen.
func TestSilenceOnEachSurface(t *testing.T) {
	t.Parallel()
	eachSurface(t, func(t *testing.T, s surface) {
		sessions := newScripted(t, script{})
		sessions.lease = 200 * time.Millisecond
		p := s.open(t, serve(t, sessions, Options{}, "127.0.0.1:0").url)
		if s.kept {
			p.take(begun(t, sessions)) // no socket is open yet
		} else {
			p.reset()
		}
		waitEnd(t, sessions, p.episode)
		r := p.step(1, noop)
		if r.kind != string(fault.LeaseExpired) || r.reward != nil && *r.reward != 0 {
			t.Errorf("a step after the lease = %+v", r)
		}
	})
}

// TestCapacityOnEachSurface: a full server is resource_exhausted, not a failure of the agent.
func TestCapacityOnEachSurface(t *testing.T) {
	t.Parallel()
	eachSurface(t, func(t *testing.T, s surface) {
		sessions := newScripted(t, script{reset: func(context.Context) error {
			return fault.New(fault.ResourceExhausted, "no world is free")
		}})
		p := s.open(t, serve(t, sessions, Options{}, "127.0.0.1:0").url)
		if r := p.reset(); r.kind != string(fault.ResourceExhausted) || r.reward != nil {
			t.Errorf("reset = %+v", r)
		}
	})
}
