package server

import (
	"context"
	"errors"
	"io"
	"sync"
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

	// turn is held while a request is answered; stopped, which it guards, says that no other will be.
	turn    sync.Mutex
	stopped bool
}

// Session answers the requests of one stream, in order, until it ends. They are answered where
// they are read, since handing one over to another goroutine costs a step tens of microseconds;
// here it is only waited, for the stream's end or the server's.
func (v service) Session(ctx context.Context, stream *sessionStream) error {
	defer v.s.metrics.Stream()()
	st := &streamState{s: v.s, episodes: map[string]struct{}{}}
	defer st.close(ctx)
	ended := make(chan error, 1)
	go func() { ended <- st.converse(ctx, stream) }()
	select {
	case err := <-ended:
		return err
	case <-v.s.stopping:
		// The request that is being answered is answered. Reading ends with the stream.
		st.turn.Lock()
		st.stopped = true
		st.turn.Unlock()
		return connectError(wire.ErrShuttingDown)
	}
}

// converse reads requests and answers them.
func (st *streamState) converse(ctx context.Context, stream *sessionStream) error {
	for {
		req, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := st.reply(ctx, stream, req); err != nil {
			return err
		}
	}
}

// reply answers one request, unless the server has begun to stop.
func (st *streamState) reply(ctx context.Context, stream *sessionStream, req *pommelv1.SessionRequest) error {
	st.turn.Lock()
	defer st.turn.Unlock()
	if st.stopped {
		return connectError(wire.ErrShuttingDown)
	}
	return stream.Send(st.answer(ctx, req))
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
