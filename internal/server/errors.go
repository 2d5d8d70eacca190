package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/internal/fault"
)

// codes says which RPC code each kind of error has. Retry policies of RPC
// libraries repeat "unavailable" by themselves, and some repeat "aborted", so no
// kind maps to these: a void or ended episode does not come back by asking again.
// Only a server that is shutting down answers "unavailable".
var codes = map[fault.Kind]connect.Code{
	fault.InvalidArgument:   connect.CodeInvalidArgument,
	fault.NotFound:          connect.CodeNotFound,
	fault.EpisodeOver:       connect.CodeFailedPrecondition,
	fault.StaleEpisode:      connect.CodeFailedPrecondition,
	fault.LeaseExpired:      connect.CodeFailedPrecondition,
	fault.ResourceExhausted: connect.CodeResourceExhausted,
	fault.WorldLost:         connect.CodeDataLoss,
	fault.Unsupported:       connect.CodeUnimplemented,
	fault.Canceled:          connect.CodeCanceled,
	fault.Internal:          connect.CodeInternal,
}

// errShuttingDown refuses new episodes and ends streams: another server, or this one
// after its restart, can take them.
var errShuttingDown = errors.New("the server is shutting down")

// wireError is err as callers may see it: the words that Pommel wrote for them and
// the hint, without the private causes.
func wireError(err error) *pommelv1.Error {
	kind := fault.KindOf(err)
	var msgs []string
	for e := err; e != nil; {
		var f *fault.Error
		if !errors.As(e, &f) {
			break
		}
		if f.Msg != "" {
			msgs = append(msgs, f.Msg)
		}
		e = f.Err
	}
	switch {
	case len(msgs) > 0:
	case errors.Is(err, errShuttingDown):
		// No kind of its own: nothing was done, and asking elsewhere or later is right.
		kind, msgs = fault.ResourceExhausted, []string{errShuttingDown.Error()}
	case gone(err):
		kind, msgs = fault.Canceled, []string{"the call was canceled or its deadline passed"}
	default:
		msgs = []string{"internal error; the server's log has its cause"}
	}
	return &pommelv1.Error{
		Kind:    string(kind),
		Message: valid(strings.Join(msgs, ": ")),
		Hint:    valid(fault.HintOf(err)),
	}
}

// connectError is err for a unary call.
func connectError(err error) error {
	if errors.Is(err, errShuttingDown) {
		return connect.NewError(connect.CodeUnavailable, errShuttingDown)
	}
	w := wireError(err)
	code, ok := codes[fault.Kind(w.GetKind())]
	if !ok {
		code = connect.CodeInternal
	}
	if code == connect.CodeCanceled && errors.Is(err, context.DeadlineExceeded) {
		code = connect.CodeDeadlineExceeded
	}
	out := connect.NewError(code, errors.New(w.GetMessage()))
	if detail, derr := connect.NewErrorDetail(w); derr == nil {
		out.AddDetail(detail)
	}
	return out
}

func gone(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// report logs what an operator must know: defects and lost worlds. What callers do
// wrong is their own concern.
func (s *Server) report(call, episode string, err error) {
	switch fault.KindOf(err) {
	case fault.Internal:
		if !gone(err) {
			s.log.Error("call failed", "call", call, "episode", episode, "error", err)
		}
	case fault.WorldLost:
		s.log.Warn("world lost", "call", call, "episode", episode, "error", err)
	default:
		s.log.Debug("call refused", "call", call, "episode", episode, "error", err)
	}
}

func (s *Server) recovered(_ context.Context, spec connect.Spec, _ http.Header, p any) error {
	err := fault.Wrap(fault.Internal, fmt.Errorf("panic: %v", p), "the call failed by a defect of Pommel")
	s.report(spec.Procedure, "", err)
	return connectError(err)
}

func badRequest(format string, args ...any) error {
	return fault.New(fault.InvalidArgument, format, args...)
}
