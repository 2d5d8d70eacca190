package guest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// startTimeout bounds the start of all services. An emulated processor is slow.
const startTimeout = 5 * time.Minute

// startTries is how often the services are started, from nothing each time. Programs have deadlines of
// their own, which one that is emulated and not translated yet can miss on a busy host; the next time
// it is quicker.
const startTries = 3

// start carries the plan out and tells how far it is.
func (a *agent) start() {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	service, err := a.startAll(ctx)
	for try := 1; err != nil && try < startTries && ctx.Err() == nil; try++ {
		a.send(wire.Message{Stage: fmt.Sprintf("starting again, since %s failed: %v", service, err)})
		if a.end() != nil {
			break
		}
		service, err = a.startAll(ctx)
	}
	st := wire.State{Ready: true}
	if err != nil {
		st = wire.State{Service: service, Failed: err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.procs[st.Service]; p != nil {
		st.Log = p.Log()
	}
	if a.box != nil {
		st.Now = a.box.Now()
		if err := a.box.Clocked(); err != nil {
			st.NoClock = err.Error()
		}
	}
	if st.Ready {
		go a.watch(a.box)
		for _, p := range a.procs {
			go func() {
				<-p.Done()
				a.tell(p)
			}()
		}
	}
	a.state = st
	go a.send(wire.Message{State: &st})
}

// watch tells of the end of a sandbox that nobody has ended: with its keeper all services are gone, and
// there is nobody left who would say so of each.
func (a *agent) watch(box *sandbox.Sandbox) {
	<-box.Done()
	a.mu.Lock()
	ours := a.box != box
	a.mu.Unlock()
	if !ours {
		a.send(wire.Message{Ended: &wire.Ended{Service: "keeper", How: fmt.Sprintf("is gone: %v", box.Err())}})
	}
}

// restart ends the services, with all that they have written, and has them started again.
func (a *agent) restart() error {
	if err := a.end(); err != nil {
		return err
	}
	go a.start()
	return nil
}

// end ends the services; nobody is told.
func (a *agent) end() error {
	a.mu.Lock()
	for _, p := range a.procs {
		a.told[p] = true
	}
	box, streams := a.box, a.streams
	a.box, a.state, a.streams, a.procs = nil, wire.State{}, nil, map[string]*sandbox.Proc{}
	a.mu.Unlock()
	for _, s := range streams {
		s.close()
	}
	if box == nil {
		return nil
	}
	if err := box.Close(); err != nil {
		return fmt.Errorf("end the services: %w", err)
	}
	return nil
}

func (a *agent) startAll(ctx context.Context) (service string, err error) {
	a.send(wire.Message{Stage: "starting the machine's sandbox"})
	cfg := a.plan.Sandbox
	cfg.Limits.Processes = a.plan.Processes
	box, err := sandbox.Start(ctx, cfg)
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	a.box = box
	a.mu.Unlock()
	for _, s := range a.plan.Services {
		a.send(wire.Message{Stage: "starting " + s.Process.Name})
		if err := a.startOne(ctx, box, s); err != nil {
			return s.Process.Name, err
		}
	}
	return "", nil
}

func (a *agent) startOne(ctx context.Context, box *sandbox.Sandbox, s wire.Service) error {
	if s.CopyTo != "" {
		if err := box.Copy(ctx, s.CopyFrom, s.CopyTo, s.Process.UID); err != nil {
			return err
		}
	}
	proc, err := box.Run(ctx, s.Process)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.procs[s.Process.Name] = proc
	a.mu.Unlock()
	if s.Cluster != "" {
		return postgres.WaitReady(ctx, box.Path(s.Cluster), proc.Done())
	}
	if s.Probe == nil {
		return errors.New("the plan does not say how to know that it is ready")
	}
	return box.WaitReady(ctx, proc, *s.Probe)
}
