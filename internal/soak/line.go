package soak

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// line is the network between a client and the server: its connections can be broken or
// made to stand still at any time.
type line struct {
	l      net.Listener
	target string
	open   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu
	held  chan struct{}         // guarded by mu: while set nothing moves; closed when it goes on
	over  bool                  // guarded by mu
	last  time.Time             // guarded by mu: when it was cut
}

// newLine leads to target. Close it.
func newLine(ctx context.Context, target string) (*line, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a line to the server: %w", err)
	}
	b := &line{l: l, target: target, conns: map[net.Conn]struct{}{}}
	b.open.Go(b.accept)
	return b, nil
}

func (b *line) addr() string { return b.l.Addr().String() }

func (b *line) accept() {
	for {
		in, err := b.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", b.target)
		if err != nil || !b.add(in, out) {
			_ = in.Close()
			continue
		}
		b.open.Go(func() { b.carry(in, out) })
		b.open.Go(func() { b.carry(out, in) })
	}
}

func (b *line) add(pair ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range pair {
		if b.over {
			_ = c.Close()
			continue
		}
		b.conns[c] = struct{}{}
	}
	return !b.over
}

// carry brings bytes from one end to the other until one of them is closed, which ends both.
func (b *line) carry(from, to net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		b.wait()
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, from)
	delete(b.conns, to)
}

func (b *line) wait() {
	b.mu.Lock()
	held := b.held
	b.mu.Unlock()
	if held != nil {
		<-held
	}
}

// hold makes the line stand still until release.
func (b *line) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil && !b.over {
		b.held = make(chan struct{})
	}
}

func (b *line) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != nil {
		close(b.held)
		b.held = nil
	}
}

// cut breaks all connections. New ones can be made at once.
func (b *line) cut() {
	b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = time.Now()
	for c := range b.conns {
		_ = c.Close()
	}
}

func (b *line) cutAfter(t time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last.After(t)
}

func (b *line) close() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	_ = b.l.Close() // nobody comes any more
	b.cut()
	b.open.Wait()
}
