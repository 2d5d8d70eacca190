package microvm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// Machine is a running machine. Its methods may be called at once.
type Machine struct {
	t        *Template
	proc     *sandbox.Proc
	control  control
	agent    *agent
	link     link
	forwards []*forward
	memory   *os.File // of one that was booted to become a template, where it is in a file

	mu  sync.Mutex
	now time.Time // guarded by mu; the instant that the guest's services read
}

// Start starts a copy of a template. lost is told once when the services or the guest have ended.
func Start(ctx context.Context, box Box, t *Template, lost func(error)) (*Machine, error) {
	m, err := t.engine.copy(ctx, t, box, lost)
	if err != nil {
		return nil, err
	}
	m.now = t.wire.Now
	return m, nil
}

// hello asks whether the services of a copy are ready.
func (m *Machine) hello(ctx context.Context) error {
	reply, err := m.agent.call(ctx, wire.Request{Hello: true})
	if err != nil {
		return err
	}
	if reply.State == nil || !reply.State.Ready {
		return errors.New("the machine's services are not ready")
	}
	return nil
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

// explain adds the emulator's or the guest's last words.
func (m *Machine) explain(err error) error {
	if m.proc == nil {
		return err
	}
	select {
	case <-m.proc.Done():
		err = fmt.Errorf("it %v: %w", m.proc.Exit(), err)
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

// Stop halts the guest, so that it can be saved. It has read all that was said to it before, and
// nothing that it has said before is unread. Nobody may be using the connections with the database.
func (m *Machine) Stop(ctx context.Context) error {
	reading, cancel := context.WithTimeout(ctx, takenTimeout)
	defer cancel()
	if err := m.link.taken(reading); err != nil {
		return err
	}
	return m.control.Stop(ctx)
}

// takenTimeout bounds the wait for a guest that reads what was said to it: one that does not is broken.
const takenTimeout = 5 * time.Second

// Continue lets a guest go on that was stopped.
func (m *Machine) Continue(ctx context.Context) error { return m.control.Continue(ctx) }

// Resumed is called when the emulator's process was put back to a moment at which it was
// stopped. What the guest has said since then never happened; now is the instant that its
// services read. Nobody may be using the connections with the database meanwhile.
func (m *Machine) Resumed(ctx context.Context, now time.Time) error {
	if err := m.agent.forget(); err != nil {
		return err
	}
	if err := m.link.putBack(); err != nil {
		return err
	}
	m.mu.Lock()
	m.now = now
	m.mu.Unlock()
	return m.control.Continue(ctx)
}

// Dial connects with the guest's database, at most wire.Streams times.
func (m *Machine) Dial(ctx context.Context) (net.Conn, error) { return m.link.dial(ctx) }

// Restart ends the guest's services and starts them again, from nothing but the plan: what
// they did before is forgotten, but the emulator has translated their programs. The
// connections that were dialled are closed, and can be dialled anew.
func (m *Machine) Restart(ctx context.Context, progress func(string)) error {
	m.link.release()
	m.agent.dropEvents()
	if _, err := m.agent.call(ctx, wire.Request{Restart: true}); err != nil {
		return m.explain(err)
	}
	if err := m.link.cleared(); err != nil {
		return err
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

// Close lets go of the connections. The process ends with its sandbox.
func (m *Machine) Close() {
	for _, f := range m.forwards {
		f.close()
	}
	if m.control != nil {
		m.control.Close()
	}
	if m.agent != nil {
		m.agent.close()
	}
	if m.link != nil {
		m.link.close()
	}
	if m.memory != nil {
		_ = m.memory.Close()
	}
}
