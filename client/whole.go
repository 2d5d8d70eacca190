package client

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
)

// whole sends each message of a stream in one piece. The RPC library hands over its length
// and its content one after the other, and the transport makes a frame of each, which costs
// a system call and the server several wake-ups.
type whole struct{ next http.RoundTripper }

// prefixSize is the size of what stands before each message: flags and length.
const prefixSize = 5

func (t whole) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && strings.HasPrefix(r.Header.Get("Content-Type"), "application/connect+") {
		r = r.Clone(r.Context())
		r.Body = &messages{ReadCloser: r.Body}
	}
	return t.next.RoundTrip(r)
}

// messages is the body of a stream.
type messages struct {
	io.ReadCloser
	left  int  // of the message under way
	plain bool // its reader has no room for whole messages
}

// Read gives a message as a whole where there is room for it. Its content is on the way
// once its length is here, so this waits for nothing else.
func (m *messages) Read(p []byte) (int, error) {
	switch {
	case m.left > 0:
		n, err := m.ReadCloser.Read(p[:min(len(p), m.left)])
		m.left -= n
		return n, err
	case m.plain || len(p) < prefixSize:
		m.plain = true
		return m.ReadCloser.Read(p)
	}
	n, err := io.ReadFull(m.ReadCloser, p[:prefixSize])
	if err != nil {
		return n, end(err)
	}
	size := int(binary.BigEndian.Uint32(p[1:prefixSize]))
	n, err = io.ReadFull(m.ReadCloser, p[prefixSize:min(len(p), prefixSize+size)])
	m.left = size - n
	return prefixSize + n, end(err)
}

// end is the error that the body itself gave.
func end(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}
