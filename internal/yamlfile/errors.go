package yamlfile

import (
	"fmt"
	"strings"
)

// Error is one mistake at one place of a file.
type Error struct {
	File string
	Pos  Pos
	// Path is the field, as services[1].ready.http; "" is the document.
	Path string
	// Msg says what is wrong and what was expected; Hint what to do.
	Msg  string
	Hint string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Pos.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Pos.Line, e.Pos.Col)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Errors are all mistakes of one file, in the order of the file.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As and errors.Is the single mistakes.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// orNil turns an empty list into a nil error.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}
