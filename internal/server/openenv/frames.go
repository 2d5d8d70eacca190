package openenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// code is one of the protocol's error codes.
type code string

const (
	invalidJSON     code = "INVALID_JSON"
	unknownType     code = "UNKNOWN_TYPE"
	validationError code = "VALIDATION_ERROR"
	executionError  code = "EXECUTION_ERROR"
	capacityReached code = "CAPACITY_REACHED"
	sessionError    code = "SESSION_ERROR"
)

// request is a frame from the client.
type request struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// frame is an answer to the client.
type frame struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

// failure is the data of an error frame.
type failure struct {
	Message string `json:"message"`
	Code    code   `json:"code"`
	// Errors say which fields are wrong.
	Errors []fieldError `json:"errors,omitempty"`
	// ActiveSessions and MaxSessions come with CAPACITY_REACHED.
	ActiveSessions *int `json:"active_sessions,omitempty"`
	MaxSessions    *int `json:"max_sessions,omitempty"`
	// Kind is Pommel's own name of the error. Void says that the episode is lost by a
	// fault of the infrastructure, which says nothing about the agent.
	Kind fault.Kind `json:"kind,omitempty"`
	Void bool       `json:"void,omitempty"`
}

// fieldError has the shape of the errors that the reference server takes from pydantic.
type fieldError struct {
	Type string   `json:"type"`
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
}

// invalid is a request whose fields are wrong.
type invalid struct{ errors []fieldError }

func (e *invalid) Error() string {
	var parts []string
	for _, f := range e.errors {
		parts = append(parts, strings.Join(f.Loc, ".")+": "+f.Msg)
	}
	return strings.Join(parts, "; ")
}

// failed is err as the data of an error frame.
func (h *Handler) failed(err error) failure {
	var bad *invalid
	if errors.As(err, &bad) {
		return failure{Message: "Invalid message: " + bad.Error(), Code: validationError, Errors: bad.errors, Kind: fault.InvalidArgument}
	}
	e := wire.ErrorOf(err)
	f := failure{Message: fmt.Sprintf("%s: %s", e.Kind, e), Code: executionError, Kind: e.Kind, Void: e.Void()}
	if e.Kind == fault.ResourceExhausted && !errors.Is(err, wire.ErrShuttingDown) {
		f.Code = capacityReached
		f.ActiveSessions, f.MaxSessions = h.count()
	}
	return f
}

func (h *Handler) count() (active, most *int) {
	a, m := h.Active(), cap(h.places)
	return &a, &m
}

// fields reads the members of a JSON object one by one and collects what is wrong.
type fields struct {
	at     string // where the object stands in the request, "" for the top
	values map[string]json.RawMessage
	errs   []fieldError
}

// readFields reads an object that may have the named members only.
func readFields(at string, data json.RawMessage, known ...string) *fields {
	f := &fields{at: at, values: map[string]json.RawMessage{}}
	if len(data) == 0 || string(data) == "null" {
		return f
	}
	if err := json.Unmarshal(data, &f.values); err != nil {
		f.wrong("", "dict_type", "Input should be an object")
		return f
	}
	for name := range f.values {
		if !slices.Contains(known, name) {
			f.wrong(name, "extra_forbidden", "Unknown field; known are "+strings.Join(known, ", "))
		}
	}
	slices.SortFunc(f.errs, func(a, b fieldError) int { return slices.Compare(a.Loc, b.Loc) })
	return f
}

func (f *fields) wrong(name, kind, msg string) {
	loc := []string{}
	for _, part := range []string{f.at, name} {
		if part != "" {
			loc = append(loc, part)
		}
	}
	f.errs = append(f.errs, fieldError{Type: kind, Loc: loc, Msg: msg})
}

func (f *fields) has(name string) bool {
	v, ok := f.values[name]
	return ok && string(v) != "null"
}

// read decodes one member into out when it is there.
func (f *fields) read(name, kind, want string, out any) {
	if f.has(name) && json.Unmarshal(f.values[name], out) != nil {
		f.wrong(name, kind, "Input should be "+want)
	}
}

func (f *fields) text(name string) (s string) {
	f.read(name, "string_type", "a string", &s)
	return s
}

func (f *fields) flag(name string) (b bool) {
	f.read(name, "bool_type", "true or false", &b)
	return b
}

// number is a whole number of 0 or more.
func (f *fields) number(name string) (n int64) {
	f.read(name, "int_type", "a whole number", &n)
	if n < 0 {
		f.wrong(name, "greater_than_equal", "Input should be greater than or equal to 0")
	}
	return n
}

func (f *fields) err() error {
	if len(f.errs) == 0 {
		return nil
	}
	return &invalid{f.errs}
}
