package browser

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	stringAnswer = `{"result":{"type":"string","value":`
	objectAnswer = `{"result":{"type":"object","value":`
	answerEnd    = `}}`
)

// decodeFast decodes the two shapes that nearly all evaluations are answered in, and
// reads the text of an observation once where the general way reads it four times. It
// says false, having left out as it was or overwritten it, when the general way is needed.
func decodeFast(raw json.RawMessage, out any) bool {
	if bytes.Contains(raw, []byte(`,"exceptionDetails":{`)) || !bytes.HasSuffix(raw, []byte(answerEnd)) {
		return false
	}
	if text, ok := out.(*string); ok {
		if !bytes.HasPrefix(raw, []byte(stringAnswer)) {
			return false
		}
		s, ok := unquoteJSON(raw[len(stringAnswer) : len(raw)-len(answerEnd)])
		if ok {
			*text = s
		}
		return ok
	}
	if out == nil || !bytes.HasPrefix(raw, []byte(objectAnswer)) {
		return false
	}
	return json.Unmarshal(raw[len(objectAnswer):len(raw)-len(answerEnd)], out) == nil
}

// unquoteJSON reads one JSON string that fills b. Half of a surrogate pair becomes U+FFFD.
func unquoteJSON(b []byte) (string, bool) {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return "", false
	}
	b = b[1 : len(b)-1]
	out := make([]byte, 0, len(b))
	for {
		i := bytes.IndexByte(b, '\\')
		plain := b
		if i >= 0 {
			plain = b[:i]
		}
		if bytes.IndexByte(plain, '"') >= 0 || !utf8.Valid(plain) {
			return "", false
		}
		out = append(out, plain...)
		if i < 0 {
			return string(out), true
		}
		var ok bool
		if out, b, ok = unescapeJSON(out, b[i+1:]); !ok {
			return "", false
		}
	}
}

// unescapeJSON reads what follows a backslash.
func unescapeJSON(out, b []byte) (grown, rest []byte, ok bool) {
	if len(b) == 0 {
		return out, b, false
	}
	switch b[0] {
	case 'n':
		return append(out, '\n'), b[1:], true
	case 't':
		return append(out, '\t'), b[1:], true
	case 'r':
		return append(out, '\r'), b[1:], true
	case 'b':
		return append(out, '\b'), b[1:], true
	case 'f':
		return append(out, '\f'), b[1:], true
	case '"', '\\', '/':
		return append(out, b[0]), b[1:], true
	case 'u':
		r, ok := hex4(b[1:])
		if !ok {
			return out, b, false
		}
		b = b[5:]
		if utf16.IsSurrogate(r) {
			low, ok := rune(0), false
			if len(b) >= 2 && b[0] == '\\' && b[1] == 'u' {
				low, ok = hex4(b[2:])
			}
			r = utf16.DecodeRune(r, low)
			if ok && r != utf8.RuneError {
				b = b[6:]
			}
		}
		return utf8.AppendRune(out, r), b, true
	}
	return out, b, false
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
