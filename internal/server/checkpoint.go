package server

import (
	"context"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/internal/fault"
)

// Checkpoint answers the call of that name.
func (v service) Checkpoint(ctx context.Context, r *pommelv1.CheckpointRequest) (*pommelv1.CheckpointResponse, error) {
	return unary(v.s, "Checkpoint", r.GetEpisodeId(), func() (*pommelv1.CheckpointResponse, error) { return v.s.checkpoint(ctx, r) })
}

// Restore answers the call of that name.
func (v service) Restore(ctx context.Context, r *pommelv1.RestoreRequest) (*pommelv1.RestoreResponse, error) {
	return unary(v.s, "Restore", r.GetEpisodeId(), func() (*pommelv1.RestoreResponse, error) { return v.s.restore(ctx, r) })
}

// Forget answers the call of that name.
func (v service) Forget(ctx context.Context, r *pommelv1.ForgetRequest) (*pommelv1.ForgetResponse, error) {
	return unary(v.s, "Forget", r.GetEpisodeId(), func() (*pommelv1.ForgetResponse, error) { return v.s.forget(ctx, r) })
}

func (s *Server) checkpoint(ctx context.Context, r *pommelv1.CheckpointRequest) (*pommelv1.CheckpointResponse, error) {
	if err := wantCall(r.GetEpisodeId(), r.GetCall()); err != nil {
		return nil, err
	}
	id, err := s.sessions.Checkpoint(ctx, r.GetEpisodeId(), int(r.GetCall()))
	if err != nil {
		return nil, err
	}
	return &pommelv1.CheckpointResponse{CheckpointId: id}, nil
}

func (s *Server) restore(ctx context.Context, r *pommelv1.RestoreRequest) (*pommelv1.RestoreResponse, error) {
	if err := wantCall(r.GetEpisodeId(), r.GetCall()); err != nil {
		return nil, err
	}
	if err := wantCheckpoint(r.GetCheckpointId()); err != nil {
		return nil, err
	}
	res, err := s.sessions.Restore(ctx, r.GetEpisodeId(), int(r.GetCall()), r.GetCheckpointId())
	if err != nil {
		return nil, err
	}
	return &pommelv1.RestoreResponse{Step: int32(res.Step), Observation: fromObservation(res.Observation), Info: fromInfo(&res.Info)}, nil
}

func (s *Server) forget(ctx context.Context, r *pommelv1.ForgetRequest) (*pommelv1.ForgetResponse, error) {
	if err := wantEpisode(r.GetEpisodeId()); err != nil {
		return nil, err
	}
	if err := wantCheckpoint(r.GetCheckpointId()); err != nil {
		return nil, err
	}
	if err := s.sessions.Forget(ctx, r.GetEpisodeId(), r.GetCheckpointId()); err != nil {
		return nil, err
	}
	return &pommelv1.ForgetResponse{}, nil
}

func wantCall(episode string, n int32) error {
	if n < 0 {
		return badRequest("call is %d; calls are numbered from 1, and 0 means the next one", n)
	}
	return wantEpisode(episode)
}

func wantCheckpoint(id string) error {
	if id == "" {
		return fault.New(fault.InvalidArgument, "checkpoint_id is empty; want one that Checkpoint returned")
	}
	return nil
}
