package worldclock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Supervisor answers what the processes of one world ask the kernel about time and chance.
type Supervisor struct {
	path   string // of the page, inside the world
	page   *Page
	source *Source
	ended  func(pid, status int)
	report func(error)

	// gate is held for reading while something is done to a process, and for writing by
	// whoever stops the world: it then finds no process half answered or traced.
	gate sync.RWMutex

	deadlines deadlines
	wg        sync.WaitGroup
}

// Options of a Supervisor.
type Options struct {
	// Page is the world's instant; Path is where each of its processes can open the page's file.
	Page *Page
	Path string
	// Source is where random bytes come from.
	Source *Source
	// Ended, if given, is told of a process whose end was taken from the kernel here.
	Ended func(pid, status int)
	// Report, if given, is told of failures that cost a process its life.
	Report func(error)
}

// New makes a supervisor.
func New(o Options) *Supervisor {
	s := &Supervisor{path: o.Path, page: o.Page, source: o.Source, ended: o.Ended, report: o.Report}
	if s.ended == nil {
		s.ended = func(int, int) {}
	}
	if s.report == nil {
		s.report = func(error) {}
	}
	return s
}

// Gate is held for writing by whoever stops the world's processes.
func (s *Supervisor) Gate() sync.Locker { return &s.gate }

// Pin keeps what has been written into programs until now, however much comes after it: a
// state of the world was saved with it inside.
func (s *Supervisor) Pin() { s.deadlines.pin() }

// Serve answers the calls of a listener until no process is left behind it, in the
// background. service names those processes to the Source. The listener is closed in the end.
func (s *Supervisor) Serve(listener int, service string) {
	uapi.NotifySync(listener)
	s.wg.Add(1)
	// Its thread has a number before the process that is about to start gets one.
	running := make(chan struct{})
	defer func() { <-running }()
	go func() {
		defer s.wg.Done()
		defer uapi.Close(listener)
		// Tracing belongs to a thread. It ends with the goroutine, as it is not unlocked.
		runtime.LockOSThread()
		close(running)
		s.loop(listener, service)
	}()
}

// Wait waits until all listeners have ended.
func (s *Supervisor) Wait() { s.wg.Wait() }

func (s *Supervisor) loop(listener int, service string) {
	poll := []uapi.PollFd{{Fd: int32(listener), Events: uapi.PollIn}}
	for {
		n, err := uapi.Poll(poll, -1)
		if errors.Is(err, uapi.EINTR) {
			continue
		}
		// A listener does not end by itself when its last process does; the poll says so.
		if err != nil || n > 0 && poll[0].Revents&uapi.PollIn == 0 {
			return
		}
		var call uapi.SeccompNotif
		switch e := uapi.NotifyRecv(listener, &call); e {
		case 0:
			s.handle(&request{SeccompNotif: &call, listener: listener, service: service})
		case uapi.EINTR, uapi.ENOENT:
		default:
			return
		}
	}
}

// request is one call that waits for an answer.
type request struct {
	*uapi.SeccompNotif
	listener int
	service  string
}

// answer gives the call a result.
func (r *request) answer(val int64, e uapi.Errno) {
	_ = uapi.NotifySend(r.listener, &uapi.SeccompResp{ID: r.ID, Val: val, Error: -int32(e)})
}

// goOn has the kernel carry the call out.
func (r *request) goOn() error {
	if e := uapi.NotifySend(r.listener, &uapi.SeccompResp{ID: r.ID, Flags: uapi.SeccompContinue}); e != 0 {
		return e
	}
	return nil
}

func (s *Supervisor) handle(r *request) {
	s.gate.RLock()
	// Who stops the world makes calls void that waited: they are made again later.
	if !uapi.NotifyValid(r.listener, r.ID) {
		s.gate.RUnlock()
		return
	}
	var err error
	switch r.Data.Nr {
	case uapi.SysExecve, uapi.SysExecveat:
		err = s.equip(r)
	case uapi.SysClockGettime, uapi.SysGettimeofday, uapi.SysTime:
		s.tell(r)
	case uapi.SysGetrandom:
		s.random(r)
	default:
		s.translate(r)
	}
	s.gate.RUnlock()
	var gone *goneError
	switch {
	case errors.As(err, &gone):
		s.ended(gone.pid, gone.status)
	case err != nil && !errors.Is(err, errGone):
		s.report(fmt.Errorf("a program of service %s could not be put under the world's clock: %w", r.service, err))
	}
}

const clockTAI = 11

// tell answers what time it is.
func (s *Supervisor) tell(r *request) {
	word := s.page.word.Load()
	sec, nsec := word>>nanoBits, word&(1<<nanoBits-1)
	out := r.Data.Args[0]
	var b [16]byte
	size, val := 16, int64(0)
	switch r.Data.Nr {
	case uapi.SysClockGettime:
		if out == clockTAI {
			sec += 37
		}
		out = r.Data.Args[1]
	case uapi.SysGettimeofday:
		nsec /= 1000
	default:
		size, val = 8, int64(sec)
	}
	binary.LittleEndian.PutUint64(b[:], sec)
	binary.LittleEndian.PutUint64(b[8:], nsec)
	if out == 0 && r.Data.Nr != uapi.SysClockGettime {
		r.answer(val, 0)
		return
	}
	if n, _ := uapi.Poke(int(r.Pid), out, b[:size]); n != size {
		r.answer(0, uapi.EFAULT)
		return
	}
	r.answer(val, 0)
}

// maxRandom is what one call gets at most, as from the kernel.
const maxRandom = 1<<25 - 1

// random answers with random bytes of the world.
func (s *Supervisor) random(r *request) {
	if s.source == nil || s.source.Real(r.service) {
		_ = r.goOn()
		return
	}
	left := min(r.Data.Args[1], maxRandom)
	at, done := r.Data.Args[0], int64(0)
	stream := s.source.stream(r.service, int(r.Pid))
	var b [4096]byte
	for left > 0 {
		part := b[:min(left, uint64(len(b)))]
		stream.fill(part)
		n, _ := uapi.Poke(int(r.Pid), at, part)
		done += int64(n)
		if n != len(part) {
			break
		}
		at, left = at+uint64(n), left-uint64(n)
	}
	if left > 0 && done == 0 {
		r.answer(0, uapi.EFAULT)
		return
	}
	r.answer(done, 0)
}
