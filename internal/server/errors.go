package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
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

// wireError is err as it goes over the RPC.
func wireError(err error) *pommelv1.Error {
	e := wire.ErrorOf(err)
	return &pommelv1.Error{Kind: string(e.Kind), Message: e.Message, Hint: e.Hint}
}

// connectError is err for a unary call.
func connectError(err error) error {
	if errors.Is(err, wire.ErrShuttingDown) {
		return connect.NewError(connect.CodeUnavailable, wire.ErrShuttingDown)
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

// report logs what an operator must know: defects and lost worlds. What callers do
// wrong is their own concern.
func (s *Server) report(call, episode string, err error) {
	switch fault.KindOf(err) {
	case fault.Internal:
		if !wire.Gone(err) {
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
