package action

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nested lists and dicts.
const maxDepth = 32

// scanner reads Python literals.
type scanner struct {
	text string
	pos  int
}

func (s *scanner) end() bool { return s.pos >= len(s.text) }

// peek is the byte here, or 0 at the end.
func (s *scanner) peek() byte {
	if s.end() {
		return 0
	}
	return s.text[s.pos]
}

// errorf says what is wrong at a place.
func (s *scanner) errorf(at int, format string, args ...any) *Error {
	before := s.text[:min(at, len(s.text))]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	where := fmt.Sprintf("column %d: ", column)
	if line > 1 {
		where = fmt.Sprintf("line %d, column %d: ", line, column)
	}
	return &Error{Kind: InvalidAction, Message: where + fmt.Sprintf(format, args...)}
}

// found describes what stands here, for messages.
func (s *scanner) found() string {
	if s.end() {
		return "the end of the text"
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.pos:])
	return strconv.QuoteRune(r)
}

// skip passes over blanks and comments, with line breaks if asked, and semicolons with them.
func (s *scanner) skip(lines bool) {
	for !s.end() {
		switch c := s.text[s.pos]; {
		case c == ' ' || c == '\t' || c == '\r', lines && c == '\n', lines && c == ';':
			s.pos++
		case c == '#':
			for !s.end() && s.text[s.pos] != '\n' {
				s.pos++
			}
		case c == '\\' && strings.HasPrefix(s.text[s.pos:], "\\\n"):
			s.pos += 2
		default:
			return
		}
	}
}

// separated says whether a call ends here: by a line break, a semicolon or the end.
func (s *scanner) separated() bool {
	s.skip(false)
	return s.end() || s.peek() == '\n' || s.peek() == ';'
}

func isLetter(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// name reads an identifier, or nothing.
func (s *scanner) name() string {
	start := s.pos
	for !s.end() && (isLetter(s.text[s.pos]) || s.pos > start && isDigit(s.text[s.pos])) {
		s.pos++
	}
	return s.text[start:s.pos]
}

// value reads one literal.
func (s *scanner) value(depth int) (any, *Error) {
	if depth > maxDepth {
		return nil, s.errorf(s.pos, "lists are nested deeper than %d", maxDepth)
	}
	start := s.pos
	switch c := s.peek(); {
	case c == '\'' || c == '"':
		return s.texts()
	case c == '[':
		return s.list(depth, '[', ']')
	case c == '(':
		return s.list(depth, '(', ')')
	case c == '{':
		return s.dict(depth)
	case isDigit(c) || c == '-' || c == '+' || c == '.':
		return s.number()
	}
	switch word := s.name(); word {
	case "True", "true":
		return true, nil
	case "False", "false":
		return false, nil
	case "None", "null":
		return nil, nil
	case "r", "u", "b", "f", "R", "U":
		if q := s.peek(); q == '\'' || q == '"' {
			if word != "u" && word != "U" {
				s.pos = start
				return nil, s.errorf(start, "prefixed strings such as %s%c...%c are not read; write a plain string", word, q, q)
			}
			return s.texts()
		}
		fallthrough
	default:
		if word != "" {
			return nil, s.errorf(start, "%q is no literal; put texts in quotes", word)
		}
		s.pos = start
		return nil, s.errorf(start, "expected a value, found %s", s.found())
	}
}

// texts reads a string and, as Python does, those that follow it directly.
func (s *scanner) texts() (any, *Error) {
	var b strings.Builder
	for {
		if err := s.oneText(&b); err != nil {
			return nil, err
		}
		mark := s.pos
		s.skip(true)
		if c := s.peek(); c != '\'' && c != '"' {
			s.pos = mark
			return b.String(), nil
		}
	}
}

func (s *scanner) oneText(b *strings.Builder) *Error {
	start := s.pos
	quote := s.text[s.pos : s.pos+1]
	if strings.HasPrefix(s.text[s.pos:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	s.pos += len(quote)
	for {
		switch {
		case s.end():
			return s.errorf(start, "the string that begins here has no end; expected %s", quote)
		case strings.HasPrefix(s.text[s.pos:], quote):
			s.pos += len(quote)
			return nil
		case s.text[s.pos] == '\n' && len(quote) == 1:
			return s.errorf(start, "the string that begins here is not closed on its line; write \\n for a line break")
		case s.text[s.pos] == '\\':
			if err := s.escape(b); err != nil {
				return err
			}
		default:
			b.WriteByte(s.text[s.pos])
			s.pos++
		}
	}
}

var simpleEscapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

func (s *scanner) escape(b *strings.Builder) *Error {
	start := s.pos
	s.pos++
	if s.end() {
		return s.errorf(start, "the string ends in the middle of an escape")
	}
	c := s.text[s.pos]
	s.pos++
	if plain, ok := simpleEscapes[c]; ok {
		b.WriteString(plain)
		return nil
	}
	switch c {
	case 'x':
		return s.hexRune(b, start, 2)
	case 'u':
		return s.hexRune(b, start, 4)
	case 'U':
		return s.hexRune(b, start, 8)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := rune(c - '0')
		for i := 0; i < 2 && !s.end() && s.text[s.pos] >= '0' && s.text[s.pos] <= '7'; i++ {
			n = n*8 + rune(s.text[s.pos]-'0')
			s.pos++
		}
		b.WriteRune(n)
		return nil
	}
	// Python keeps the backslash of an escape that it does not know.
	b.WriteByte('\\')
	s.pos--
	return nil
}

// hexRune reads a code point; two \u halves of a surrogate pair are one.
func (s *scanner) hexRune(b *strings.Builder, start, digits int) *Error {
	r, ok := s.hex(digits)
	if !ok || r > utf8.MaxRune {
		return s.errorf(start, "expected %d hexadecimal digits of a code point after \\%c", digits, s.text[start+1])
	}
	if utf16.IsSurrogate(r) {
		mark := s.pos
		if strings.HasPrefix(s.text[s.pos:], "\\u") {
			s.pos += 2
			if low, ok := s.hex(4); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					b.WriteRune(pair)
					return nil
				}
			}
		}
		s.pos, r = mark, utf8.RuneError // half a character cannot be sent to a page
	}
	b.WriteRune(r)
	return nil
}

func (s *scanner) hex(digits int) (rune, bool) {
	if s.pos+digits > len(s.text) {
		return 0, false
	}
	n, err := strconv.ParseUint(s.text[s.pos:s.pos+digits], 16, 32)
	if err != nil {
		return 0, false
	}
	s.pos += digits
	return rune(n), true
}

func (s *scanner) number() (any, *Error) {
	start := s.pos
	for !s.end() && (isDigit(s.text[s.pos]) || isLetter(s.text[s.pos]) || strings.IndexByte("+-.", s.text[s.pos]) >= 0) {
		s.pos++
	}
	text := strings.ReplaceAll(s.text[start:s.pos], "_", "")
	if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return f, nil
	}
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return float64(n), nil
	}
	return nil, s.errorf(start, "%.40q is no number; put texts in quotes", text)
}

// list reads a list or a tuple, which is taken as a list.
func (s *scanner) list(depth int, open, end byte) (any, *Error) {
	start := s.pos
	s.pos++
	out := []any{}
	for {
		s.skip(true)
		if s.peek() == end {
			s.pos++
			return out, nil
		}
		if s.end() {
			return nil, s.errorf(start, "the list that begins here has no %q", string(end))
		}
		v, err := s.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		s.skip(true)
		switch s.peek() {
		case ',':
			s.pos++
		case end:
			if open == '(' && len(out) == 1 { // parentheses around one value are no tuple
				s.pos++
				return out[0], nil
			}
		default:
			return nil, s.errorf(s.pos, "expected ',' or %q, found %s", string(end), s.found())
		}
	}
}

func (s *scanner) dict(depth int) (any, *Error) {
	start := s.pos
	s.pos++
	out := map[string]any{}
	for {
		s.skip(true)
		if s.peek() == '}' {
			s.pos++
			return out, nil
		}
		if s.end() {
			return nil, s.errorf(start, "the dict that begins here has no '}'")
		}
		at := s.pos
		k, err := s.value(depth + 1)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			return nil, s.errorf(at, "keys of a dict must be texts, not %s", describe(k))
		}
		s.skip(true)
		if s.peek() != ':' {
			return nil, s.errorf(s.pos, "expected ':' after a key, found %s", s.found())
		}
		s.pos++
		s.skip(true)
		if out[key], err = s.value(depth + 1); err != nil {
			return nil, err
		}
		s.skip(true)
		if s.peek() == ',' {
			s.pos++
		} else if s.peek() != '}' {
			return nil, s.errorf(s.pos, "expected ',' or '}', found %s", s.found())
		}
	}
}
