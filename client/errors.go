package client

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
)

// Kind says what a caller should do about an error.
type Kind string

// The kinds. All but the last two come from the server.
const (
	// InvalidArgument: the request is wrong; the same request will fail again.
	InvalidArgument Kind = "invalid_argument"
	// NotFound: the task or episode that was named does not exist.
	NotFound Kind = "not_found"
	// EpisodeOver: the episode has ended; Reset before the next Step.
	EpisodeOver Kind = "episode_over"
	// StaleEpisode: the call names an episode or step that is not the current one.
	StaleEpisode Kind = "stale_episode"
	// LeaseExpired: the caller was silent for too long and its world was given back.
	LeaseExpired Kind = "lease_expired"
	// ResourceExhausted: all worlds are taken; try again later.
	ResourceExhausted Kind = "resource_exhausted"
	// WorldLost: a fault of the infrastructure ended the episode. It is void.
	WorldLost Kind = "world_lost"
	// Unsupported: the server's host cannot do what was asked.
	Unsupported Kind = "unsupported"
	// Canceled: the context ended before the answer came.
	Canceled Kind = "canceled"
	// Internal: a defect of Pommel.
	Internal Kind = "internal"
	// Unavailable: the server cannot be reached, or is shutting down.
	Unavailable Kind = "unavailable"
	// Unauthenticated: the token is missing or wrong, or the server refuses this caller.
	Unauthenticated Kind = "unauthenticated"
)

// Void says that an episode which met this error tells nothing about its agent: it
// must not become training data.
func (k Kind) Void() bool {
	switch k {
	case WorldLost, LeaseExpired, Unavailable, Internal:
		return true
	}
	return false
}

// Error is a typed failure. Err is the transport's error or the context's, if there is one.
type Error struct {
	Kind    Kind
	Message string
	Hint    string
	Err     error
}

func (e *Error) Error() string {
	s := string(e.Kind) + ": " + e.Message
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of err; Internal for an error without one, "" for nil.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Kind
	}
	return Internal
}

func typed[T any](v T, err error) (T, error) {
	if err != nil {
		var zero T
		return zero, asError(err)
	}
	return v, nil
}

// codes are the kinds of answers that carry no detail: they come from proxies, or from
// the transport itself.
var codes = map[connect.Code]Kind{
	connect.CodeCanceled:          Canceled,
	connect.CodeDeadlineExceeded:  Canceled,
	connect.CodeUnauthenticated:   Unauthenticated,
	connect.CodePermissionDenied:  Unauthenticated,
	connect.CodeUnimplemented:     Unsupported,
	connect.CodeResourceExhausted: ResourceExhausted,
	connect.CodeInvalidArgument:   InvalidArgument,
	connect.CodeInternal:          Internal,
}

func asError(err error) error {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return contextOr(err, Unavailable)
	}
	for _, d := range ce.Details() {
		v, derr := d.Value()
		if e, ok := v.(*pommelv1.Error); ok && derr == nil {
			return fromWire(e)
		}
	}
	kind, ok := codes[ce.Code()]
	if !ok || kind == Internal && !connect.IsWireError(ce) { // a stream that breaks is "internal" to the transport
		kind = Unavailable
	}
	return &Error{Kind: kind, Message: ce.Message(), Err: err}
}

func contextOr(err error, kind Kind) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		kind = Canceled
	}
	return &Error{Kind: kind, Message: err.Error(), Err: err}
}

func fromWire(e *pommelv1.Error) *Error {
	return &Error{Kind: Kind(e.GetKind()), Message: e.GetMessage(), Hint: e.GetHint()}
}
