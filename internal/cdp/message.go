package cdp

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// message is one frame from the browser: an answer (ID set) or an event (Method set).
type message struct {
	ID        int64           `json:"id"`
	Method    string          `json:"method"`
	SessionID string          `json:"sessionId"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     *Error          `json:"error"`
}

// Error is the browser's refusal of a command.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data"`
	// Method is the command that was refused.
	Method string `json:"-"`
}

func (e *Error) Error() string {
	s := e.Message
	if e.Data != "" {
		s += " (" + e.Data + ")"
	}
	if e.Method != "" {
		s = e.Method + ": " + s
	}
	return s
}

// parse reads one frame. The raw fields of m point into b.
func parse(b []byte, m *message) error {
	*m = message{}
	if parseFast(b, m) {
		return nil
	}
	if err := json.Unmarshal(b, m); err != nil {
		return fmt.Errorf("parse message of %d bytes: %w", len(b), err)
	}
	if m.ID == 0 && m.Method == "" {
		return fmt.Errorf("parse message of %d bytes: neither an id nor a method", len(b))
	}
	return nil
}

const sessionKey = `,"sessionId":"`

// parseFast takes the two shapes that make up nearly all traffic,
//
//	{"id":N,"result":{...}[,"sessionId":"S"]}
//	{"method":"M","params":{...}[,"sessionId":"S"]}
//
// without looking at the payload: a page's text can be megabytes, and the caller
// decodes it anyway. It relies on the order in which Chromium writes the members.
func parseFast(b []byte, m *message) bool {
	if len(b) < 2 || b[len(b)-1] != '}' {
		return false
	}
	body := b[:len(b)-1]
	switch {
	case bytes.HasPrefix(body, []byte(`{"id":`)):
		id, rest, ok := takeInt(body[len(`{"id":`):])
		if !ok || !bytes.HasPrefix(rest, []byte(`,"result":{`)) {
			return false
		}
		payload, session, ok := splitSession(rest[len(`,"result":`):])
		if !ok {
			return false
		}
		m.ID, m.Result, m.SessionID = id, payload, session
		return true
	case bytes.HasPrefix(body, []byte(`{"method":"`)):
		name, rest, ok := bytes.Cut(body[len(`{"method":"`):], []byte{'"'})
		if !ok || bytes.IndexByte(name, '\\') >= 0 || !bytes.HasPrefix(rest, []byte(`,"params":{`)) {
			return false
		}
		payload, session, ok := splitSession(rest[len(`,"params":`):])
		if !ok {
			return false
		}
		m.Method, m.Params, m.SessionID = string(name), payload, session
		return true
	}
	return false
}

func takeInt(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && i < 18 && b[i] >= '0' && b[i] <= '9' {
		n = n*10 + int64(b[i]-'0')
		i++
	}
	return n, b[i:], i > 0 && n > 0
}

// splitSession cuts the session id off the end of b. The payload is an object, so
// a frame whose last byte but one is a quote can only end in the session id.
func splitSession(b []byte) (payload []byte, session string, ok bool) {
	if len(b) < 2 {
		return nil, "", false
	}
	if b[len(b)-1] == '}' {
		return b, "", true
	}
	if b[len(b)-1] != '"' {
		return nil, "", false
	}
	from := max(0, len(b)-128)
	i := bytes.LastIndex(b[from:], []byte(sessionKey))
	if i < 0 {
		return nil, "", false
	}
	i += from
	id := b[i+len(sessionKey) : len(b)-1]
	if i == 0 || b[i-1] != '}' || bytes.ContainsAny(id, `"\`) {
		return nil, "", false
	}
	return b[:i], string(id), true
}
