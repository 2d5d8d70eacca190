package rewind

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// tracer is the one thread that may speak ptrace: the kernel accepts requests only
// from the thread that attached. When it ends, the kernel lets everything go that it
// had attached to, which is also how a tree with a thread that does not stop is freed.
type tracer struct {
	work chan func()
	done chan struct{}
	tid  int
}

var errTracerGone = errors.New("the tracing thread has ended")

func startTracer() *tracer {
	t := &tracer{work: make(chan func()), done: make(chan struct{})}
	t.tid = ownThread(t.serve)
	return t
}

func (t *tracer) serve() {
	defer close(t.done)
	uapi.ExactTimers()
	for f := range t.work {
		f()
	}
}

// ownThread has f run by a thread that ends with it, since it is never unlocked, and answers
// the thread's number. The program's first thread would not end: the runtime parks it for ever.
// So the goroutine that finds itself on it has another one take its place.
func ownThread(f func()) (tid int) {
	began := make(chan int)
	go func() {
		runtime.LockOSThread()
		if tid := uapi.Gettid(); tid != os.Getpid() {
			began <- tid
			f()
			return
		}
		began <- ownThread(f)
		runtime.UnlockOSThread()
	}()
	return <-began
}

func (t *tracer) do(f func() error) error {
	var err error
	ready := make(chan struct{})
	select {
	case t.work <- func() { err = f(); close(ready) }:
	case <-t.done:
		return errTracerGone
	}
	<-ready
	return err
}

// stop ends the tracing thread and waits until the kernel has let go of what it was
// attached to, which is a little after the goroutine has ended.
func (t *tracer) stop() {
	close(t.work)
	<-t.done
	for range 2000 {
		if taskState(os.Getpid(), t.tid) == 0 {
			return
		}
		uapi.Nap(500_000)
	}
}

// errTimeout says that a thread did not reach its stop in time.
var errTimeout = errors.New("timed out")

// await waits for the next event of one thread. Waiting is by asking again: the kernel
// has no wait with a deadline, and a signal that interrupts one does not exist in a Go
// program. The first questions give way to the thread that is waited for, which has some
// microseconds' work to do; later ones sleep.
func await(tid int, deadline time.Time) (uapi.WaitStatus, error) {
	nap := int64(10_000)
	for i := 0; ; i++ {
		id, st, e := uapi.Wait(tid)
		switch {
		case e == uapi.EINTR:
			continue
		case e != 0:
			return 0, e
		case id != 0:
			return st, nil
		}
		if i < 100 {
			uapi.Yield()
			continue
		}
		if time.Now().After(deadline) {
			return 0, errTimeout
		}
		uapi.Nap(nap)
		if nap < 500_000 {
			nap += nap / 4
		}
	}
}
