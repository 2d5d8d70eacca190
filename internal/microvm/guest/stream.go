package guest

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/pommelgym/pommel/internal/microvm/wire"
)

// dial connects a port with the database. It stays connected until the database hangs up.
func (a *agent) dial(n int) error {
	if n > wire.Streams {
		return fmt.Errorf("there are %d streams", wire.Streams)
	}
	p, err := openPort(n)
	if err != nil {
		return err
	}
	conn, err := a.dialDatabase()
	if err != nil {
		_ = p.Close()
		return fmt.Errorf("connect a stream: %w", err)
	}
	s := &stream{port: p, conn: conn}
	a.keep(s)
	s.pump()
	return nil
}

// stream is a way to the world that is connected with a service.
type stream struct {
	port io.ReadWriteCloser
	conn net.Conn
	// whole streams end at both sides when one has ended; a port of the serial device has no end.
	whole bool
	pumps sync.WaitGroup
}

// pump copies in both directions until one side has ended.
func (s *stream) pump() {
	s.pumps.Go(func() {
		_, _ = io.Copy(s.conn, onlyReader{s.port})
		_ = s.port.Close()
		if s.whole {
			_ = s.conn.Close()
		}
	})
	s.pumps.Go(func() {
		_, _ = io.Copy(onlyWriter{s.port}, s.conn)
		_ = s.conn.Close()
		if s.whole {
			_ = s.port.Close()
		}
	})
}

// Ports have none of the shortcuts between descriptors that io.Copy would take.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// close lets go of both sides: a port that somebody still reads cannot be opened again.
func (s *stream) close() {
	_ = s.conn.Close()
	_ = s.port.Close()
	s.pumps.Wait()
}

func (a *agent) keep(s *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams = append(a.streams, s)
}

func (a *agent) drop(s *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams = slices.DeleteFunc(a.streams, func(t *stream) bool { return t == s })
}
