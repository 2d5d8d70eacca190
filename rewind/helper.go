package rewind

import (
	"runtime"
	"sync/atomic"

	"github.com/pommelgym/pommel/internal/uapi"
)

// helper is a second thread for work that needs no ptrace. It is kept off the processor that the
// tracing thread runs on. Without that the kernel, when it wakes a thread, often has it
// wait for the busy processor, up to the next tick: in a virtual machine a sleeping processor
// looks like one that the host has given to somebody else. It is no goroutine like others, since
// those are given to threads that are woken just so.
type helper struct {
	tid  int
	word atomic.Uint32 // what the thread is to do; it sleeps for changes of it
	work func()        // written before word says called
}

const (
	resting uint32 = iota
	called
	working
	dismissed
)

// startHelper answers nil where there is only one processor.
func startHelper() *helper {
	if runtime.NumCPU() < 2 {
		return nil
	}
	h := &helper{}
	h.tid = ownThread(h.serve)
	return h
}

func (h *helper) serve() {
	for {
		switch h.word.Load() {
		case dismissed:
			return
		case called:
			if h.word.CompareAndSwap(called, working) {
				h.work()
				h.word.CompareAndSwap(working, resting)
			}
		default:
			uapi.FutexWait(&h.word, resting)
		}
	}
}

// start has the helper do some work. The function that it answers is called when nothing is left of
// it that nobody has begun, and waits for what the helper is at; if it never came to it, it need not any more.
func (h *helper) start(work func()) (end func()) {
	if h == nil || !uapi.AvoidCPU(h.tid) {
		return func() {}
	}
	h.work = work
	h.word.Store(called)
	uapi.FutexWake(&h.word)
	return func() {
		for !h.word.CompareAndSwap(called, resting) && h.word.Load() == working {
			uapi.Yield()
		}
	}
}

// dismiss ends the thread. It has nothing to do.
func (h *helper) dismiss() {
	if h != nil {
		h.word.Store(dismissed)
		uapi.FutexWake(&h.word)
	}
}
