package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/cdp"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// World is a running copy of an image. Its methods may be called at once.
type World struct {
	img *Image
	box *sandbox.Sandbox

	judge *postgres.Judge
	setup *postgres.SetupConn
	odd   string   // how it differs from other worlds of its image; set by start
	vm    *machine // in which the services run; nil where they do not
	saved *saved   // what driver rewind needs; only its Start and Reset touch it

	lost   chan struct{}
	closed chan struct{}

	mu      sync.Mutex
	browser *browser.Browser         // guarded by mu
	conn    *cdp.Conn                // guarded by mu
	procs   map[string]*sandbox.Proc // guarded by mu
	order   []string                 // guarded by mu; names in the order of their start
	cause   error                    // guarded by mu; why it is lost
	inGuest bool                     // guarded by mu; the cause lies in the guest of a machine
	ended   bool                     // guarded by mu; Close was called
	once    sync.Once
	err     error // of Close
}

func newWorld(img *Image) *World {
	return &World{img: img, lost: make(chan struct{}), closed: make(chan struct{}), procs: map[string]*sandbox.Proc{}}
}

// Image is what the world was started from.
func (w *World) Image() *Image { return w.img }

// Browser is the agent's browser, at the start page when the world is fresh.
func (w *World) Browser() *browser.Browser {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.browser
}

// Reader is the judge's view of the database.
func (w *World) Reader() postgres.Reader { return w.judge }

// Setup runs a task's setup as the application's role, in one transaction.
func (w *World) Setup(ctx context.Context, statements []postgres.Statement) error {
	return w.setup.ExecAll(ctx, statements)
}

// Lost is closed when a process of the world has ended. Cause says which and how.
func (w *World) Lost() <-chan struct{} { return w.lost }

// Cause is why the world is lost (fault.WorldLost), nil while it is not.
func (w *World) Cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

// Check asks whether every process of the world lives: a death that happened before the
// call is known when it returns, even if its report was still under way.
func (w *World) Check(ctx context.Context) error {
	err := w.box.Check(ctx)
	if err == nil && w.vm != nil && w.settledCause() == nil {
		err = w.vm.m.Check(ctx)
	}
	if cause := w.settledCause(); cause != nil {
		return cause
	}
	if err != nil {
		return fault.Wrap(fault.WorldLost, err, "ask the keeper")
	}
	return nil
}

// settledCause looks at the processes themselves, since their watchers may lag behind.
func (w *World) settledCause() error {
	w.mu.Lock()
	order := append([]string(nil), w.order...)
	w.mu.Unlock()
	for _, name := range order {
		p := w.proc(name)
		select {
		case <-p.Ended():
			<-p.Done()
			w.lose(deathOf(p))
		default:
		}
	}
	return w.Cause()
}

// Close ends every process of the world and frees its memory. It may be called again.
func (w *World) Close() error {
	w.once.Do(func() {
		w.mu.Lock()
		w.ended = true
		b, conn := w.browser, w.conn
		w.mu.Unlock()
		close(w.closed)
		var errs []error
		// First the processes: then nobody waits for an answer any more.
		if w.box != nil {
			errs = append(errs, w.box.Close())
		}
		if b != nil {
			_ = b.Close()
		}
		if conn != nil {
			_ = conn.Close()
		}
		if w.vm != nil {
			w.vm.m.Close()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if w.judge != nil {
			_ = w.judge.Close(ctx)
		}
		if w.setup != nil {
			_ = w.setup.Close(ctx)
		}
		w.lose(fault.New(fault.WorldLost, "the world was closed"))
		w.err = errors.Join(errs...)
	})
	return w.err
}

// run starts a process whose end means that the world is lost.
func (w *World) run(ctx context.Context, p sandbox.Process, extra ...*os.File) (*sandbox.Proc, error) {
	proc, err := w.box.Run(ctx, p, extra...)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.procs[p.Name] = proc
	w.order = append(w.order, p.Name)
	w.mu.Unlock()
	go w.watchProc(proc)
	return proc, nil
}

func (w *World) watchProc(proc *sandbox.Proc) {
	select {
	case <-proc.Done():
		w.lose(deathOf(proc))
	case <-w.closed:
	}
}

// renew hands everything over to a new World. Who still holds the old one finds it closed,
// whatever becomes of the processes.
func (w *World) renew() *World {
	n := newWorld(w.img)
	n.box, n.judge, n.setup, n.saved, n.odd, n.vm = w.box, w.judge, w.setup, w.saved, w.odd, w.vm
	if n.vm != nil {
		n.vm.owner.Store(n)
	}
	w.once.Do(func() {
		w.mu.Lock()
		w.ended = true
		n.procs, n.order = w.procs, w.order
		b, conn := w.browser, w.conn
		w.mu.Unlock()
		close(w.closed)
		w.lose(fault.New(fault.WorldLost, "the world was closed"))
		go n.watchBox()
		for _, p := range n.procs {
			go n.watchProc(p)
		}
		n.setBrowser(b, conn)
	})
	return n
}

func deathOf(p *sandbox.Proc) error {
	e := fault.New(fault.WorldLost, "service %s ended: it %v", p.Name, p.Exit())
	if text := tail(p.Log(), logLines); text != "" {
		e.Msg += "\nlast output of " + p.Name + ":\n" + text
	}
	return e
}

func (w *World) watchBox() {
	select {
	case <-w.box.Done():
		w.lose(fault.New(fault.WorldLost, "%v", w.box.Err()))
	case <-w.closed:
	}
}

// watchPipe notices a browser that closed its pipe, though its process may still be there.
func (w *World) watchPipe(conn *cdp.Conn) {
	select {
	case <-conn.Done():
		// A process closes its files before its end can be seen, and that end tells more.
		timer := time.NewTimer(deathFollows)
		defer timer.Stop()
		select {
		case <-w.lost:
		case <-w.closed:
		case <-timer.C:
		}
		w.lose(fault.New(fault.WorldLost, "the browser closed its pipe: %v", conn.Err()))
	case <-w.closed:
	}
}

// deathFollows is how long after its pipe a browser's process is given to end.
const deathFollows = time.Second

// lose records the first cause.
func (w *World) lose(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause != nil {
		return
	}
	w.cause = cause
	close(w.lost)
}

func (w *World) proc(name string) *sandbox.Proc {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.procs[name]
}

func (w *World) setBrowser(b *browser.Browser, conn *cdp.Conn) {
	w.mu.Lock()
	w.browser, w.conn = b, conn
	w.mu.Unlock()
	go w.watchPipe(conn)
}

// Log is the last output of a service.
func (w *World) Log(service string) (string, error) {
	if w.vm != nil && w.vm.runs(service) {
		return w.vm.log(service)
	}
	p := w.proc(service)
	if p == nil {
		return "", fault.New(fault.NotFound, "world %s has no service %q", w.img.Spec.Name, service)
	}
	return p.Log(), nil
}

// String names the world in messages.
func (w *World) String() string {
	return fmt.Sprintf("%s (keeper %d)", w.img.Spec.Name, w.box.KeeperPid())
}
