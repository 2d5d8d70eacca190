package rewind

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/uapi"
)

// posixTimer is a timer made with timer_create.
type posixTimer struct {
	id    int
	clock int64
	event uapi.Sigevent
	left  uapi.ItimerSpec
}

// parseTimers reads the text of /proc/PID/timers.
func parseTimers(text []byte) []posixTimer {
	var out []posixTimer
	for line := range bytes.Lines(text) {
		key, val, ok := strings.Cut(strings.TrimSpace(string(line)), ":")
		if !ok {
			continue
		}
		val = strings.TrimSpace(val)
		if key == "ID" {
			id, _ := strconv.Atoi(val)
			out = append(out, posixTimer{id: id})
			continue
		}
		if len(out) == 0 {
			continue
		}
		tm := &out[len(out)-1]
		switch key {
		case "signal":
			sig, ptr, _ := strings.Cut(val, "/")
			n, _ := strconv.Atoi(sig)
			v, _ := strconv.ParseUint(strings.TrimPrefix(ptr, "0x"), 16, 64)
			tm.event.Signo, tm.event.Value = int32(n), v
		case "notify":
			how, who, _ := strings.Cut(val, "/")
			switch how {
			case "signal":
				tm.event.Notify = 0
			case "none":
				tm.event.Notify = 1
			case "thread":
				tm.event.Notify = 2
			}
			if id, ok := strings.CutPrefix(who, "tid."); ok {
				tm.event.Notify |= 4
				n, _ := strconv.Atoi(id)
				tm.event.Tid = int32(n)
			}
		case "ClockID":
			tm.clock, _ = strconv.ParseInt(val, 10, 64)
		}
	}
	return out
}

// lookTimers lists the timers that the process has now.
func (p *process) lookTimers() {
	p.now.timers = nil
	if n, err := uapi.Pread(p.timers, p.now.buffer(), 0); err == nil && n > 0 {
		p.now.timers = parseTimers(p.readAgain(p.timers, n))
	}
}

func (t *Tree) captureTimers(p *process, tk *task, st *processState) error {
	p.lookTimers()
	st.timers = p.now.timers
	if len(st.timers) == 0 {
		return nil
	}
	if len(st.timers) > 512 {
		return fail(ReasonTimer, "process %d has %d timers", p.pid, len(st.timers))
	}
	b := p.batch()
	for i, tm := range st.timers {
		b.add(uapi.SysTimerGettime, uint64(tm.id), p.scratchAddr(i*32))
	}
	if err := t.run(tk, b); err != nil {
		return err
	}
	for i, v := range uapi.View[uapi.ItimerSpec](p.scratch(), len(st.timers)) {
		st.timers[i].left = v
	}
	return nil
}

// undoTimers sets signal handlers, interval timers and POSIX timers.
func (t *Tree) undoTimers(p *process, tk *task, st *processState, b *batch) error {
	const actAt, itAt = handlersAt, handlersAt + 65*32
	mem := p.scratch()
	copy(uapi.View[uapi.Sigaction](mem[actAt:], 65), st.actions[:])
	copy(uapi.View[uapi.Itimerval](mem[itAt:], 3), st.itimers[:])
	for s := 1; s <= 64; s++ {
		if s != sigKill && s != sigStop {
			b.add(uapi.SysRtSigaction, uint64(s), p.scratchAddr(actAt+s*32), 0, 8)
		}
	}
	for i := range uint64(3) {
		b.add(uapi.SysSetitimer, i, p.scratchAddr(itAt+int(i)*32), 0)
	}
	b.add(uapi.SysUmask, st.umask)
	live := p.now.timers
	if len(live) == 0 && len(st.timers) == 0 {
		return nil
	}
	return t.undoPosixTimers(p, tk, st, live, b)
}

func (t *Tree) undoPosixTimers(p *process, tk *task, st *processState, live []posixTimer, b *batch) error {
	const valAt, eventAt = timersAt, timersAt + 512*32
	has := func(list []posixTimer, id int) bool {
		for i := range list {
			if list[i].id == id {
				return true
			}
		}
		return false
	}
	for _, tm := range live {
		if !has(st.timers, tm.id) && !b.full() {
			b.add(uapi.SysTimerDelete, uint64(tm.id))
		}
	}
	mem := p.scratch()
	for i, tm := range st.timers {
		if err := t.room(tk, b); err != nil {
			return err
		}
		if !has(live, tm.id) {
			if err := t.remakeTimer(p, tk, b, tm, eventAt); err != nil {
				return err
			}
		}
		uapi.View[uapi.ItimerSpec](mem[valAt:], 512)[i] = tm.left
		b.add(uapi.SysTimerSettime, uint64(tm.id), 0, p.scratchAddr(valAt+i*32), 0)
	}
	return nil
}

// Places in the scratch memory that keep their content until the batch has run.
const (
	handlersAt = 128 << 10
	timersAt   = 136 << 10
)

// remakeTimer makes a timer under its old number, which newer kernels allow.
func (t *Tree) remakeTimer(p *process, tk *task, b *batch, tm posixTimer, eventAt int) error {
	mem := p.scratch()
	uapi.View[uapi.Sigevent](mem[eventAt:], 1)[0] = tm.event
	uapi.View[int32](mem[eventAt+128:], 1)[0] = int32(tm.id)
	on := b.add(uapi.SysPrctl, uapi.PrTimerCreateRestoreIDs, 1)
	mk := b.add(uapi.SysTimerCreate, uint64(tm.clock), p.scratchAddr(eventAt), p.scratchAddr(eventAt+128))
	b.add(uapi.SysPrctl, uapi.PrTimerCreateRestoreIDs, 0)
	n := len(b.calls)
	if err := t.run(tk, b); err != nil {
		return err
	}
	if res := b.calls[:n]; res[on].ret != 0 || res[mk].ret != 0 {
		return fail(ReasonTimer, "timer %d of process %d was deleted and this kernel cannot make it again under its number", tm.id, p.pid)
	}
	return nil
}

// undoSignals takes away signals that are pending but were not, and queues those again that were.
func (t *Tree) undoSignals(p *process, st *processState) error {
	for i := range p.tasks {
		tk := &p.tasks[i]
		var now [64]uapi.SigInfo
		n := uapi.PeekSigInfo(tk.tid, false, now[:])
		if err := t.undoPending(p, tk, now[:max(n, 0)], tk.saved.pending, false); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		n = uapi.PeekSigInfo(tk.tid, true, now[:])
		if err := t.undoPending(p, tk, now[:max(n, 0)], st.pending, true); err != nil {
			return err
		}
	}
	return nil
}

func sameSignals(a, b []uapi.SigInfo) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (t *Tree) undoPending(p *process, tk *task, now, want []uapi.SigInfo, shared bool) error {
	if sameSignals(now, want) {
		return nil
	}
	mem := p.scratch()
	uapi.View[uint64](mem, 3)[0] = ^uint64(0) // set of all signals
	uapi.View[uint64](mem, 3)[1], uapi.View[uint64](mem, 3)[2] = 0, 0
	b := p.batch()
	for range len(now) + 64 { // a peek shows the first 64 only
		b.add(uapi.SysRtSigtimedwait, p.scratchAddr(0), 0, p.scratchAddr(8), 8)
	}
	n := len(b.calls)
	if err := t.run(tk, b); err != nil {
		return err
	}
	for _, c := range b.calls[:n] {
		if c.ret > 0 {
			t.report.SignalsDropped++
		}
	}
	// Taking signals took those of the other queue as well: put both back.
	again := []struct {
		list   []uapi.SigInfo
		shared bool
	}{{tk.saved.pending, false}, {nil, true}}
	if shared {
		again[1].list = want
	} else if st := t.target.process(p.pid); st != nil {
		again[1].list = st.pending
	}
	for _, q := range again {
		for i, si := range q.list {
			uapi.View[uapi.SigInfo](mem[256:], 128)[i] = si
			at := p.scratchAddr(256 + i*128)
			if q.shared {
				b.add(uapi.SysRtSigqueueinfo, uint64(p.pid), uint64(si.Signo), at)
			} else {
				b.add(uapi.SysRtTgsigqueueinfo, uint64(p.pid), uint64(tk.tid), uint64(si.Signo), at)
			}
		}
		if err := t.run(tk, b); err != nil {
			return err
		}
	}
	return nil
}
