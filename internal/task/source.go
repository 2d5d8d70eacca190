package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/yamlfile"
)

// source is the file behind a Spec, for messages that point into it.
type source struct {
	file *yamlfile.File
	text string
}

func (s *source) path() string {
	if s == nil {
		return ""
	}
	return s.file.Path
}

// errorf makes an error at the value at path.
func (s *source) errorf(path, format string, args ...any) *yamlfile.Error {
	if s == nil {
		return &yamlfile.Error{Path: path, Msg: fmt.Sprintf(format, args...)}
	}
	return s.file.Errorf(path, format, args...)
}

// errorIn makes an error at a byte offset inside the string at path: inside a
// block of SQL, say. YAML folds, indents and quotes, so the place is found by
// counting how often the word at the offset occurs before it.
func (s *source) errorIn(path string, offset int, format string, args ...any) *yamlfile.Error {
	e := s.errorf(path, format, args...)
	if s == nil {
		return e
	}
	if pos, ok := s.locate(path, offset); ok {
		e.Pos = pos
	}
	return e
}

func (s *source) locate(path string, offset int) (yamlfile.Pos, bool) {
	n := s.file.Node(path)
	if n == nil || n.Kind != String || offset < 0 || offset >= len(n.Text) {
		return yamlfile.Pos{}, false
	}
	word := wordAt(n.Text, offset)
	at := byteOffset(s.text, n.Pos)
	for range strings.Count(n.Text[:offset], word) + 1 {
		next := strings.Index(s.text[at:], word)
		if next < 0 {
			return yamlfile.Pos{}, false
		}
		at += next + len(word)
	}
	return positionOf(s.text, at-len(word)), true
}

// wordAt is the run of word characters at the offset, or the one character there.
func wordAt(text string, offset int) string {
	end := offset
	for end < len(text) && isWordPart(text[end]) {
		end++
	}
	if end == offset {
		end++
	}
	return text[offset:end]
}

func byteOffset(text string, pos yamlfile.Pos) int {
	at := 0
	for line := 1; line < pos.Line; line++ {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 {
			return len(text)
		}
		at += n + 1
	}
	return min(at+max(pos.Col-1, 0), len(text))
}

func positionOf(text string, at int) yamlfile.Pos {
	before := text[:at]
	return yamlfile.Pos{
		Line: strings.Count(before, "\n") + 1,
		Col:  at - strings.LastIndexByte(before, '\n'),
	}
}

// appendErrors adds what err holds: placed errors as they are, any other at the node.
func appendErrors(errs yamlfile.Errors, n *yamlfile.Node, err error) yamlfile.Errors {
	var many yamlfile.Errors
	var one *yamlfile.Error
	switch {
	case errors.As(err, &many):
		return append(errs, many...)
	case errors.As(err, &one):
		return append(errs, one)
	}
	return append(errs, n.Errorf("%v", err))
}

func orNil(errs yamlfile.Errors) error {
	if len(errs) == 0 {
		return nil
	}
	return errs
}

func oneOf(s string, known []string) bool { return slices.Contains(known, s) }

// orList writes "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
