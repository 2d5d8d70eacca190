package microvm

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// stream is one use of a connection with the guest. The connection itself lasts as long as
// the machine: the emulator has one end of it and does not take another.
type stream struct {
	*net.UnixConn
	closed  atomic.Bool
	reading sync.Mutex
}

// Read reads until the stream is closed.
func (s *stream) Read(b []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	return s.UnixConn.Read(b)
}

// Write writes until the stream is closed.
func (s *stream) Write(b []byte) (int, error) {
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	return s.UnixConn.Write(b)
}

// SetDeadline is net.Conn's; that of a closed stream is another user's affair.
func (s *stream) SetDeadline(t time.Time) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	return s.UnixConn.SetDeadline(t)
}

// SetReadDeadline is net.Conn's.
func (s *stream) SetReadDeadline(t time.Time) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	return s.UnixConn.SetReadDeadline(t)
}

// SetWriteDeadline is net.Conn's.
func (s *stream) SetWriteDeadline(t time.Time) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	return s.UnixConn.SetWriteDeadline(t)
}

// Close ends this use. When it returns nobody reads the connection any more.
func (s *stream) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	err := s.UnixConn.SetDeadline(time.Unix(1, 0))
	s.reading.Lock()
	defer s.reading.Unlock()
	return err
}
