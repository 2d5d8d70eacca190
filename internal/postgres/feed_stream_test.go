package postgres

import (
	"context"
	"encoding/binary"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
)

// peer is a scripted server at the other end of a stream.
func peer(t *testing.T) (*stream, net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = server.Close() })
	return &stream{conn: c}, server
}

func copyData(body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{'d'}, uint32(4+len(body))), body...)
}

func keepalive(end pglogrepl.LSN) []byte {
	b := binary.BigEndian.AppendUint64([]byte{'k'}, uint64(end))
	return copyData(append(b, make([]byte, 9)...)...)
}

func walData(payload string) []byte {
	return copyData(append(append([]byte{'w'}, make([]byte, 24)...), payload...)...)
}

func send(t *testing.T, c net.Conn, parts ...[]byte) {
	t.Helper()
	for _, p := range parts {
		if _, err := c.Write(p); err != nil {
			t.Fatal(err)
		}
	}
}

func collect(t *testing.T, s *stream, target pglogrepl.LSN) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var got []string
	err := s.until(ctx, target, func(b []byte) error {
		got = append(got, string(b))
		return nil
	})
	return strings.Join(got, ","), err
}

func TestStreamReadsUpToTheTarget(t *testing.T) {
	t.Parallel()
	s, server := peer(t)
	large := strings.Repeat("x", 300_000)
	go func() {
		for _, b := range [][]byte{walData("a"), keepalive(5), walData(large), keepalive(10), walData("later"), keepalive(20)} {
			// In pieces, as a socket may deliver them.
			for len(b) > 0 {
				n := min(len(b), 70_001)
				if _, err := server.Write(b[:n]); err != nil {
					return
				}
				b = b[n:]
			}
		}
	}()
	if got, err := collect(t, s, 10); err != nil || got != "a,"+large {
		t.Errorf("up to 10: %d bytes, %v", len(got), err)
	}
	if got, err := collect(t, s, 10); err != nil || got != "" {
		t.Errorf("up to 10 again: %q, %v", got, err)
	}
	if got, err := collect(t, s, 15); err != nil || got != "later" {
		t.Errorf("up to 15: %q, %v", got, err)
	}
}

// TestStreamForgets: half a message of an undone future does not spoil what comes after.
func TestStreamForgets(t *testing.T) {
	t.Parallel()
	s, server := peer(t)
	send(t, server, walData("a"), keepalive(50))
	if got, err := collect(t, s, 50); err != nil || got != "a" {
		t.Fatalf("before: %q, %v", got, err)
	}
	undone := walData("undone")
	send(t, server, walData("undone"), undone[:9])
	if err := s.forget(); err != nil {
		t.Fatal(err)
	}
	send(t, server, walData("b"), keepalive(30))
	if got, err := collect(t, s, 30); err != nil || got != "b" {
		t.Errorf("after: %q, %v", got, err)
	}
	// The same without a word is noticed.
	send(t, server, keepalive(20))
	if _, err := collect(t, s, 40); err == nil || !strings.Contains(err.Error(), "put back") {
		t.Errorf("a server that was put back in silence: %v", err)
	}
}

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	refusal := "SERROR\x00C55006\x00Mthe slot is in use\x00\x00"
	for name, bytes := range map[string][]byte{
		"the slot is in use":  append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(refusal))), refusal...),
		"a message too large": {'d', 0xff, 0xff, 0xff, 0xff},
		"an unknown message":  {'Z', 0, 0, 0, 5, 'I'},
		"an empty message":    copyData(),
	} {
		s, server := peer(t)
		send(t, server, bytes)
		_ = server.Close()
		if _, err := collect(t, s, 10); err == nil {
			t.Errorf("%s is no error", name)
		} else if name == "the slot is in use" && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFreshStreamReadsAgain: a new stream names the slot's place first and then begins before it.
func TestFreshStreamReadsAgain(t *testing.T) {
	t.Parallel()
	s, server := peer(t)
	s.fresh = true
	send(t, server, keepalive(50), keepalive(30), keepalive(45), walData("x"), keepalive(60))
	if got, err := collect(t, s, 60); err != nil || got != "x" {
		t.Errorf("up to 60: %q, %v", got, err)
	}
	send(t, server, keepalive(55))
	if _, err := collect(t, s, 70); err == nil || !strings.Contains(err.Error(), "put back") {
		t.Errorf("a server that was put back later: %v", err)
	}
}
