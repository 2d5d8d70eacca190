package server

import (
	"context"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/internal/server/wire"
)

type sessionStream = connect.BidiStream[pommelv1.SessionRequest, pommelv1.SessionResponse]

// streamState is one Session stream: the episodes that it must close at its end.
type streamState struct {
	s        *Server
	episodes map[string]struct{}
	keep     bool
}

// Session answers the requests of one stream, in order, until it ends.
func (v service) Session(ctx context.Context, stream *sessionStream) error {
	defer v.s.metrics.Stream()()
	st := &streamState{s: v.s, episodes: map[string]struct{}{}}
	defer st.close(ctx)
	requests, failed := receive(ctx, stream)
	for {
		// An ordered stop first: select would choose at random.
		select {
		case <-v.s.stopping:
			return connectError(wire.ErrShuttingDown)
		default:
		}
		select {
		case <-v.s.stopping:
			return connectError(wire.ErrShuttingDown)
		case err := <-failed:
			return err
		case req := <-requests:
			if err := stream.Send(st.answer(ctx, req)); err != nil {
				return err
			}
		}
	}
}

// receive reads requests ahead of their handling, so that a stop of the server need
// not wait for the caller. Its goroutine ends with the stream.
func receive(ctx context.Context, stream *sessionStream) (<-chan *pommelv1.SessionRequest, <-chan error) {
	requests, failed := make(chan *pommelv1.SessionRequest), make(chan error, 1)
	go func() {
		for {
			req, err := stream.Receive()
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				failed <- err
				return
			}
			select {
			case requests <- req:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()
	return requests, failed
}

// answer carries out one request. Its error is an answer too.
func (st *streamState) answer(ctx context.Context, req *pommelv1.SessionRequest) *pommelv1.SessionResponse {
	start := time.Now()
	st.keep = st.keep || req.GetKeep()
	name, res, err := st.dispatch(ctx, req)
	st.s.metrics.Count("stream", name, err, time.Since(start))
	if err != nil {
		st.s.report(name, episodeOf(req), err)
		res = &pommelv1.SessionResponse{Result: &pommelv1.SessionResponse_Error{Error: wireError(err)}}
	}
	res.Id = req.GetId()
	return res
}

func (st *streamState) dispatch(ctx context.Context, req *pommelv1.SessionRequest) (string, *pommelv1.SessionResponse, error) {
	res := &pommelv1.SessionResponse{}
	switch c := req.GetCall().(type) {
	case *pommelv1.SessionRequest_Step:
		r, err := st.s.step(ctx, c.Step)
		res.Result = &pommelv1.SessionResponse_Step{Step: r}
		return "Step", res, err
	case *pommelv1.SessionRequest_Checkpoint:
		r, err := st.s.checkpoint(ctx, c.Checkpoint)
		res.Result = &pommelv1.SessionResponse_Checkpoint{Checkpoint: r}
		return "Checkpoint", res, err
	case *pommelv1.SessionRequest_Restore:
		r, err := st.s.restore(ctx, c.Restore)
		res.Result = &pommelv1.SessionResponse_Restore{Restore: r}
		return "Restore", res, err
	case *pommelv1.SessionRequest_Forget:
		r, err := st.s.forget(ctx, c.Forget)
		res.Result = &pommelv1.SessionResponse_Forget{Forget: r}
		return "Forget", res, err
	case *pommelv1.SessionRequest_Reset_:
		r, err := st.reset(ctx, c.Reset_)
		res.Result = &pommelv1.SessionResponse_Reset_{Reset_: r}
		return "Reset", res, err
	case *pommelv1.SessionRequest_Observe:
		r, err := st.s.observe(ctx, c.Observe)
		res.Result = &pommelv1.SessionResponse_Observe{Observe: r}
		return "Observe", res, err
	case *pommelv1.SessionRequest_Heartbeat:
		r, err := st.s.heartbeat(ctx, c.Heartbeat)
		res.Result = &pommelv1.SessionResponse_Heartbeat{Heartbeat: r}
		return "Heartbeat", res, err
	case *pommelv1.SessionRequest_Close:
		r, err := st.s.closeEpisode(ctx, c.Close)
		if err == nil {
			delete(st.episodes, c.Close.GetEpisodeId())
		}
		res.Result = &pommelv1.SessionResponse_Close{Close: r}
		return "Close", res, err
	}
	return "unknown", res, badRequest("request %d holds no call that this server knows; want reset, step, checkpoint, restore, forget, observe, heartbeat or close", req.GetId())
}

// reset starts an episode that belongs to this stream. Without keep it has to die with
// the stream even when that breaks before the answer is there, so it cannot be one
// that a second request would find: the request_id is dropped.
func (st *streamState) reset(ctx context.Context, r *pommelv1.ResetRequest) (*pommelv1.ResetResponse, error) {
	if !st.keep {
		r.RequestId = ""
	}
	res, err := st.s.reset(ctx, r)
	if err != nil {
		return nil, err
	}
	delete(st.episodes, r.GetPreviousEpisodeId())
	st.episodes[res.GetEpisodeId()] = struct{}{}
	return res, nil
}

// close gives back the worlds of a stream that has ended.
func (st *streamState) close(ctx context.Context) {
	if st.keep {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for id := range st.episodes {
		if err := st.s.sessions.CloseEpisode(ctx, id); err != nil {
			st.s.report("Close", id, err)
		}
	}
}

func episodeOf(req *pommelv1.SessionRequest) string {
	var call interface{ GetEpisodeId() string }
	switch c := req.GetCall().(type) {
	case *pommelv1.SessionRequest_Step:
		call = c.Step
	case *pommelv1.SessionRequest_Checkpoint:
		call = c.Checkpoint
	case *pommelv1.SessionRequest_Restore:
		call = c.Restore
	case *pommelv1.SessionRequest_Forget:
		call = c.Forget
	case *pommelv1.SessionRequest_Observe:
		call = c.Observe
	case *pommelv1.SessionRequest_Heartbeat:
		call = c.Heartbeat
	case *pommelv1.SessionRequest_Close:
		call = c.Close
	default:
		return ""
	}
	return call.GetEpisodeId()
}
