package cdp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is in the chain of every error that a call gets because the pipe has ended.
var ErrClosed = errors.New("the pipe to the browser has ended")

const (
	readBuffer = 256 << 10
	// maxMessage bounds one frame: a screenshot of a huge page is tens of megabytes.
	maxMessage = 512 << 20
	// writeStall is how long a write may block. The browser's reader thread does
	// nothing but read, so a full pipe means that the process is stopped or dead.
	writeStall = 10 * time.Second
)

// Event is something that the browser reports unasked. Params is only valid
// during the call of the handler.
type Event struct {
	SessionID string
	Method    string
	Params    json.RawMessage
}

// Conn is one pipe to a browser.
type Conn struct {
	r    io.ReadCloser
	done chan struct{}

	wmu  sync.Mutex
	w    io.WriteCloser // guarded by wmu
	wbuf []byte         // guarded by wmu

	lastID   atomic.Int64
	sent     atomic.Int64
	received atomic.Int64

	mu       sync.Mutex
	err      error                  // guarded by mu; set once, before done is closed
	pending  map[int64]*Pending     // guarded by mu; nil after the end
	handlers map[string]func(Event) // guarded by mu; by session id
}

// New takes over both ends and starts reading.
func New(w io.WriteCloser, r io.ReadCloser) *Conn {
	c := &Conn{
		r: r, w: w,
		done:     make(chan struct{}),
		pending:  map[int64]*Pending{},
		handlers: map[string]func(Event){},
	}
	go c.read()
	return c
}

// Close ends the connection. The browser exits when its pipe ends.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	return nil
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err says why the connection has ended, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Stats are counters of one connection.
type Stats struct {
	CommandsSent     int64
	MessagesReceived int64
	Pending          int
	Handlers         int
}

// Stats returns the counters.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		CommandsSent:     c.sent.Load(),
		MessagesReceived: c.received.Load(),
		Pending:          len(c.pending),
		Handlers:         len(c.handlers),
	}
}

// fail ends the connection with a reason; only the first reason counts.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	if !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	c.err = err
	orphans := c.pending
	c.pending, c.handlers = nil, nil
	close(c.done)
	c.mu.Unlock()
	for _, p := range orphans {
		p.finish(nil, fmt.Errorf("%s: %w", p.method, err))
	}
	c.r.Close()
	// The write end is closed without wmu: a blocked writer must be freed by it.
	c.w.Close()
}

func (c *Conn) read() {
	f := frames{r: c.r, buf: make([]byte, readBuffer)}
	var m message
	for {
		b, err := f.next()
		if err != nil {
			c.fail(err)
			return
		}
		if err := parse(b, &m); err != nil {
			c.fail(err)
			return
		}
		c.received.Add(1)
		c.deliver(&m)
	}
}

func (c *Conn) deliver(m *message) {
	if m.ID == 0 {
		c.mu.Lock()
		h := c.handlers[m.SessionID]
		c.mu.Unlock()
		if h != nil {
			h(Event{SessionID: m.SessionID, Method: m.Method, Params: m.Params})
		}
		return
	}
	c.mu.Lock()
	p := c.pending[m.ID]
	delete(c.pending, m.ID)
	c.mu.Unlock()
	if p == nil {
		return // its waiter has given up
	}
	if m.Error != nil {
		m.Error.Method = p.method
		p.finish(nil, m.Error)
		return
	}
	p.finish(bytes.Clone(m.Result), nil)
}

// Session is one target's channel; the browser itself is Session("").
func (c *Conn) Session(id string) *Session { return &Session{conn: c, id: id} }

// Session sends commands to one target and takes its events.
type Session struct {
	conn *Conn
	id   string
}

// ID is the id that the browser gave the session; "" for the browser's own.
func (s *Session) ID() string { return s.id }

// Conn is the connection that the session belongs to.
func (s *Session) Conn() *Conn { return s.conn }

// Handle sets the one receiver of the session's events; nil removes it. See the
// package comment for what a handler may do.
func (s *Session) Handle(h func(Event)) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	switch {
	case s.conn.handlers == nil:
	case h == nil:
		delete(s.conn.handlers, s.id)
	default:
		s.conn.handlers[s.id] = h
	}
}

// Call sends a command, waits for its answer and decodes it into out unless out is nil.
func (s *Session) Call(ctx context.Context, method string, params, out any) error {
	p := s.Send(method, params)
	raw, err := p.Wait(ctx)
	if ctx.Err() != nil {
		p.Abandon()
	}
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("decode answer of %s: %w", method, err)
	}
	return nil
}

// Pending is a command on its way.
type Pending struct {
	conn    *Conn
	method  string
	session string
	id      int64
	done    chan struct{}
	result  json.RawMessage // set before done is closed
	err     error           // set before done is closed
}

func (p *Pending) finish(result json.RawMessage, err error) {
	p.result, p.err = result, err
	close(p.done)
}

// Send writes a command and does not wait for the answer. Commands to one session
// arrive in the order of sending, but the browser may work on Input commands and
// on Runtime commands in another order: wait between the two. params is nil, a
// json.RawMessage (taken as it is) or any value that encodes to an object.
func (s *Session) Send(method string, params any) *Pending {
	c := s.conn
	p := &Pending{conn: c, method: method, session: s.id, id: c.lastID.Add(1), done: make(chan struct{})}
	raw, err := encodeParams(params)
	if err != nil {
		p.finish(nil, fmt.Errorf("encode parameters of %s: %w", method, err))
		return p
	}
	c.mu.Lock()
	if c.pending == nil {
		err := c.err
		c.mu.Unlock()
		p.finish(nil, fmt.Errorf("%s: %w", method, err))
		return p
	}
	c.pending[p.id] = p
	c.mu.Unlock()
	c.write(p.id, s.id, method, raw)
	return p
}

func encodeParams(params any) ([]byte, error) {
	switch v := params.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return v, nil
	default:
		return json.Marshal(v)
	}
}

// write puts one frame into the pipe. A failure ends the connection, which fails the call.
func (c *Conn) write(id int64, session, method string, params []byte) {
	c.wmu.Lock()
	b := append(c.wbuf[:0], `{"id":`...)
	b = strconv.AppendInt(b, id, 10)
	if session != "" {
		b = append(b, `,"sessionId":"`...)
		b = append(b, session...)
		b = append(b, '"')
	}
	b = append(b, `,"method":"`...)
	b = append(b, method...)
	b = append(b, '"')
	if len(params) > 0 {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	b = append(b, '}', 0)
	if cap(b) <= readBuffer {
		c.wbuf = b
	}
	if d, ok := c.w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		// Not every file can have a deadline; one that cannot still works.
		_ = d.SetWriteDeadline(time.Now().Add(writeStall))
	}
	_, err := c.w.Write(b)
	c.wmu.Unlock()
	if err != nil {
		c.fail(fmt.Errorf("write %s: %w", method, err))
		return
	}
	c.sent.Add(1)
}

// Method is what was asked.
func (p *Pending) Method() string { return p.method }

// Done is closed when the answer is there or the pipe has ended.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait returns the command's result, or the first of: the browser's *Error, the
// end of the pipe, the end of ctx. It may be called again after ctx has ended,
// unless the command was abandoned.
func (p *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-p.done:
		return p.result, p.err
	default:
	}
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", p.method, context.Cause(ctx))
	}
}

// Abandon forgets the command: its answer will be dropped and Done is closed at once.
func (p *Pending) Abandon() {
	p.conn.mu.Lock()
	_, waiting := p.conn.pending[p.id]
	delete(p.conn.pending, p.id)
	p.conn.mu.Unlock()
	if waiting {
		p.finish(nil, fmt.Errorf("%s: %w", p.method, context.Canceled))
	}
}

// Settle waits until the browser has answered every command. Those for which skip says
// true do not count; skip may be nil.
func (c *Conn) Settle(ctx context.Context, skip func(session, method string) bool) error {
	for {
		p := c.unanswered(skip)
		if p == nil {
			return c.Err()
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("%s is unanswered: %w", p.method, context.Cause(ctx))
		}
	}
}

func (c *Conn) unanswered(skip func(session, method string) bool) *Pending {
	var waiting []*Pending
	c.mu.Lock()
	for _, p := range c.pending {
		waiting = append(waiting, p)
	}
	c.mu.Unlock()
	for _, p := range waiting {
		if skip == nil || !skip(p.session, p.method) {
			return p
		}
	}
	return nil
}

// Forget drops all that was asked and has not been answered, as if each had been
// abandoned, and all receivers of events: the browser was put back to a state in which it
// knows nothing of them.
func (c *Conn) Forget() {
	c.mu.Lock()
	var orphans []*Pending
	for id, p := range c.pending {
		orphans = append(orphans, p)
		delete(c.pending, id)
	}
	if c.handlers != nil {
		clear(c.handlers)
	}
	c.mu.Unlock()
	for _, p := range orphans {
		p.finish(nil, fmt.Errorf("%s: %w", p.method, context.Canceled))
	}
}
