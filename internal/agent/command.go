package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/gym"
)

// command is a program that gets one JSON object a line on its standard input and
// answers each of type "reset" and "step" with one line {"action": "..."}.
//
//	{"type":"reset","task":...,"seed":...,"instruction":...,"observation":{...}}
//	{"type":"step","observation":{...}}
//	{"type":"end","success":true,"reward":1}
type command struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan answer
	once  sync.Once
	stop  chan struct{}
}

type answer struct {
	line []byte
	err  error
}

// answerTimeout bounds how long a program may think about one action.
const answerTimeout = 10 * time.Minute

type message struct {
	Type        string           `json:"type"`
	Task        string           `json:"task,omitempty"`
	Seed        *int64           `json:"seed,omitempty"`
	Instruction string           `json:"instruction,omitempty"`
	Observation *gym.Observation `json:"observation,omitempty"`
	Success     *bool            `json:"success,omitempty"`
	Reward      *float64         `json:"reward,omitempty"`
}

func startCommand(program string) (Agent, error) {
	cmd := exec.Command("/bin/sh", "-c", "exec "+program)
	cmd.Stderr = os.Stderr
	// The program and what it starts die with us, as one group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start agent %q: %w", program, err)
	}
	c := &command{cmd: cmd, in: in, lines: make(chan answer), stop: make(chan struct{})}
	go c.read(out)
	return c, nil
}

func (c *command) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		select {
		case c.lines <- answer{line, err}:
		case <-c.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

func (*command) View() gym.View { return gym.View{Elements: true} }

func (c *command) Play(ctx context.Context, e Episode) error {
	r := e.First()
	msg := message{Type: "reset", Task: r.Info.Task, Seed: &r.Info.Seed, Instruction: r.Instruction, Observation: r.Observation}
	total := 0.0
	for !r.Done() {
		action, err := c.ask(ctx, msg)
		if err != nil {
			return err
		}
		next, err := e.Step(ctx, action)
		if err != nil {
			return errors.Join(err, c.tell(message{Type: "end"}))
		}
		r = next
		total += r.Reward
		msg = message{Type: "step", Observation: r.Observation}
	}
	return c.tell(message{Type: "end", Success: &r.Info.Success, Reward: &total})
}

func (c *command) tell(m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode for the agent: %w", err)
	}
	if _, err := c.in.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("the agent's program has ended: %w", err)
	}
	return nil
}

func (c *command) ask(ctx context.Context, m message) (string, error) {
	if err := c.tell(m); err != nil {
		return "", err
	}
	timeout := time.NewTimer(answerTimeout)
	defer timeout.Stop()
	select {
	case a := <-c.lines:
		if a.err != nil {
			return "", fmt.Errorf("the agent's program ended without an action: %w", a.err)
		}
		var reply struct {
			Action *string `json:"action"`
		}
		if err := json.Unmarshal(a.line, &reply); err != nil || reply.Action == nil {
			return "", fmt.Errorf(`the agent's program wrote %.80q; expected one line {"action": "..."}`, a.line)
		}
		return *reply.Action, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-timeout.C:
		return "", fmt.Errorf("the agent's program gave no action within %v", answerTimeout)
	}
}

func (c *command) Close() error {
	c.once.Do(func() {
		close(c.stop)
		_ = c.in.Close()
		// A program that ends at end of input needs no signal; the others get one.
		end := time.AfterFunc(time.Second, func() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) })
		defer end.Stop()
		_ = c.cmd.Wait()
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	})
	return nil
}
