package microvm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/qmp"
	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/sys"
)

// Machine is a running emulator. Its methods may be called at once.
type Machine struct {
	t     *Template
	proc  *sandbox.Proc
	qmp   *qmp.Client
	agent *agent

	mu      sync.Mutex
	streams []*net.UnixConn // all that lead to the guest's database
	dialled []*stream       // guarded by mu; those that were asked for
	now     time.Time       // guarded by mu; the instant that the guest's services read
}

// Runner starts a process with descriptors from 3 on, as sandbox.Run does.
type Runner func(ctx context.Context, p sandbox.Process, extra ...*os.File) (*sandbox.Proc, error)

// Start starts a copy of a template. run starts the emulator, in a sandbox that has the
// template's Binds and User. lost is told once when the services or the guest have ended.
func Start(ctx context.Context, run Runner, t *Template, lost func(error)) (*Machine, error) {
	m, err := start(ctx, t, run, nil, lost)
	if err != nil {
		return nil, err
	}
	if err := m.resume(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// start runs the emulator: with memory given it boots, else it waits for the template's state.
func start(ctx context.Context, t *Template, run Runner, memory *os.File, lost func(error)) (_ *Machine, err error) {
	fresh := memory != nil
	if !fresh {
		memory = t.memory
	}
	m := &Machine{t: t, now: t.wire.Now}
	var ours, theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			for _, f := range ours {
				_ = f.Close()
			}
			m.Close()
		}
	}()
	for range wire.Streams + 2 { // the emulator's own, the agent's
		o, th, err := sys.Streampair()
		if err != nil {
			return nil, err
		}
		ours, theirs = append(ours, o), append(theirs, th)
	}
	extra := append([]*os.File{theirs[0], memory}, theirs[1:]...)
	if m.proc, err = run(ctx, t.process(fresh), extra...); err != nil {
		return nil, err
	}
	conns := make([]*net.UnixConn, len(ours))
	for i, f := range ours {
		if conns[i], err = streamOf(f); err != nil {
			return nil, err
		}
	}
	ours = nil
	m.streams = conns[2:]
	m.agent = newAgent(conns[1], lost)
	if m.qmp, err = qmp.New(ctx, conns[0], m.event(lost)); err != nil {
		return nil, m.explain(err)
	}
	return m, nil
}

func streamOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("connect with the machine: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("connect with the machine: it is a %T", c)
	}
	return u, nil
}

// event notices a guest that switched itself off.
func (m *Machine) event(lost func(error)) func(qmp.Event) {
	return func(e qmp.Event) {
		if e.Name == "SHUTDOWN" || e.Name == "GUEST_PANICKED" {
			m.agent.end(errors.New("the machine's guest ended: " + e.Name))
		}
	}
}

// explain adds the emulator's or the guest's last words.
func (m *Machine) explain(err error) error {
	if m.proc == nil {
		return err
	}
	select {
	case <-m.proc.Done():
		err = fmt.Errorf("the emulator %v: %w", m.proc.Exit(), err)
	default:
	}
	if log := m.proc.Log(); log != "" {
		err = fmt.Errorf("%w\nlast output of the machine:\n%s", err, log)
	}
	return err
}

// ready waits until the guest's services are, after a boot.
func (m *Machine) ready(ctx context.Context, progress func(string)) (wire.State, error) {
	for {
		select {
		case e := <-m.agent.events:
			if e.Stage != "" {
				progress(e.Stage)
			}
			if s := e.State; s != nil {
				if s.Failed != "" {
					return *s, m.explain(fmt.Errorf("service %s: %s\n%s", s.Service, s.Failed, s.Log))
				}
				return *s, nil
			}
		case <-m.agent.dead:
			return wire.State{}, m.explain(m.agent.cause())
		case <-m.proc.Done():
			return wire.State{}, m.explain(errors.New("it ended before its services were ready"))
		case <-ctx.Done():
			return wire.State{}, m.explain(context.Cause(ctx))
		}
	}
}

// resume has a machine that waits go on where the template was.
func (m *Machine) resume(ctx context.Context) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the machine: %w", err)
	}
	defer r.Close()
	go func() {
		defer w.Close()
		_, _ = w.Write(m.t.state) // who does not read it says so
	}()
	if err := m.qmp.Load(ctx, int(r.Fd())); err != nil {
		return m.explain(err)
	}
	if err := m.qmp.Continue(ctx); err != nil {
		return m.explain(err)
	}
	reply, err := m.agent.call(ctx, wire.Request{Hello: true})
	if err != nil {
		return m.explain(err)
	}
	if reply.State == nil || !reply.State.Ready {
		return m.explain(errors.New("the machine's services are not ready"))
	}
	return nil
}

// Stop halts the guest, so that it can be saved. Nothing that it has said before is unread.
func (m *Machine) Stop(ctx context.Context) error { return m.qmp.Stop(ctx) }

// Continue lets a guest go on that was stopped.
func (m *Machine) Continue(ctx context.Context) error { return m.qmp.Continue(ctx) }

// Resumed is called when the emulator's process was put back to a moment at which it was
// stopped. What the guest has said since then never happened; now is the instant that its
// services read. Nobody may be using the connections with the database meanwhile.
func (m *Machine) Resumed(ctx context.Context, now time.Time) error {
	if err := m.agent.forget(); err != nil {
		return err
	}
	// A server that was killed has said farewell.
	for _, c := range m.streams {
		if err := discard(c); err != nil {
			return fmt.Errorf("put a stream back: %w", err)
		}
	}
	m.mu.Lock()
	m.now = now
	m.mu.Unlock()
	return m.qmp.Continue(ctx)
}

// Dial connects with the guest's database. A machine has as many connections as wire.Streams.
func (m *Machine) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	if len(m.dialled) == len(m.streams) {
		m.mu.Unlock()
		return nil, errors.New("the machine has no stream left")
	}
	s := &stream{UnixConn: m.streams[len(m.dialled)]}
	m.dialled = append(m.dialled, s)
	n := len(m.dialled)
	m.mu.Unlock()
	if _, err := m.agent.call(ctx, wire.Request{Dial: n}); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Restart ends the guest's services and starts them again, from nothing but the plan: what
// they did before is forgotten, but the emulator has translated their programs. The
// connections that were dialled are closed, and can be dialled anew.
func (m *Machine) Restart(ctx context.Context, progress func(string)) error {
	m.mu.Lock()
	old := m.dialled
	m.dialled = nil
	m.mu.Unlock()
	for _, s := range old {
		_ = s.Close()
	}
	m.agent.dropEvents()
	if _, err := m.agent.call(ctx, wire.Request{Restart: true}); err != nil {
		return m.explain(err)
	}
	// The guest has let go of its ends: what is left in them was said before.
	for _, c := range m.streams[:len(old)] {
		if err := errors.Join(discard(c), c.SetDeadline(time.Time{})); err != nil {
			return fmt.Errorf("clear a stream: %w", err)
		}
	}
	st, err := m.ready(ctx, progress)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = st.Now
	return nil
}

// Clocked is nil when the guest's services live by the world's clock; else it says why not.
func (m *Machine) Clocked() error { return m.t.Clocked() }

// Now is the instant that the guest's services read.
func (m *Machine) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// SetClock sets that instant.
func (m *Machine) SetClock(ctx context.Context, at time.Time) error {
	if _, err := m.agent.call(ctx, wire.Request{Clock: &at}); err != nil {
		return fmt.Errorf("set the machine's clock: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = at
	return nil
}

// Reseed makes the random bytes of the guest's services a function of a seed.
func (m *Machine) Reseed(ctx context.Context, label string, seed uint64) error {
	_, err := m.agent.call(ctx, wire.Request{Reseed: &wire.Reseed{Label: label, Seed: seed}})
	return err
}

// Check asks whether all services live; those that ended before are told of when it returns.
func (m *Machine) Check(ctx context.Context) error {
	_, err := m.agent.call(ctx, wire.Request{Check: true})
	return err
}

// Log is the last output of a service.
func (m *Machine) Log(ctx context.Context, service string) (string, error) {
	r, err := m.agent.call(ctx, wire.Request{Log: service})
	return r.Text, err
}

// Members are the processes of the guest's services.
func (m *Machine) Members(ctx context.Context) ([]sandbox.Member, error) {
	r, err := m.agent.call(ctx, wire.Request{Members: true})
	return r.Members, err
}

// execTimeout bounds a program that was not given a time.
const execTimeout = 20 * time.Second

// Exec runs a program as root of the guest and answers its output and exit code.
func (m *Machine) Exec(ctx context.Context, argv ...string) (output string, code int, err error) {
	left := execTimeout
	if at, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(at))
	}
	r, err := m.agent.call(ctx, wire.Request{Exec: &wire.Exec{Argv: argv, Timeout: left}})
	return r.Text, r.Code, err
}

// Close lets go of the connections. The emulator ends with its sandbox.
func (m *Machine) Close() {
	if m.qmp != nil {
		m.qmp.Close()
	}
	if m.agent != nil {
		m.agent.close()
	}
	for _, c := range m.streams {
		_ = c.Close()
	}
}
