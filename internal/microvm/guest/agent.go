package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// agent answers the world.
type agent struct {
	plan wire.Plan

	writing sync.Mutex
	world   io.Writer // guarded by writing; nil while nobody is there

	mu    sync.Mutex
	box   *sandbox.Sandbox         // guarded by mu
	state wire.State               // guarded by mu
	procs map[string]*sandbox.Proc // guarded by mu
	told  map[*sandbox.Proc]bool   // guarded by mu: services whose end the world knows of, or need not

	streams []*stream // guarded by mu
}

func newAgent(plan wire.Plan) *agent {
	return &agent{plan: plan, procs: map[string]*sandbox.Proc{}, told: map[*sandbox.Proc]bool{}}
}

// attach says where the world is to be told. What happens while it is nowhere it learns from the
// state, which it asks for when it comes.
func (a *agent) attach(world io.Writer) {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.world = world
}

// send writes one message. The world reads whole lines.
func (a *agent) send(m wire.Message) {
	text, err := json.Marshal(m)
	if err != nil {
		text = fmt.Appendf(nil, `{"id":%d,"err":%q}`, m.ID, err.Error())
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	if a.world != nil {
		// A world that does not read has gone, and the machine with it.
		_, _ = a.world.Write(append(text, '\n'))
	}
}

// talk answers requests, in order, until the connection ends: each is short. Programs are run beside
// the others.
func (a *agent) talk(world io.Reader) error {
	r := bufio.NewReaderSize(world, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
		var req wire.Request
		if err := json.Unmarshal(line, &req); err != nil {
			a.send(wire.Message{Err: "not understood: " + err.Error()})
			continue
		}
		if req.Exec != nil {
			go a.answer(req)
			continue
		}
		a.answer(req)
	}
}

// answerTimeout bounds what the agent waits for.
const answerTimeout = 10 * time.Second

func (a *agent) answer(req wire.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	m := wire.Message{ID: req.ID}
	if err := a.handle(ctx, req, &m); err != nil {
		m.Err = err.Error()
	}
	a.send(m)
}

var errNotUp = errors.New("the services are not up")

func (a *agent) handle(ctx context.Context, req wire.Request, m *wire.Message) error {
	a.mu.Lock()
	box, state := a.box, a.state
	a.mu.Unlock()
	if req.Exec != nil {
		return execute(*req.Exec, m)
	}
	if box == nil && !req.Hello {
		return errNotUp
	}
	switch {
	case req.Hello:
		if box != nil {
			state.Now = box.Now()
		}
		m.State = &state
	case req.Clock != nil:
		return box.SetClock(*req.Clock)
	case req.Reseed != nil:
		return box.Reseed(ctx, req.Reseed.Label, req.Reseed.Seed)
	case req.Restart:
		return a.restart()
	case req.Dial > 0:
		return a.dial(req.Dial)
	case req.Check:
		return a.check(ctx, box)
	case req.Log != "":
		a.mu.Lock()
		defer a.mu.Unlock()
		p := a.procs[req.Log]
		if p == nil {
			return fmt.Errorf("there is no service %q", req.Log)
		}
		m.Text = p.Log()
	case req.Members:
		m.Members = box.Members()
	default:
		return errors.New("empty request")
	}
	return nil
}

// check tells of ends that nobody was told of yet.
func (a *agent) check(ctx context.Context, box *sandbox.Sandbox) error {
	if err := box.Check(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	procs := make([]*sandbox.Proc, 0, len(a.procs))
	for _, p := range a.procs {
		procs = append(procs, p)
	}
	a.mu.Unlock()
	for _, p := range procs {
		select {
		case <-p.Ended():
			<-p.Done()
			a.tell(p)
		default:
		}
	}
	return nil
}

// tell says that a service has ended, once.
func (a *agent) tell(p *sandbox.Proc) {
	a.mu.Lock()
	known := a.told[p]
	a.told[p] = true
	a.mu.Unlock()
	if !known {
		a.send(wire.Message{Ended: &wire.Ended{Service: p.Name, How: p.Exit().String(), Log: p.Log()}})
	}
}

// maxOutput bounds what a program's output may be.
const maxOutput = 64 << 10

// execute runs a program to its end.
func execute(e wire.Exec, m *wire.Message) error {
	if len(e.Argv) == 0 {
		return errors.New("nothing to run")
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.Timeout)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, e.Argv[0], e.Argv[1:]...)
	cmd.Env = []string{"PATH=" + path, "HOME=/root", "LANG=C.UTF-8"}
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 100 * time.Millisecond // what it left behind may hold its output open
	err := cmd.Run()
	m.Text = out.String()
	if len(m.Text) > maxOutput {
		m.Text = m.Text[:maxOutput]
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		m.Code = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay):
	case err != nil:
		return err
	}
	return nil
}
