package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
)

const (
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 2 * time.Second
	closeLimit   = 10 * time.Second
)

// Request asks for an episode.
type Request struct {
	Task string
	Seed int64
	// View says what the observations of the episode hold besides the text; nil is nothing.
	View *View
	// Wait bounds the wait for a free world: 0 is the server's default, negative is not at all.
	Wait time.Duration
	// Lease is how long this caller may be silent: 0 is the server's default.
	Lease time.Duration
	// MaxSteps is a step limit in place of the task's own; 0 keeps the task's.
	MaxSteps int
	// Profile names the perturbations of the episode, such as "rough" or "rough@0.5"; "" is none.
	Profile string
}

// Result is the answer to Reset (Step 0) and Step.
type Result struct {
	EpisodeID   string
	Step        int
	Instruction string // what the agent is asked to do
	Observation *Observation
	Reward      float64
	Terminated  bool
	Truncated   bool
	Info        *Info
}

// Done says that the episode is over.
func (r *Result) Done() bool { return r.Terminated || r.Truncated }

// Session is one agent's environment: one episode after the other, over one stream.
// Its methods may be called from many goroutines; calls are made one after the other.
type Session struct {
	c     *Client
	lease time.Duration // the server's default

	turn chan struct{} // holds one token; taken for the length of a call
	beat heartbeat

	// Owned by the holder of turn.
	stream      *stream
	episode     string
	instruction string
	view        *View
	calls       int32 // the last numbered call whose answer is known
	pending     *pommelv1.SessionRequest
	saved       map[string]bool // checkpoints
	lost        error           // why the episode is void
	over        bool            // Close was called
	// orphans are episodes that started after their Reset had been given up.
	orphans []string
}

// Session opens an environment. It fails at once when the server cannot be reached or
// refuses this caller. Close it to free its world.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	info, err := c.Server(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{
		c:     c,
		lease: time.Duration(info.GetLeaseMs()) * time.Millisecond,
		turn:  make(chan struct{}, 1),
	}, nil
}

// Reset starts an episode and closes the one before it. When its context ends early the
// episode may start all the same; the next Reset, Close or the lease frees it.
func (s *Session) Reset(ctx context.Context, r Request) (*Result, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	s.beat.stop()
	call := &pommelv1.ResetRequest{
		Task: r.Task, Seed: r.Seed, View: r.View, Client: s.c.opts.Name,
		RequestId: rand.Text(), PreviousEpisodeId: s.episode,
		WaitMs: waitMS(r.Wait), LeaseMs: r.Lease.Milliseconds(), MaxSteps: int32(r.MaxSteps), Profile: r.Profile,
	}
	res, err := s.call(ctx, &pommelv1.SessionRequest{Call: &pommelv1.SessionRequest_Reset_{Reset_: call}})
	if err != nil {
		return nil, err
	}
	got := res.GetReset_()
	s.episode, s.instruction, s.view = got.GetEpisodeId(), got.GetInstruction(), r.View
	s.calls, s.pending, s.lost, s.saved = 0, nil, nil, map[string]bool{}
	if s.c.opts.Heartbeat {
		lease := r.Lease
		if lease == 0 {
			lease = s.lease
		}
		s.beat.start(s.c, s.episode, lease)
	}
	s.closeOrphans(ctx)
	return &Result{EpisodeID: s.episode, Instruction: s.instruction, Observation: got.GetObservation(), Info: got.GetInfo()}, nil
}

// Step performs one action string. When its context ends early the step is made all the
// same: calling Step again with the same action gives its result, and calling it with
// another action makes that one the next step.
func (s *Session) Step(ctx context.Context, action string) (*Result, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	if err := s.inEpisode(); err != nil {
		return nil, err
	}
	res, err := s.numbered(ctx, func(n int32) *pommelv1.SessionRequest {
		call := &pommelv1.StepRequest{EpisodeId: s.episode, Step: n, Action: action, View: s.view}
		return &pommelv1.SessionRequest{Call: &pommelv1.SessionRequest_Step{Step: call}}
	})
	if err != nil {
		return nil, err
	}
	got := res.GetStep()
	r := &Result{
		EpisodeID: s.episode, Step: int(got.GetStep()), Instruction: s.instruction, Observation: got.GetObservation(),
		Reward: got.GetReward(), Terminated: got.GetTerminated(), Truncated: got.GetTruncated(), Info: got.GetInfo(),
	}
	if r.Done() && len(s.saved) == 0 {
		s.beat.stop()
	}
	return r, nil
}

// Observe looks again without a step, with the view of the episode or with another one.
func (s *Session) Observe(ctx context.Context, view *View) (*Observation, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	if err := s.inEpisode(); err != nil {
		return nil, err
	}
	if view == nil {
		view = s.view
	}
	call := &pommelv1.ObserveRequest{EpisodeId: s.episode, View: view}
	res, err := s.call(ctx, &pommelv1.SessionRequest{Call: &pommelv1.SessionRequest_Observe{Observe: call}})
	if err != nil {
		return nil, s.judge(err)
	}
	return res.GetObserve().GetObservation(), nil
}

// Heartbeat renews the lease and returns its length.
func (s *Session) Heartbeat(ctx context.Context) (time.Duration, error) {
	if err := s.take(ctx); err != nil {
		return 0, err
	}
	defer s.give()
	if err := s.inEpisode(); err != nil {
		return 0, err
	}
	call := &pommelv1.HeartbeatRequest{EpisodeId: s.episode}
	res, err := s.call(ctx, &pommelv1.SessionRequest{Call: &pommelv1.SessionRequest_Heartbeat{Heartbeat: call}})
	if err != nil {
		return 0, s.judge(err)
	}
	return time.Duration(res.GetHeartbeat().GetLeaseMs()) * time.Millisecond, nil
}

// Close frees the world and ends the stream. It waits for a call in progress. Closing
// twice is no error.
func (s *Session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return &Error{Kind: Canceled, Message: "a call was still in progress; the lease frees the world", Err: ctx.Err()}
	}
	defer s.give()
	if s.over {
		return nil
	}
	s.over = true
	s.beat.stop()
	var err error
	if s.episode != "" {
		err = s.closeEpisode(ctx, s.episode)
	}
	if s.stream != nil {
		s.stream.close(time.Second, s.late)
		s.stream = nil
	}
	s.closeOrphans(ctx)
	return err
}

func (s *Session) closeEpisode(ctx context.Context, id string) error {
	call := &pommelv1.CloseRequest{EpisodeId: id}
	_, err := s.call(ctx, &pommelv1.SessionRequest{Call: &pommelv1.SessionRequest_Close{Close: call}})
	return err
}

// closeOrphans frees worlds that nobody asked for any more. What it cannot reach, the lease frees.
func (s *Session) closeOrphans(ctx context.Context) {
	for _, id := range s.orphans {
		_ = s.c.CloseEpisode(ctx, id)
	}
	s.orphans = nil
}

// call makes one request, and makes it again on a new stream when the stream breaks.
// Every request of a Session may be repeated: that is what ids and numbers are for.
func (s *Session) call(ctx context.Context, req *pommelv1.SessionRequest) (*pommelv1.SessionResponse, error) {
	req.Keep = s.c.opts.Retries > 0
	for attempt := 0; ; attempt++ {
		res, err := s.try(ctx, req)
		switch {
		case err == nil && res.GetError() != nil:
			return nil, fromWire(res.GetError())
		case err == nil:
			return res, nil
		case ctx.Err() != nil:
			return nil, &Error{Kind: Canceled, Message: "the call was given up before its answer came", Err: context.Cause(ctx)}
		}
		if k := KindOf(asError(err)); attempt >= s.c.opts.Retries || k == Unauthenticated || k == InvalidArgument || k == Unsupported {
			return nil, gaveUp(err, attempt)
		}
		if err := pause(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

func (s *Session) try(ctx context.Context, req *pommelv1.SessionRequest) (*pommelv1.SessionResponse, error) {
	if s.stream == nil {
		st, err := s.c.openStream()
		if err != nil {
			return nil, err
		}
		s.stream = st
	}
	res, err := s.stream.exchange(ctx, req, s.late)
	if err != nil && (ctx.Err() == nil || s.stream.ctx.Err() != nil) {
		s.stream.cut()
		s.stream = nil
	}
	return res, err
}

// late sees the answers that nobody waited for.
func (s *Session) late(res *pommelv1.SessionResponse) {
	if r := res.GetReset_(); r != nil {
		s.orphans = append(s.orphans, r.GetEpisodeId())
	}
}

// judge marks an episode that an error has ended.
func (s *Session) judge(err error) error {
	switch KindOf(err) {
	case NotFound:
		// The server gave this id away itself, so it has lost its memory.
		err = &Error{Kind: WorldLost, Message: "the server does not know the episode any more", Hint: "it was restarted; the episode is void", Err: err}
	case WorldLost, LeaseExpired, StaleEpisode:
	default:
		return err
	}
	s.lost = err
	s.beat.stop()
	return err
}

func (s *Session) inEpisode() error {
	switch {
	case s.lost != nil:
		return s.lost
	case s.episode == "":
		return &Error{Kind: EpisodeOver, Message: "no episode was started", Hint: "call Reset"}
	}
	return nil
}

func (s *Session) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return &Error{Kind: Canceled, Message: "wait for the call before this one", Err: context.Cause(ctx)}
	}
	if s.over {
		s.give()
		return &Error{Kind: EpisodeOver, Message: "the session is closed", Hint: "open another one"}
	}
	return nil
}

func (s *Session) give() { <-s.turn }

func gaveUp(err error, attempts int) error {
	var e *Error
	if !errors.As(asError(err), &e) {
		return err
	}
	if e.Kind == Internal || e.Kind == Canceled { // what the transport makes of a stream that broke
		e.Kind = Unavailable
	}
	if attempts > 0 {
		e.Message = fmt.Sprintf("%s, after %d more attempts", e.Message, attempts)
	}
	return e
}

// pause waits longer from attempt to attempt, and not in step with other callers.
func pause(ctx context.Context, attempt int) error {
	d := min(firstBackoff<<min(attempt, 10), lastBackoff)
	timer := time.NewTimer(d/2 + mathrand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &Error{Kind: Canceled, Message: "the call was given up while the server could not be reached", Err: context.Cause(ctx)}
	}
}

// waitMS keeps a short wait from becoming 0, which means the default.
func waitMS(d time.Duration) int64 {
	switch {
	case d < 0:
		return -1
	case d == 0:
		return 0
	}
	return max(1, d.Milliseconds())
}
