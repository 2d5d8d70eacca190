package microvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/pommelgym/pommel/internal/microvm/firecracker"
	"github.com/pommelgym/pommel/internal/microvm/wire"
)

// vsock is a link over a socket of Firecracker's: each connection is one with the guest's database.
type vsock struct {
	socket string

	mu   sync.Mutex
	open []net.Conn // guarded by mu
}

func (l *vsock) dial(ctx context.Context) (net.Conn, error) {
	c, err := firecracker.Dial(ctx, l.socket, wire.StreamPort)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	return c, nil
}

func (l *vsock) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func (l *vsock) cleared() error { return nil }

// taken has nothing to wait for: connections end when a machine is saved.
func (l *vsock) taken(context.Context) error { return nil }

func (l *vsock) putBack() error { return errors.New("a machine on vsock cannot be put back in place") }

func (l *vsock) close() { l.release() }

// maxForwarded is how many connections a browser may have with a port of the guest.
const maxForwarded = 256

// forward leads a port of the browser's loopback to one of the guest's.
type forward struct {
	listener net.Listener
	socket   string
	port     uint32
	wg       sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc
}

func newForward(ctx context.Context, box Box, socket string, port uint16) (*forward, error) {
	l, err := box.Listen(ctx, fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("lead port %d into the machine: %w", port, err)
	}
	f := &forward{listener: l, socket: socket, port: wire.ForwardPort + uint32(port)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.wg.Go(f.serve)
	return f, nil
}

func (f *forward) serve() {
	slots := make(chan struct{}, maxForwarded)
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		f.wg.Go(func() {
			defer func() { <-slots }()
			f.join(c)
		})
	}
}

// join copies in both directions. The end of one is passed on, so that an answer to a request whose
// sender has said its last word still arrives; when both have ended, or the machine has, it is over.
func (f *forward) join(browser net.Conn) {
	defer browser.Close()
	guest, err := firecracker.Dial(f.ctx, f.socket, f.port)
	if err != nil {
		return // a closed connection is what tells the browser
	}
	defer guest.Close()
	stop := context.AfterFunc(f.ctx, func() { _, _ = browser.Close(), guest.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(guest, browser)
		_ = guest.CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(browser, guest)
		_ = browser.Close() // an application that hangs up does not wait for more
	})
	both.Wait()
}

func (f *forward) close() {
	f.cancel()
	_ = f.listener.Close()
	f.wg.Wait()
}
