package guest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sys"
)

// onVsock says whether the world is at the other end of vsock, and not of a serial device.
func onVsock() (bool, error) {
	text, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return false, fmt.Errorf("read the kernel's arguments: %w", err)
	}
	return slices.Contains(strings.Fields(string(text)), wire.VsockArg), nil
}

// serveSerial answers the world over the serial device.
func (a *agent) serveSerial() error {
	p, err := openPort(0)
	if err != nil {
		return err
	}
	a.attach(p)
	go a.start()
	return a.talk(p)
}

// acceptor takes connections that the world makes.
type acceptor interface {
	Accept() (io.ReadWriteCloser, error)
	Close() error
}

// vsockPort is one of the machine's own.
type vsockPort struct{ *sys.VsockListener }

func (p vsockPort) Accept() (io.ReadWriteCloser, error) { return p.VsockListener.Accept() }

func listenVsock(port uint32) (acceptor, error) {
	l, err := sys.ListenVsock(port)
	if err != nil {
		return nil, err
	}
	return vsockPort{l}, nil
}

// serveConnections answers the world over connections that it makes. They end when the machine is saved,
// and in each copy of it the world makes new ones.
func (a *agent) serveConnections(listen func(port uint32) (acceptor, error)) error {
	dials := map[uint32]func() (net.Conn, error){wire.StreamPort: a.dialDatabase}
	for _, p := range a.plan.Ports {
		dials[wire.ForwardPort+uint32(p)] = func() (net.Conn, error) { return net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p)) }
	}
	for port, dial := range dials {
		l, err := listen(port)
		if err != nil {
			return err
		}
		defer l.Close()
		go a.joinAll(l, dial)
	}
	own, err := listen(wire.AgentPort)
	if err != nil {
		return err
	}
	defer own.Close()
	go a.start()
	for {
		c, err := own.Accept()
		if err != nil {
			return err
		}
		a.attach(c)
		_ = a.talk(c) // how it ended is nothing to anybody
		a.attach(nil)
		_ = c.Close()
	}
}

// dialDatabase connects with the database, as root, which the database knows as the judge or as the
// owner of the connection's role.
func (a *agent) dialDatabase() (net.Conn, error) {
	a.mu.Lock()
	box := a.box
	a.mu.Unlock()
	if box == nil {
		return nil, errNotUp
	}
	return (&net.Dialer{Timeout: answerTimeout}).DialContext(context.Background(), "unix", box.Path(a.plan.Database))
}

// joinAll connects each connection that comes with one that dial makes.
func (a *agent) joinAll(l acceptor, dial func() (net.Conn, error)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			to, err := dial()
			if err != nil {
				_ = c.Close() // which tells whoever asked
				return
			}
			s := &stream{port: c, conn: to, whole: true}
			a.keep(s)
			s.pump()
			s.pumps.Wait()
			a.drop(s)
		}()
	}
}
