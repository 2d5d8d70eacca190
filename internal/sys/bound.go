package sys

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Bound is a child process that the kernel kills when this process ends, however it ends.
type Bound struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// StartBound starts cmd as a Bound. The kernel ties the death signal to the thread that
// forked, not to the process, so a goroutine keeps that thread until the child has ended.
func StartBound(cmd *exec.Cmd) (*Bound, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	b := &Bound{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		b.err = cmd.Wait()
		close(b.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return b, nil
}

// Pid is the process id.
func (b *Bound) Pid() int { return b.cmd.Process.Pid }

// Done is closed once the child has ended and is reaped.
func (b *Bound) Done() <-chan struct{} { return b.done }

// Err is how the child ended, as exec.Cmd.Wait says; valid after Done.
func (b *Bound) Err() error {
	<-b.done
	return b.err
}

// Signal sends a signal to the child; to one that has ended it does nothing.
func (b *Bound) Signal(s syscall.Signal) { _ = b.cmd.Process.Signal(s) }

// Kill ends the child at once and waits until it is reaped.
func (b *Bound) Kill() {
	b.Signal(syscall.SIGKILL)
	<-b.done
}
