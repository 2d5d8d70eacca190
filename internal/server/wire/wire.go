// Package wire holds what all surfaces of the server share: how an error and a text of
// a page look to strangers.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/pommelgym/pommel/internal/fault"
)

// ErrShuttingDown refuses new episodes and ends streams: another server, or this one
// after its restart, can take them.
var ErrShuttingDown = errors.New("the server is shutting down")

// Error is an error as callers may see it.
type Error struct {
	Kind    fault.Kind
	Message string
	Hint    string
}

// ErrorOf is err in the words that Pommel wrote for callers, and the hint, without the
// private causes.
func ErrorOf(err error) Error {
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
	case errors.Is(err, ErrShuttingDown):
		// No kind of its own: nothing was done, and asking elsewhere or later is right.
		kind, msgs = fault.ResourceExhausted, []string{ErrShuttingDown.Error()}
	case Gone(err):
		kind, msgs = fault.Canceled, []string{"the call was canceled or its deadline passed"}
	default:
		msgs = []string{"internal error; the server's log has its cause"}
	}
	return Error{Kind: kind, Message: Valid(strings.Join(msgs, ": ")), Hint: Valid(fault.HintOf(err))}
}

// String is the message, and the hint behind it.
func (e Error) String() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Void says that the infrastructure ended the episode: it says nothing about the agent.
func (e Error) Void() bool {
	switch e.Kind {
	case fault.WorldLost, fault.LeaseExpired, fault.Internal, fault.NotFound:
		return true
	}
	return false
}

// statuses of errors over plain HTTP; what is not named is the server's own failure.
var statuses = map[fault.Kind]int{
	fault.InvalidArgument:   http.StatusUnprocessableEntity,
	fault.NotFound:          http.StatusNotFound,
	fault.EpisodeOver:       http.StatusConflict,
	fault.StaleEpisode:      http.StatusConflict,
	fault.LeaseExpired:      http.StatusGone,
	fault.ResourceExhausted: http.StatusTooManyRequests,
	fault.Unsupported:       http.StatusNotImplemented,
}

// Status is the HTTP status of err where a surface is plain HTTP.
func Status(err error) int {
	if errors.Is(err, ErrShuttingDown) {
		return http.StatusServiceUnavailable
	}
	if status, ok := statuses[ErrorOf(err).Kind]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// EncodeJSON writes v as JSON without the escapes that only HTML needs: models read it.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// WriteJSON answers a request.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	data, err := EncodeJSON(v)
	if err != nil {
		http.Error(w, "the answer could not be written as JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a caller that has gone needs no answer
}

// Gone says that the caller left or its time was up.
func Gone(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Valid makes s fit for protobuf and JSON, which must be UTF-8.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Cut is the valid beginning of s of at most n bytes. cut is set when something is missing.
func Cut(s string, n int, cut *bool) string {
	s = Valid(s)
	if len(s) <= n {
		return s
	}
	*cut = true
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
