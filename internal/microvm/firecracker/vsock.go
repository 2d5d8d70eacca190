package firecracker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// ErrNobody says that nobody in the guest listens on the port, or not yet.
var ErrNobody = errors.New("nobody in the machine listens there")

// maxGreeting is longer than "OK " and a number.
const maxGreeting = 32

// Dial connects with a port of the guest: the socket takes a line that names it, and answers with one
// when the guest has accepted.
func Dial(ctx context.Context, socket string, port uint32) (*net.UnixConn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("reach the machine: %w", err)
	}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("reach the machine: the connection is a %T", conn), conn.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err = greet(c, port)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("reach port %d of the machine: %w", port, err)
	}
	return c, nil
}

func greet(c net.Conn, port uint32) error {
	if _, err := fmt.Fprintf(c, "CONNECT %d\n", port); err != nil {
		return errors.Join(ErrNobody, err)
	}
	// Byte by byte: what follows the line is the guest's.
	var line []byte
	var one [1]byte
	for len(line) < maxGreeting {
		if _, err := c.Read(one[:]); err != nil {
			return errors.Join(ErrNobody, err)
		}
		if one[0] == '\n' {
			if !strings.HasPrefix(string(line), "OK ") {
				break
			}
			return nil
		}
		line = append(line, one[0])
	}
	return fmt.Errorf("it was greeted with %q", line)
}

// againEvery is how often a guest that boots is knocked at: nothing tells when it listens.
const againEvery = 20 * time.Millisecond

// DialAgain is Dial to a guest that is not there yet: until somebody listens, or ctx ends.
func DialAgain(ctx context.Context, socket string, port uint32) (*net.UnixConn, error) {
	tick := time.NewTicker(againEvery)
	defer tick.Stop()
	for {
		c, err := Dial(ctx, socket, port)
		if !errors.Is(err, ErrNobody) || ctx.Err() != nil {
			return c, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("reach port %d of the machine: %w", port, context.Cause(ctx))
		}
	}
}
