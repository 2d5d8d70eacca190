package worldclock

import (
	"encoding/binary"
	"errors"
	"maps"
	"sync"

	"github.com/pommelgym/pommel/internal/uapi"
)

// instant is a timespec.
type instant struct{ sec, nsec int64 }

const second = 1_000_000_000

// minus is the distance in nanoseconds. Deadlines may be absurdly far away.
func (a instant) minus(b instant) int64 {
	const far = 1 << 32
	return min(max(a.sec-b.sec, -far), far)*second + a.nsec - b.nsec
}

func (a instant) plus(ns int64) instant {
	sec, nsec := a.sec+ns/second, a.nsec+ns%second
	if nsec < 0 {
		sec, nsec = sec-1, nsec+second
	}
	if nsec >= second {
		sec, nsec = sec+1, nsec-second
	}
	return instant{sec, nsec}
}

// deadlines remembers which instant of the world's time was replaced by which of the real
// time in a program's memory: the program, or the same program put back to an earlier
// state, may use that memory again. Real instants are exact to the nanosecond, so none
// stands for two.
type deadlines struct {
	mu     sync.Mutex
	recent map[instant]instant // guarded by mu
	order  []instant           // guarded by mu
	kept   map[instant]instant // guarded by mu
}

const rememberedDeadlines = 4096

// original is what the program meant by a deadline.
func (d *deadlines) original(t instant) instant {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o, ok := d.recent[t]; ok {
		return o
	}
	if o, ok := d.kept[t]; ok {
		return o
	}
	return t
}

func (d *deadlines) note(written, meant instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recent == nil {
		d.recent = map[instant]instant{}
	}
	if len(d.order) >= rememberedDeadlines {
		delete(d.recent, d.order[0])
		d.order = d.order[1:]
	}
	d.recent[written] = meant
	d.order = append(d.order, written)
}

func (d *deadlines) pin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil {
		d.kept = map[instant]instant{}
	}
	maps.Copy(d.kept, d.recent)
}

// translate turns the deadline of a call into one on the real clock, as far away as the
// program's is on the world's, and lets the call go on.
func (s *Supervisor) translate(r *request) {
	switch r.Data.Nr {
	case uapi.SysFutex:
		s.inPlace(r, r.Data.Args[3], 0)
	case uapi.SysClockNanosleep:
		s.inPlace(r, r.Data.Args[2], 0)
	case uapi.SysTimerSettime:
		if realtimeTimer(int(r.Pid), int32(r.Data.Args[0])) {
			s.inPlace(r, r.Data.Args[2], 16) // behind the interval
		}
	case uapi.SysTimerfdSettime:
		if s.timerfd(r) {
			return
		}
	}
	_ = r.goOn()
}

// inPlace rewrites a timespec in the program's memory.
func (s *Supervisor) inPlace(r *request, at, offset uint64) {
	if at == 0 {
		return
	}
	var b [16]byte
	if n, _ := uapi.Peek(int(r.Pid), at+offset, b[:]); n != len(b) {
		return // the kernel will say what is wrong with it
	}
	if out, ok := s.real(&b); ok {
		_, _ = uapi.Poke(int(r.Pid), at+offset, out[:])
	}
}

// real is a deadline on the real clock, unless there is none or it makes no sense.
func (s *Supervisor) real(b *[16]byte) (out [16]byte, ok bool) {
	le := binary.LittleEndian
	t := instant{int64(le.Uint64(b[:])), int64(le.Uint64(b[8:]))}
	if t == (instant{}) || t.sec < 0 || t.nsec < 0 || t.nsec >= second {
		return out, false
	}
	meant := s.deadlines.original(t)
	word := s.page.word.Load()
	world := instant{int64(word >> nanoBits), int64(word & (1<<nanoBits - 1))}
	sec, nsec := uapi.RealTime()
	written := instant{sec, nsec}.plus(meant.minus(world))
	if written.sec < 0 {
		written = instant{0, 1} // long over
	}
	s.deadlines.note(written, meant)
	le.PutUint64(out[:], uint64(written.sec))
	le.PutUint64(out[8:], uint64(written.nsec))
	return out, true
}

// timerfd arms the timer itself, on a copy of the descriptor: the program's memory stays as it is.
func (s *Supervisor) timerfd(r *request) bool {
	fd := int(int32(r.Data.Args[0]))
	var b [32]byte
	if !realtimeTimerfd(int(r.Pid), fd) {
		return false
	}
	if n, _ := uapi.Peek(int(r.Pid), r.Data.Args[2], b[:]); n != len(b) {
		return false
	}
	group, err := groupOf(int(r.Pid))
	if err != nil {
		return false
	}
	pidfd, err := uapi.PidfdOpen(group)
	if err != nil {
		return false
	}
	defer uapi.Close(pidfd)
	mine, e := uapi.PidfdGetfd(pidfd, fd)
	if e != 0 {
		return false
	}
	defer uapi.Close(mine)
	part := [16]byte(b[16:])
	if out, ok := s.real(&part); ok {
		copy(b[16:], out[:])
	}
	spec := uapi.View[uapi.ItimerSpec](b[:], 1)[0]
	var old uapi.ItimerSpec
	if err := uapi.TimerfdSetAbs(mine, int(r.Data.Args[1]), &spec, &old); err != nil {
		r.answer(0, asErrno(err))
		return true
	}
	if at := r.Data.Args[3]; at != 0 {
		_, _ = uapi.Poke(int(r.Pid), at, uapi.Bytes(&old))
	}
	r.answer(0, 0)
	return true
}

func asErrno(err error) uapi.Errno {
	var e uapi.Errno
	if errors.As(err, &e) {
		return e
	}
	return uapi.EINVAL
}
