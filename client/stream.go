package client

import (
	"context"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
)

// stream is one connection of a Session. It is used by one goroutine at a time.
type stream struct {
	bidi   *connect.BidiStreamForClientSimple[pommelv1.SessionRequest, pommelv1.SessionResponse]
	ctx    context.Context
	cancel context.CancelFunc
	lastID int64

	answers chan *pommelv1.SessionResponse
	dead    chan struct{} // closed when no more answers come
	err     error         // why; set before dead is closed
}

func (c *Client) openStream() (*stream, error) {
	// The stream outlives the call that opens it.
	ctx, cancel := context.WithCancel(context.Background())
	bidi, err := c.rpc.Session(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	st := &stream{bidi: bidi, ctx: ctx, cancel: cancel, answers: make(chan *pommelv1.SessionResponse), dead: make(chan struct{})}
	go st.receive()
	return st, nil
}

func (st *stream) receive() {
	defer close(st.dead)
	for {
		res, err := st.bidi.Receive()
		if err != nil {
			st.err = err
			return
		}
		select {
		case st.answers <- res:
		case <-st.ctx.Done():
			st.err = st.ctx.Err()
			return
		}
	}
}

// exchange sends one request and waits for its answer. late gets the answers of
// earlier requests whose callers had given up.
func (st *stream) exchange(ctx context.Context, req *pommelv1.SessionRequest, late func(*pommelv1.SessionResponse)) (*pommelv1.SessionResponse, error) {
	st.lastID++
	req.Id = st.lastID
	// Send takes no context and waits for the transport.
	stop := context.AfterFunc(ctx, st.cut)
	err := st.bidi.Send(req)
	if !stop() {
		return nil, ctx.Err()
	}
	if err != nil && !errors.Is(err, io.EOF) { // EOF: Receive knows why
		return nil, err
	}
	for {
		select {
		case res := <-st.answers:
			if res.GetId() == req.GetId() {
				return res, nil
			}
			late(res)
		case <-st.dead:
			return nil, st.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// cut ends the stream at once. Canceling is not enough: the transport looks at the
// context only once the request's body has ended.
func (st *stream) cut() {
	st.cancel()
	_ = st.bidi.CloseRequest()  // the stream is given up; its errors say nothing new
	_ = st.bidi.CloseResponse() // same
}

// close ends the stream after the answers that are on their way.
func (st *stream) close(limit time.Duration, late func(*pommelv1.SessionResponse)) {
	_ = st.bidi.CloseRequest() // a stream that is broken already needs no farewell
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case res := <-st.answers:
			late(res)
			continue
		case <-st.dead:
		case <-timer.C:
		}
		break
	}
	st.cut()
}
