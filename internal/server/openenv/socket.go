package openenv

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// serveSocket is one session. The answer to a refusal is a frame, as the client expects
// it: it reads one only when it has sent its first request.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	h.open.Add(1)
	defer h.open.Done()
	c, err := websocket.Accept(w, r, nil) // refuses other origins than its own
	if err != nil {
		h.cfg.Log.Debug("socket refused", "remote", r.RemoteAddr, "error", err)
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(maxFrame)
	if !h.takePlace(r.Context()) {
		f := failure{Message: "Server at capacity: all sessions are taken; open fewer, or start the server with more worlds", Code: capacityReached}
		f.ActiveSessions, f.MaxSessions = h.count()
		refuse(c, f, websocket.StatusTryAgainLater)
		return
	}
	h.active.Add(1)
	defer func() { h.active.Add(-1); <-h.places }()
	s := &session{h: h, conn: c}
	if id := r.URL.Query().Get("session_id"); id != "" {
		release, err := s.attach(r.Context(), id)
		if err != nil {
			refuse(c, failure{Message: wire.ErrorOf(err).String(), Code: sessionError, Kind: fault.KindOf(err)}, websocket.StatusPolicyViolation)
			return
		}
		defer release()
	}
	s.run(r.Context())
}

// takePlace waits a moment: a place is often that of a caller that is just going away.
func (h *Handler) takePlace(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	select {
	case h.places <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-h.cfg.Stopping:
	}
	return false
}

func refuse(c *websocket.Conn, f failure, status websocket.StatusCode) {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	if err := send(ctx, c, frame{Type: "error", Data: f}); err == nil {
		_ = c.Close(status, string(f.Code)) // the caller may have gone
	}
}

func send(ctx context.Context, c *websocket.Conn, f frame) error {
	data, err := wire.EncodeJSON(f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return c.Write(ctx, websocket.MessageText, data)
}

// run answers the requests of one socket, in order, until it ends.
func (s *session) run(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.end()
	s.asked.Store(time.Now().UnixNano())
	frames, idle := s.read(ctx, cancel), make(chan struct{})
	go s.watch(ctx, cancel, idle)
	for {
		select {
		case <-s.h.cfg.Stopping:
			refuse(s.conn, s.h.failed(wire.ErrShuttingDown), websocket.StatusGoingAway)
			return
		case <-ctx.Done():
			return
		case <-idle:
			refuse(s.conn, failure{Message: "the session sent nothing for too long", Code: sessionError, Kind: fault.LeaseExpired}, websocket.StatusPolicyViolation)
			return
		case data := <-frames:
			s.asked.Store(time.Now().UnixNano())
			out, last := s.answer(ctx, data)
			s.asked.Store(time.Now().UnixNano())
			if last {
				_ = s.conn.Close(websocket.StatusNormalClosure, "") // the caller may not wait for it
				return
			}
			if err := send(ctx, s.conn, out); err != nil {
				return
			}
		}
	}
}

// read hands over frames. It reads ahead, because pongs are read here too.
func (s *session) read(ctx context.Context, cancel context.CancelCauseFunc) <-chan []byte {
	frames := make(chan []byte, 64)
	go func() {
		for {
			_, data, err := s.conn.Read(ctx)
			if err != nil {
				cancel(err)
				return
			}
			select {
			case frames <- data:
			case <-ctx.Done():
				return
			}
		}
	}()
	return frames
}

// watch asks the caller's host now and then whether it is there, and keeps the episode's
// lease while it is. Two periods are below the lease, so a vanished caller frees its
// world within it. It closes idle when the host is there and its program has stopped asking.
func (s *session) watch(ctx context.Context, cancel context.CancelCauseFunc, idle chan<- struct{}) {
	period := max(s.h.cfg.Sessions.Describe().Lease/3, 50*time.Millisecond)
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(time.Unix(0, s.asked.Load())) > s.h.cfg.Idle {
			close(idle)
			return
		}
		ping, stop := context.WithTimeout(ctx, period)
		err := s.conn.Ping(ping)
		stop()
		if err != nil {
			cancel(err)
			return
		}
		if id := s.id.Load(); id != nil {
			_, _ = s.h.cfg.Sessions.Heartbeat(ctx, *id) // an episode that is gone says so at the next step
		}
	}
}

// answer carries out one request. last says that the caller has said farewell.
func (s *session) answer(ctx context.Context, data []byte) (out frame, last bool) {
	var req request
	if !json.Valid(data) {
		return errorFrame(failure{Message: "Invalid JSON", Code: invalidJSON, Kind: fault.InvalidArgument}), false
	}
	if err := json.Unmarshal(data, &req); err != nil {
		return errorFrame(s.h.failed(&invalid{[]fieldError{{Type: "dict_type", Loc: []string{}, Msg: "Input should be an object with type and data"}}})), false
	}
	var v any
	var err error
	kind := "observation"
	switch req.Type {
	case "reset":
		v, err = counted(s.h, "Reset", func() (any, error) { return s.reset(ctx, req.Data) })
	case "step":
		v, err = counted(s.h, "Step", func() (any, error) { return s.step(ctx, req.Data) })
	case "state":
		kind = "state"
		v, err = s.state(ctx)
	case "close":
		return frame{}, true
	default:
		return errorFrame(failure{Message: "Unknown message type: " + req.Type + "; want reset, step, state or close", Code: unknownType, Kind: fault.InvalidArgument}), false
	}
	if err != nil {
		return errorFrame(s.h.failed(err)), false
	}
	return frame{Type: kind, Data: v}, false
}

func errorFrame(f failure) frame { return frame{Type: "error", Data: f} }
