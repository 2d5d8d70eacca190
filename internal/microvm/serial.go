package microvm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sys"
)

// serial is a link over ports of a serial device, of which there are wire.Streams. They last as long
// as the machine; the guest's agent connects each with the database when it is asked to.
type serial struct {
	agent *agent
	ports []*net.UnixConn

	mu      sync.Mutex
	dialled []*stream // guarded by mu
}

func (l *serial) dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	if len(l.dialled) == len(l.ports) {
		l.mu.Unlock()
		return nil, errors.New("the machine has no stream left")
	}
	s := &stream{UnixConn: l.ports[len(l.dialled)]}
	l.dialled = append(l.dialled, s)
	n := len(l.dialled)
	l.mu.Unlock()
	if _, err := l.agent.call(ctx, wire.Request{Dial: n}); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (l *serial) release() {
	l.mu.Lock()
	old := l.dialled
	l.dialled = nil
	l.mu.Unlock()
	for _, s := range old {
		_ = s.Close()
	}
}

// cleared drops what is left in the ports: it was said before.
func (l *serial) cleared() error {
	for _, c := range l.ports {
		if err := errors.Join(discard(c), c.SetDeadline(time.Time{})); err != nil {
			return fmt.Errorf("clear a stream: %w", err)
		}
	}
	return nil
}

// lookAgain is how often a port is looked at that the machine is about to read: nothing tells of it.
const lookAgain = 200 * time.Microsecond

func (l *serial) taken(ctx context.Context) error {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for _, c := range l.ports {
		for {
			n, err := sys.UnreadByPeer(c)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return fmt.Errorf("the machine does not read a stream: %w", context.Cause(ctx))
			}
		}
	}
	return nil
}

// putBack drops what was said since: a server that was killed has said farewell.
func (l *serial) putBack() error {
	for _, c := range l.ports {
		if err := discard(c); err != nil {
			return fmt.Errorf("put a stream back: %w", err)
		}
	}
	return nil
}

func (l *serial) close() {
	for _, c := range l.ports {
		_ = c.Close()
	}
}
