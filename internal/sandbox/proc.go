package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Proc is a process that the keeper runs.
type Proc struct {
	Name string

	box  *Sandbox
	key  int
	pid  int
	log  *Log
	exit Exit

	ended  chan struct{} // closed when it has ended
	logged chan struct{} // closed when its output has been read to the end
	done   chan struct{}
}

// Pid is the pid inside the sandbox.
func (p *Proc) Pid() int { return p.pid }

// Ended is closed when the process has ended; it is not when the keeper went first.
func (p *Proc) Ended() <-chan struct{} { return p.ended }

// Done is closed a moment after Ended, when the last output is in Log too.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Exit is how it ended; valid after Ended.
func (p *Proc) Exit() Exit { return p.exit }

// While is ctx until the process has ended, too: the cause says how it did, before what.
func (p *Proc) While(ctx context.Context, before string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.Done():
			cancel(fmt.Errorf("it %v before %s", p.Exit(), before))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Log is the last output of the process.
func (p *Proc) Log() string { return p.log.String() }

// Signal sends a signal to the process and those of its session.
func (p *Proc) Signal(ctx context.Context, sig syscall.Signal) error {
	_, err := p.box.call(ctx, request{Signal: &signalRequest{Key: p.key, Signal: sig}})
	return err
}

func (p *Proc) finish(e exitEvent) {
	delete(p.box.procs, p.key)
	p.exit = Exit{Code: e.Code}
	if e.Signal != 0 {
		p.exit.Signal = e.Signal.String()
	}
	close(p.ended)
	go func() {
		defer close(p.done)
		// A child that lives on may hold the output open.
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-p.logged:
		case <-timer.C:
		}
	}()
}

// lastWords is how long the output of an ended process is waited for.
const lastWords = 250 * time.Millisecond

func (p *Proc) readLog(r *os.File) {
	defer close(p.logged)
	defer r.Close()
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		_, _ = p.log.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

// maxLog bounds what is kept of a process's output.
const maxLog = 16 << 10

// Log keeps the end of an output. It may be written and read at once.
type Log struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

func newLog() *Log { return &Log{} }

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if over := len(l.buf) - maxLog; over > maxLog {
		// Cut rarely and by much, not at each write.
		l.buf = append([]byte(nil), l.buf[over:]...)
		l.cut = true
	}
	return len(p), nil
}

// String is the last whole lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buf
	if l.cut {
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return string(bytes.TrimSpace(b))
}

func (l *Log) suffix() string {
	if s := l.String(); s != "" {
		return "\n" + s
	}
	return ""
}
