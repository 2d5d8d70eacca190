// Package fault is the catalogue of what can go wrong in Pommel, apart from a
// bad action of the agent (which is part of the observation, not an error).
//
// Every error that reaches a caller of the public API carries one Kind. The
// kinds are a closed list and part of the wire format: append, never change.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what a caller should do about an error.
type Kind string

// The kinds. Their strings are stable.
const (
	// InvalidArgument: the request is wrong; the same request will fail again.
	InvalidArgument Kind = "invalid_argument"
	// NotFound: the world, task, episode or trace that was named does not exist.
	NotFound Kind = "not_found"
	// EpisodeOver: the episode has ended; reset before the next step.
	EpisodeOver Kind = "episode_over"
	// StaleEpisode: the call names an episode or step that is not the current one.
	StaleEpisode Kind = "stale_episode"
	// LeaseExpired: the caller was silent for too long and its world was given back.
	LeaseExpired Kind = "lease_expired"
	// ResourceExhausted: all worlds are taken; try again later.
	ResourceExhausted Kind = "resource_exhausted"
	// WorldLost: a fault of the infrastructure ended the episode. It is void: mask it.
	WorldLost Kind = "world_lost"
	// Unsupported: this host cannot do what was asked; `pommel doctor` says why.
	Unsupported Kind = "unsupported"
	// Canceled: the caller gave up, or its deadline passed.
	Canceled Kind = "canceled"
	// Internal: a defect of Pommel.
	Internal Kind = "internal"
)

// Error is a typed failure. Msg is for the caller, Hint says what to do, Err is the private cause.
type Error struct {
	Kind Kind
	Msg  string
	Hint string
	Err  error
}

func (e *Error) Error() string {
	s := string(e.Kind) + ": " + e.Msg
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// New makes an error of a kind from a format.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Msg: fmt.Sprintf(format, args...)}
}

// Wrap gives err a kind and says what was being done. It returns nil for a nil err
// and keeps the kind of an error that already has one.
func Wrap(k Kind, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		k = e.Kind
	}
	return &Error{Kind: k, Msg: fmt.Sprintf(format, args...), Err: err}
}

// WithHint returns a copy of e that tells the caller what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// KindOf is the kind of err: Internal for an error without one, "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// HintOf is the first hint in err's chain, or "".
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
