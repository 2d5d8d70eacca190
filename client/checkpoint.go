package client

import (
	"context"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
)

// Checkpoint saves the whole state of the episode: browser, application, database, what
// was earned. Restore goes back to it any number of times, also after the episode has
// ended; checkpoints make a tree and end with the episode. While it holds any, an episode
// that has ended keeps its world: Close, Reset or Forget the last one.
//
// An error of kind Unsupported says that the server's driver has no checkpoints or that
// this state cannot be saved; the episode goes on.
func (s *Session) Checkpoint(ctx context.Context) (string, error) {
	if err := s.take(ctx); err != nil {
		return "", err
	}
	defer s.give()
	if err := s.inEpisode(); err != nil {
		return "", err
	}
	res, err := s.numbered(ctx, func(n int32) *pommelv1.SessionRequest {
		call := &pommelv1.CheckpointRequest{EpisodeId: s.episode, Call: n}
		return &pommelv1.SessionRequest{Call: &pommelv1.SessionRequest_Checkpoint{Checkpoint: call}}
	})
	if err != nil {
		return "", err
	}
	id := res.GetCheckpoint().GetCheckpointId()
	s.saved[id] = true
	return id, nil
}

// Restore puts the episode back to a checkpoint. Its result is what the agent saw then,
// with a reward of 0; steps are counted from there again.
func (s *Session) Restore(ctx context.Context, checkpoint string) (*Result, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	if err := s.inEpisode(); err != nil {
		return nil, err
	}
	if !s.saved[checkpoint] {
		return nil, &Error{Kind: InvalidArgument, Message: "the episode has no checkpoint " + checkpoint, Hint: "give one that Checkpoint returned in this episode"}
	}
	res, err := s.numbered(ctx, func(n int32) *pommelv1.SessionRequest {
		call := &pommelv1.RestoreRequest{EpisodeId: s.episode, Call: n, CheckpointId: checkpoint}
		return &pommelv1.SessionRequest{Call: &pommelv1.SessionRequest_Restore{Restore: call}}
	})
	if err != nil {
		return nil, err
	}
	got := res.GetRestore()
	return &Result{EpisodeID: s.episode, Step: int(got.GetStep()), Instruction: s.instruction, Observation: got.GetObservation(), Info: got.GetInfo()}, nil
}

// Forget frees a checkpoint. One that is not held is no error.
func (s *Session) Forget(ctx context.Context, checkpoint string) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	if err := s.inEpisode(); err != nil || !s.saved[checkpoint] {
		return err
	}
	call := &pommelv1.ForgetRequest{EpisodeId: s.episode, CheckpointId: checkpoint}
	if _, err := s.call(ctx, &pommelv1.SessionRequest{Call: &pommelv1.SessionRequest_Forget{Forget: call}}); err != nil {
		return s.judge(err)
	}
	delete(s.saved, checkpoint)
	return nil
}

// numbered makes the next call that changes the episode. A call whose answer did not come
// is asked for again first, with its own number, unless it is the very one that is wanted.
func (s *Session) numbered(ctx context.Context, make func(n int32) *pommelv1.SessionRequest) (*pommelv1.SessionResponse, error) {
	if s.pending != nil && !same(s.pending, make(s.calls+1)) {
		if _, err := s.resolve(ctx); err != nil {
			return nil, err
		}
	}
	if s.pending == nil {
		s.pending = make(s.calls + 1)
	}
	return s.resolve(ctx)
}

// resolve gets the answer of the pending call.
func (s *Session) resolve(ctx context.Context) (*pommelv1.SessionResponse, error) {
	pending := s.pending
	res, err := s.call(ctx, pending)
	if err != nil {
		if k := KindOf(err); k != Canceled && k != Unavailable {
			s.pending = nil
		}
		return nil, s.judge(err)
	}
	s.calls, s.pending = s.calls+1, nil
	// An answer that nobody waited for was not seen by its caller.
	if c := res.GetCheckpoint(); c != nil {
		s.saved[c.GetCheckpointId()] = true
	}
	return res, nil
}

// same says whether two numbered calls ask for the same thing.
func same(a, b *pommelv1.SessionRequest) bool {
	switch {
	case a.GetStep() != nil && b.GetStep() != nil:
		return a.GetStep().GetAction() == b.GetStep().GetAction()
	case a.GetRestore() != nil && b.GetRestore() != nil:
		return a.GetRestore().GetCheckpointId() == b.GetRestore().GetCheckpointId()
	}
	return a.GetCheckpoint() != nil && b.GetCheckpoint() != nil
}
