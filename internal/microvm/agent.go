package microvm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
)

// agent is the host's side of the agent in a guest.
type agent struct {
	conn   *net.UnixConn
	events chan wire.Message // of the start; dropped when nobody reads them
	lost   func(error)

	writing sync.Mutex

	mu      sync.Mutex
	next    int                       // guarded by mu
	pending map[int]chan wire.Message // guarded by mu
	why     error                     // guarded by mu
	over    bool                      // guarded by mu; lost was told
	idle    chan struct{}             // guarded by mu; closed when the reader has ended

	dead chan struct{}
}

func newAgent(conn *net.UnixConn, lost func(error)) *agent {
	a := &agent{conn: conn, lost: lost, events: make(chan wire.Message, 64), pending: map[int]chan wire.Message{}, dead: make(chan struct{})}
	a.listen()
	return a
}

// listen starts the reader.
func (a *agent) listen() {
	idle := make(chan struct{})
	a.mu.Lock()
	a.idle = idle
	a.mu.Unlock()
	go func() {
		defer close(idle)
		a.read()
	}()
}

func (a *agent) read() {
	sc := bufio.NewScanner(a.conn)
	sc.Buffer(make([]byte, 64<<10), 4<<20)
	for sc.Scan() {
		var m wire.Message
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			a.fail(fmt.Errorf("the machine's agent said what is no JSON: %w", err))
			return
		}
		a.take(m)
	}
	if err := sc.Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
		a.fail(errors.Join(errors.New("the machine closed its agent's connection"), err))
	}
}

func (a *agent) take(m wire.Message) {
	if m.ID != 0 {
		a.mu.Lock()
		wait := a.pending[m.ID]
		delete(a.pending, m.ID)
		a.mu.Unlock()
		if wait != nil {
			wait <- m
		}
		return
	}
	if e := m.Ended; e != nil {
		err := fmt.Errorf("service %s ended: it %s", e.Service, e.How)
		if e.Log != "" {
			err = fmt.Errorf("%w\nlast output of %s:\n%s", err, e.Service, e.Log)
		}
		a.end(err)
		return
	}
	select {
	case a.events <- m:
	default:
	}
}

// end tells once that the guest is of no use any more, until it is put back.
func (a *agent) end(err error) {
	a.mu.Lock()
	told := a.over
	a.over = true
	a.mu.Unlock()
	if !told && a.lost != nil {
		a.lost(err)
	}
}

// fail ends everything that waits for the agent.
func (a *agent) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why == nil {
		a.why = err
		close(a.dead)
	}
}

func (a *agent) cause() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why
}

// answerTimeout bounds each question, whatever the caller's context says.
const answerTimeout = 30 * time.Second

func (a *agent) call(ctx context.Context, req wire.Request) (wire.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	wait := make(chan wire.Message, 1)
	a.mu.Lock()
	a.next++
	req.ID = a.next
	a.pending[req.ID] = wait
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.pending, req.ID)
		a.mu.Unlock()
	}()
	if err := a.write(req); err != nil {
		return wire.Message{}, err
	}
	select {
	case m, ok := <-wait:
		switch {
		case !ok:
			return m, errors.New("the machine was put back")
		case m.Err != "":
			return m, fmt.Errorf("the machine's agent: %s", m.Err)
		}
		return m, nil
	case <-a.dead:
		return wire.Message{}, a.cause()
	case <-ctx.Done():
		return wire.Message{}, fmt.Errorf("ask the machine's agent: %w", context.Cause(ctx))
	}
}

func (a *agent) write(req wire.Request) error {
	text, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("ask the machine's agent: %w", err)
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	if _, err := a.conn.Write(append(text, '\n')); err != nil {
		err = fmt.Errorf("ask the machine's agent: %w", err)
		a.fail(err)
		return err
	}
	return nil
}

// forget drops all that the agent has said, read or not, while the guest is stopped: it was
// put back to before it said it.
func (a *agent) forget() error {
	a.mu.Lock()
	idle := a.idle
	a.mu.Unlock()
	if err := a.conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return fmt.Errorf("put the machine's agent back: %w", err)
	}
	<-idle
	if err := a.cause(); err != nil {
		return err
	}
	if err := discard(a.conn); err != nil {
		return fmt.Errorf("put the machine's agent back: %w", err)
	}
	a.mu.Lock()
	for id, wait := range a.pending {
		close(wait)
		delete(a.pending, id)
	}
	a.over = false
	a.mu.Unlock()
	if err := a.conn.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("put the machine's agent back: %w", err)
	}
	a.listen()
	return nil
}

// dropEvents forgets what nobody has asked for.
func (a *agent) dropEvents() {
	for {
		select {
		case <-a.events:
		default:
			return
		}
	}
}

// discard reads away what has come.
func discard(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	var ended error
	err = raw.Control(func(fd uintptr) {
		for {
			n, err := syscall.Read(int(fd), buf)
			switch {
			case err == syscall.EINTR:
			case err == syscall.EAGAIN:
				return
			case err != nil:
				ended = err
				return
			case n == 0:
				ended = errors.New("the connection was closed")
				return
			}
		}
	})
	return errors.Join(err, ended)
}

func (a *agent) close() {
	_ = a.conn.Close()
	a.fail(errors.New("the machine was closed"))
}
