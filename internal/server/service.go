package server

import (
	"context"
	"strings"
	"time"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/internal/fault"
)

// service answers the calls of pommelv1connect.GymServiceHandler.
type service struct{ s *Server }

// unary times a call, counts it and gives its error the shape of the wire.
func unary[T any](s *Server, name, episode string, f func() (T, error)) (T, error) {
	start := time.Now()
	v, err := f()
	s.metrics.Count("rpc", name, err, time.Since(start))
	if err != nil {
		s.report(name, episode, err)
		var zero T
		return zero, connectError(err)
	}
	return v, nil
}

// ListTasks answers the call of that name.
func (v service) ListTasks(_ context.Context, r *pommelv1.ListTasksRequest) (*pommelv1.ListTasksResponse, error) {
	return unary(v.s, "ListTasks", "", func() (*pommelv1.ListTasksResponse, error) {
		tasks, err := v.s.sessions.Tasks(r.GetSplit(), r.GetDifficulty())
		if err != nil {
			return nil, err
		}
		return &pommelv1.ListTasksResponse{Tasks: fromTasks(tasks)}, nil
	})
}

// GetServer answers the call of that name.
func (v service) GetServer(context.Context, *pommelv1.GetServerRequest) (*pommelv1.GetServerResponse, error) {
	return unary(v.s, "GetServer", "", func() (*pommelv1.GetServerResponse, error) {
		return fromDescription(v.s.sessions.Describe()), nil
	})
}

// Reset answers the call of that name.
func (v service) Reset(ctx context.Context, r *pommelv1.ResetRequest) (*pommelv1.ResetResponse, error) {
	return unary(v.s, "Reset", "", func() (*pommelv1.ResetResponse, error) { return v.s.reset(ctx, r) })
}

// Step answers the call of that name.
func (v service) Step(ctx context.Context, r *pommelv1.StepRequest) (*pommelv1.StepResponse, error) {
	return unary(v.s, "Step", r.GetEpisodeId(), func() (*pommelv1.StepResponse, error) { return v.s.step(ctx, r) })
}

// Observe answers the call of that name.
func (v service) Observe(ctx context.Context, r *pommelv1.ObserveRequest) (*pommelv1.ObserveResponse, error) {
	return unary(v.s, "Observe", r.GetEpisodeId(), func() (*pommelv1.ObserveResponse, error) { return v.s.observe(ctx, r) })
}

// GetEpisode answers the call of that name.
func (v service) GetEpisode(ctx context.Context, r *pommelv1.GetEpisodeRequest) (*pommelv1.GetEpisodeResponse, error) {
	return unary(v.s, "GetEpisode", r.GetEpisodeId(), func() (*pommelv1.GetEpisodeResponse, error) { return v.s.getEpisode(ctx, r) })
}

// Heartbeat answers the call of that name.
func (v service) Heartbeat(ctx context.Context, r *pommelv1.HeartbeatRequest) (*pommelv1.HeartbeatResponse, error) {
	return unary(v.s, "Heartbeat", r.GetEpisodeId(), func() (*pommelv1.HeartbeatResponse, error) { return v.s.heartbeat(ctx, r) })
}

// Close answers the call of that name.
func (v service) Close(ctx context.Context, r *pommelv1.CloseRequest) (*pommelv1.CloseResponse, error) {
	return unary(v.s, "Close", r.GetEpisodeId(), func() (*pommelv1.CloseResponse, error) { return v.s.closeEpisode(ctx, r) })
}

func (s *Server) reset(ctx context.Context, r *pommelv1.ResetRequest) (*pommelv1.ResetResponse, error) {
	req, err := toSessionRequest(r)
	if err != nil {
		return nil, err
	}
	res, err := s.sessions.Reset(ctx, req)
	if err != nil {
		return nil, err
	}
	return fromReset(res), nil
}

func (s *Server) step(ctx context.Context, r *pommelv1.StepRequest) (*pommelv1.StepResponse, error) {
	view, err := toView(r.GetView())
	if err != nil {
		return nil, err
	}
	if err := wantEpisode(r.GetEpisodeId()); err != nil {
		return nil, err
	}
	if r.GetStep() < 0 {
		return nil, badRequest("step is %d; steps are numbered from 1, and 0 means the next one", r.GetStep())
	}
	res, err := s.sessions.Step(ctx, r.GetEpisodeId(), int(r.GetStep()), r.GetAction(), view)
	if err != nil {
		return nil, err
	}
	return fromStep(res), nil
}

func (s *Server) observe(ctx context.Context, r *pommelv1.ObserveRequest) (*pommelv1.ObserveResponse, error) {
	view, err := toView(r.GetView())
	if err != nil {
		return nil, err
	}
	if err := wantEpisode(r.GetEpisodeId()); err != nil {
		return nil, err
	}
	o, err := s.sessions.Observe(ctx, r.GetEpisodeId(), view)
	if err != nil {
		return nil, err
	}
	return &pommelv1.ObserveResponse{Observation: fromObservation(o)}, nil
}

func (s *Server) getEpisode(ctx context.Context, r *pommelv1.GetEpisodeRequest) (*pommelv1.GetEpisodeResponse, error) {
	if err := wantEpisode(r.GetEpisodeId()); err != nil {
		return nil, err
	}
	st, err := s.sessions.Status(ctx, r.GetEpisodeId())
	if err != nil {
		return nil, err
	}
	return fromStatus(st, s.agents.token(st.EpisodeID)), nil
}

func (s *Server) heartbeat(ctx context.Context, r *pommelv1.HeartbeatRequest) (*pommelv1.HeartbeatResponse, error) {
	if err := wantEpisode(r.GetEpisodeId()); err != nil {
		return nil, err
	}
	lease, err := s.sessions.Heartbeat(ctx, r.GetEpisodeId())
	if err != nil {
		return nil, err
	}
	return &pommelv1.HeartbeatResponse{LeaseMs: lease.Milliseconds()}, nil
}

// closeEpisode goes on without its caller: a caller that closes and leaves means it.
func (s *Server) closeEpisode(ctx context.Context, r *pommelv1.CloseRequest) (*pommelv1.CloseResponse, error) {
	if err := wantEpisode(r.GetEpisodeId()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := s.sessions.CloseEpisode(ctx, r.GetEpisodeId()); err != nil {
		return nil, err
	}
	return &pommelv1.CloseResponse{}, nil
}

func wantEpisode(id string) error {
	if strings.TrimSpace(id) == "" {
		return fault.New(fault.InvalidArgument, "episode_id is empty; want the one that Reset returned")
	}
	return nil
}
