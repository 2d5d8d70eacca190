package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// dial connects a stream with the database, as root, which the database knows as the judge
// or as the owner of the connection's role. It stays connected until the database hangs up.
func (a *agent) dial(box *sandbox.Sandbox, n int) error {
	if n > wire.Streams {
		return fmt.Errorf("there are %d streams", wire.Streams)
	}
	port, err := openPort(n)
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", box.Path(a.plan.Database))
	if err != nil {
		_ = port.Close()
		return fmt.Errorf("connect a stream: %w", err)
	}
	s := &stream{port: port, conn: conn}
	a.mu.Lock()
	a.streams = append(a.streams, s)
	a.mu.Unlock()
	s.pumps.Go(func() {
		_ = pump(conn, port)
		_ = conn.Close()
	})
	s.pumps.Go(func() {
		_ = pump(port, conn)
		_ = port.Close()
	})
	return nil
}

// stream is a port that is connected with the database.
type stream struct {
	port  *os.File
	conn  net.Conn
	pumps sync.WaitGroup
}

// close lets go of both sides: a port that somebody still reads cannot be opened again.
func (s *stream) close() {
	_ = s.conn.Close()
	_ = s.port.Close()
	s.pumps.Wait()
}

// pump copies until one side has ended.
func pump(to io.Writer, from io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if _, werr := to.Write(buf[:n]); werr != nil {
			return werr
		}
		// A port reads as ended while nobody is at its other end.
		if _, isPort := from.(*os.File); isPort && errors.Is(err, io.EOF) {
			time.Sleep(closedPause)
			continue
		}
		if err != nil {
			return err
		}
	}
}
