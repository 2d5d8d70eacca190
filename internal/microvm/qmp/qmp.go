// Package qmp speaks QEMU's machine protocol: one JSON object a line, commands that are
// answered in order, and events in between.
package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/sys"
)

// Client is a connection to one QEMU. Its methods may be called at once; commands are
// carried out one after the other.
type Client struct {
	conn *net.UnixConn
	turn chan struct{}

	lines chan line // from the reader
	event func(Event)

	mu   sync.Mutex
	dead error // guarded by mu
}

// Event is what QEMU tells unasked.
type Event struct {
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

// Error is a command's failure as QEMU says it.
type Error struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

func (e *Error) Error() string { return e.Desc }

type line struct {
	Greeting json.RawMessage `json:"QMP"`
	Return   json.RawMessage `json:"return"`
	Error    *Error          `json:"error"`
	Event
}

// ErrClosed says that QEMU closed the connection.
var ErrClosed = errors.New("qemu closed its control connection")

// maxLine bounds one line.
const maxLine = 4 << 20

// New greets a QEMU at the other end of conn and takes conn over. event, if given, is told
// of each event; it must not wait for an answer of QEMU's.
func New(ctx context.Context, conn *net.UnixConn, event func(Event)) (*Client, error) {
	if event == nil {
		event = func(Event) {}
	}
	c := &Client{conn: conn, event: event, turn: make(chan struct{}, 1), lines: make(chan line, 1)}
	go c.read()
	first, err := c.next(ctx)
	if err == nil && first.Greeting == nil {
		err = errors.New("it did not greet")
	}
	if err == nil {
		err = c.Run(ctx, "qmp_capabilities", nil, nil)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("speak to qemu: %w", err)
	}
	return c, nil
}

// read hands answers and events on, until the connection ends.
func (c *Client) read() {
	defer close(c.lines)
	sc := bufio.NewScanner(c.conn)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for sc.Scan() {
		var l line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			c.fail(fmt.Errorf("qemu said what is no JSON: %w", err))
			return
		}
		if l.Name != "" {
			c.event(l.Event)
			continue
		}
		c.lines <- l
	}
	c.fail(errors.Join(ErrClosed, sc.Err()))
}

func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead == nil {
		c.dead = err
	}
}

func (c *Client) next(ctx context.Context) (line, error) {
	select {
	case l, ok := <-c.lines:
		if !ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			return line{}, c.dead
		}
		return l, nil
	case <-ctx.Done():
		return line{}, context.Cause(ctx)
	}
}

// Run carries out a command. args and out may be nil. An *Error is QEMU's refusal. After a
// context's end the connection is of no use: its answers would be taken for those of others.
func (c *Client) Run(ctx context.Context, command string, args, out any) error {
	return c.run(ctx, command, args, out, nil)
}

// PassFile hands QEMU a descriptor under a name, for commands that take one.
func (c *Client) PassFile(ctx context.Context, name string, fd int) error {
	return c.run(ctx, "getfd", map[string]string{"fdname": name}, nil, sys.Rights(fd))
}

func (c *Client) run(ctx context.Context, command string, args, out any, rights []byte) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	text, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, args})
	if err != nil {
		return fmt.Errorf("qemu %s: %w", command, err)
	}
	deadline, _ := ctx.Deadline() // without one it is the zero time, which bounds nothing
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("qemu %s: %w", command, err)
	}
	if _, _, err := c.conn.WriteMsgUnix(append(text, '\n'), rights, nil); err != nil {
		return fmt.Errorf("qemu %s: %w", command, err)
	}
	l, err := c.next(ctx)
	if err != nil {
		c.Close() // the answer may still come
		return fmt.Errorf("qemu %s: %w", command, err)
	}
	if l.Error != nil {
		return fmt.Errorf("qemu %s: %w", command, l.Error)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(l.Return, out); err != nil {
		return fmt.Errorf("qemu %s: %w", command, err)
	}
	return nil
}

// Status is the machine's run state, such as "running" or "paused".
func (c *Client) Status(ctx context.Context) (string, error) {
	var st struct{ Status string }
	err := c.Run(ctx, "query-status", nil, &st)
	return st.Status, err
}

// Stop halts the machine's processors. When it returns, nothing that QEMU has said is unread.
func (c *Client) Stop(ctx context.Context) error {
	if err := c.Run(ctx, "stop", nil, nil); err != nil {
		return err
	}
	st, err := c.Status(ctx)
	if err == nil && st != "paused" {
		err = fmt.Errorf("qemu stop: the machine is %s", st)
	}
	return err
}

// Continue lets the processors go on.
func (c *Client) Continue(ctx context.Context) error { return c.Run(ctx, "cont", nil, nil) }

// ignoreShared has a migration leave memory out that lies in a file of its own.
var ignoreShared = map[string]any{"capabilities": []map[string]any{{"capability": "x-ignore-shared", "state": true}}}

// Save writes the state of a stopped machine, its memory left out, to a descriptor.
func (c *Client) Save(ctx context.Context, fd int) error {
	if err := c.Run(ctx, "migrate-set-capabilities", ignoreShared, nil); err != nil {
		return err
	}
	if err := c.PassFile(ctx, "state", fd); err != nil {
		return err
	}
	if err := c.Run(ctx, "migrate", map[string]string{"uri": "fd:state"}, nil); err != nil {
		return err
	}
	return c.wait(ctx, func() (bool, error) {
		var m struct {
			Status string `json:"status"`
			Desc   string `json:"error-desc"`
		}
		if err := c.Run(ctx, "query-migrate", nil, &m); err != nil {
			return false, err
		}
		if m.Status == "failed" || m.Status == "cancelled" {
			return false, fmt.Errorf("qemu migrate: %s %s", m.Status, m.Desc)
		}
		return m.Status == "completed", nil
	})
}

// Load reads the state of a machine that was started to wait for one.
func (c *Client) Load(ctx context.Context, fd int) error {
	if err := c.Run(ctx, "migrate-set-capabilities", ignoreShared, nil); err != nil {
		return err
	}
	if err := c.PassFile(ctx, "state", fd); err != nil {
		return err
	}
	if err := c.Run(ctx, "migrate-incoming", map[string]string{"uri": "fd:state"}, nil); err != nil {
		return err
	}
	return c.wait(ctx, func() (bool, error) {
		st, err := c.Status(ctx)
		return st != "inmigrate", err
	})
}

// pollEvery is for what QEMU tells only when it is asked.
const pollEvery = 2 * time.Millisecond

func (c *Client) wait(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the connection. It may be called again.
func (c *Client) Close() { _ = c.conn.Close() }
