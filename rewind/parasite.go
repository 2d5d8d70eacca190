package rewind

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// The parasite is a piece of memory shared between tracer and process: one page of code
// and a data part. The code is mapped readable and executable, the data readable and
// writable: programs that forbid memory that is both accept it.
const (
	parasiteData  = 1 << 20
	parasiteSize  = pageSize + parasiteData
	maxCalls      = 1024
	scratchAt     = maxCalls * 64 // in the data part
	scratchSize   = 192 << 10
	copyListAt    = scratchAt + scratchSize
	maxCopies     = (parasiteData - copyListAt) / 24
	firstCode     = 0x2f0000000000 // far from where the kernel puts things by itself
	codeStep      = 16 << 20
	firstArena    = 0x200000000000
	placesTried   = 16 // and how many places a terabyte apart are tried: something else may lie there
	placesApart   = 1 << 40
	injectTimeout = 10 * time.Second
)

// call is one system call to be made inside a process; the layout is the machine code's.
type call struct {
	nr  uint64
	arg [6]uint64
	ret int64
}

const notMade = math.MinInt64

// batch collects system calls for one process, in the memory where they will run.
type batch struct {
	p     *process
	calls []call
}

func (p *process) batch() *batch {
	return &batch{p: p, calls: uapi.View[call](p.shared[pageSize:], maxCalls)[:0]}
}

func (b *batch) full() bool { return len(b.calls) > maxCalls-8 }

// add puts a call into the batch and gives its place.
func (b *batch) add(nr uint64, args ...uint64) int {
	c := call{nr: nr, ret: notMade}
	copy(c.arg[:], args)
	b.calls = append(b.calls, c)
	return len(b.calls) - 1
}

// check looks at the results of calls that must have worked.
func (b *batch) check(calls []call) error {
	for i := range calls {
		c := &calls[i]
		ok := true
		switch c.nr {
		case uapi.SysMmap, uapi.SysMunmap, uapi.SysMprotect, uapi.SysMadvise:
			ok = !isErr(c.ret)
		case uapi.SysBrk:
			ok = uint64(c.ret) == c.arg[0]
		case uapi.SysRecvmsg:
			if isErr(c.ret) {
				return fail(ReasonDescriptor, "receive descriptors in process %d: %v", b.p.pid, uapi.Errno(-c.ret))
			}
			if c.arg[1] == b.p.scratchAddr(filesAt) {
				if err := b.p.landed(); err != nil {
					return err
				}
			}
		case uapi.SysDup3:
			if uint64(c.ret) != c.arg[1] {
				return fail(ReasonDescriptor, "put descriptor %d of process %d back: %v", c.arg[1], b.p.pid, uapi.Errno(-c.ret))
			}
		}
		if !ok {
			return fail(ReasonMemory, "call %d at %#x+%#x in process %d: %d", c.nr, c.arg[0], c.arg[1], b.p.pid, c.ret)
		}
	}
	return nil
}

// flush runs a batch and checks it.
func (t *Tree) flush(tk *task, b *batch) error {
	n := len(b.calls)
	if err := t.run(tk, b); err != nil {
		return err
	}
	return b.check(b.calls[:n])
}

// room flushes a batch that has become full.
func (t *Tree) room(tk *task, b *batch) error {
	if !b.full() {
		return nil
	}
	return t.flush(tk, b)
}

// scratch is the part of the shared memory in which arguments are laid out.
func (p *process) scratch() []byte {
	return p.shared[pageSize+scratchAt : pageSize+copyListAt]
}

// scratchAddr is the address of scratch byte o inside the process.
func (p *process) scratchAddr(o int) uint64 { return p.data + scratchAt + uint64(o) }

// run makes the calls of a batch on a stopped thread and empties it; results stay readable until the next add.
func (t *Tree) run(tk *task, b *batch) error {
	n := len(b.calls)
	if n == 0 {
		return nil
	}
	done := b.calls
	b.calls = b.calls[:0]
	t.report.Injected += n
	if err := t.enter(b.p, tk, work{calls: b.p.data, nCalls: n}); err != nil {
		return err
	}
	if err := t.awaitTrap(tk); err != nil {
		return err
	}
	if done[n-1].ret == notMade {
		return fail(ReasonUnexpected, "calls in process %d did not run to their end", b.p.pid)
	}
	return nil
}

// one makes a single call and gives its result.
func (t *Tree) one(p *process, tk *task, nr uint64, args ...uint64) (int64, error) {
	b := p.batch()
	b.add(nr, args...)
	if err := t.run(tk, b); err != nil {
		return 0, err
	}
	return b.calls[:1][0].ret, nil
}

// enter lets a stopped thread run the parasite.
func (t *Tree) enter(p *process, tk *task, w work) error {
	var r uapi.Regs
	if tk.saved != nil {
		r = tk.saved.regs
	} else if e := uapi.GetRegs(tk.tid, &r); e != 0 {
		return fail(ReasonUnexpected, "read registers of thread %d: %v", tk.tid, e)
	}
	enterParasite(&r, p.code, w)
	if e := uapi.SetRegs(tk.tid, &r); e != 0 {
		return fail(ReasonUnexpected, "set registers of thread %d: %v", tk.tid, e)
	}
	if err := t.maskSignals(tk); err != nil {
		return err
	}
	if e := uapi.Ptrace(uapi.PtraceCont, tk.tid, 0); e != 0 {
		return fail(ReasonUnexpected, "let thread %d of process %d run: %v", tk.tid, p.pid, e)
	}
	return nil
}

// maskSignals blocks everything but the trap: were the trap blocked or ignored, the
// kernel would reset the program's handler for it.
func (t *Tree) maskSignals(tk *task) error {
	if tk.masked {
		return nil
	}
	if e := uapi.SetSigMask(tk.tid, ^uint64(1<<(sigTrap-1))); e != 0 {
		return fail(ReasonUnexpected, "block signals of thread %d: %v", tk.tid, e)
	}
	tk.masked = true
	return nil
}

// awaitTrap waits for the breakpoint at the end of a loop.
func (t *Tree) awaitTrap(tk *task) error {
	deadline := time.Now().Add(injectTimeout)
	for {
		st, err := await(tk.tid, deadline)
		if err != nil {
			return fail(ReasonStall, "thread %d did not come back from the calls made in it: %v", tk.tid, err)
		}
		if !st.Stopped() {
			return fail(ReasonProcess, "thread %d ended while calls were made in it", tk.tid)
		}
		if event := int(st) >> 16; event == 0 {
			switch sig := int(st.StopSignal()); sig {
			case sigTrap:
				return nil
			case sigSegv, sigBus, sigIll:
				var r uapi.Regs
				_ = uapi.GetRegs(tk.tid, &r)
				return fail(ReasonMemory, "signal %d in the code injected into thread %d: %s", sig, tk.tid, describeFault(&r))
			default:
				t.report.SignalsDropped++
			}
		}
		if e := uapi.Ptrace(uapi.PtraceCont, tk.tid, 0); e != 0 {
			return fail(ReasonUnexpected, "let thread %d go on: %v", tk.tid, e)
		}
	}
}

// stepSyscall makes one call before the parasite exists, by single-stepping a syscall
// instruction that is in the process anyway.
func (t *Tree) stepSyscall(tk *task, insn, nr uint64, args ...uint64) (int64, error) {
	var r uapi.Regs
	if e := uapi.GetRegs(tk.tid, &r); e != 0 {
		return 0, fail(ReasonUnexpected, "read registers of thread %d: %v", tk.tid, e)
	}
	var a [6]uint64
	copy(a[:], args)
	enterSyscall(&r, insn, nr, a)
	if e := uapi.SetRegs(tk.tid, &r); e != 0 {
		return 0, fail(ReasonUnexpected, "set registers of thread %d: %v", tk.tid, e)
	}
	if err := t.maskSignals(tk); err != nil {
		return 0, err
	}
	for {
		if e := uapi.Ptrace(uapi.PtraceSinglestep, tk.tid, 0); e != 0 {
			return 0, fail(ReasonUnexpected, "step thread %d: %v", tk.tid, e)
		}
		st, err := await(tk.tid, time.Now().Add(injectTimeout))
		if err != nil || !st.Stopped() {
			return 0, fail(ReasonStall, "step thread %d: %v", tk.tid, err)
		}
		if int(st)>>16 == 0 && int(st.StopSignal()) == sigTrap {
			break
		}
	}
	if e := uapi.GetRegs(tk.tid, &r); e != 0 {
		return 0, fail(ReasonUnexpected, "read registers of thread %d: %v", tk.tid, e)
	}
	return syscallResult(&r), nil
}

// findSyscall looks for a syscall instruction in the vDSO.
func (p *process) findSyscall(areas []area) (insn, vdso uint64, err error) {
	for i := range areas {
		if areas[i].name != "[vdso]" {
			continue
		}
		b := make([]byte, areas[i].end-areas[i].start)
		if err := p.read(areas[i].start, b); err != nil {
			return 0, 0, err
		}
		if k := bytes.Index(b, syscallInsn); k >= 0 {
			return areas[i].start + uint64(k), areas[i].start, nil
		}
	}
	return 0, 0, fail(ReasonUnexpected, "process %d has no vDSO", p.pid)
}

func isErr(ret int64) bool { return ret < 0 && ret > -4096 }

// infest gives a process its parasite, its tracking descriptor and its channel.
func (t *Tree) infest(p *process, tk *task) error {
	text, err := p.readMaps()
	if err != nil {
		return err
	}
	insn, vdso, err := p.findSyscall(parseMaps(text, nil))
	if err != nil {
		return err
	}
	// Any string in the process's memory can name the file: the vDSO begins with one.
	remote, err := t.stepSyscall(tk, insn, uapi.SysMemfdCreate, vdso, 1)
	if err != nil {
		return err
	}
	if isErr(remote) {
		return fail(ReasonUnexpected, "make the parasite's memory in process %d: %v", p.pid, uapi.Errno(-remote))
	}
	if err := t.shareParasite(p, int(remote)); err != nil {
		return err
	}
	if p.code == 0 {
		p.slot = t.nextSlot
		t.nextSlot++
	}
	if err := t.mapParasite(p, tk, insn, uint64(remote)); err != nil {
		return err
	}
	if _, err := t.one(p, tk, uapi.SysClose, uint64(remote)); err != nil {
		return err
	}
	if err := t.disinherit(p, tk); err != nil {
		return err
	}
	return t.equip(p, tk)
}

// mapParasite finds a place for the parasite and maps it there.
func (t *Tree) mapParasite(p *process, tk *task, insn, remote uint64) error {
	var ret int64
	for try := range uint64(placesTried) {
		p.code = firstCode + uint64(p.slot)*codeStep + try*placesApart
		p.data = p.code + pageSize
		ok := true
		for _, m := range []struct{ at, size, prot, off uint64 }{
			{p.data, parasiteData, protRead | protWrite, pageSize}, {p.code, pageSize, protRead | protExec, 0},
		} {
			var err error
			if ret, err = t.stepSyscall(tk, insn, uapi.SysMmap, m.at, m.size, m.prot, mapShared|mapFixedNoReplace, remote, m.off); err != nil {
				return err
			}
			ok = ok && uint64(ret) == m.at
		}
		if ok {
			return nil
		}
		if uapi.Errno(-ret) != uapi.EEXIST {
			break
		}
	}
	return fail(ReasonMemory, "map the parasite in process %d: %v", p.pid, uapi.Errno(-ret))
}

// disinherit takes away what a process has inherited of its parent's parasite, saved
// pages and channel, when it was forked while the parent was already prepared.
func (t *Tree) disinherit(p *process, tk *task) error {
	text, err := p.readMaps()
	if err != nil {
		return err
	}
	b := p.batch()
	foreign := map[uint64]bool{}
	for _, q := range t.procs {
		if q != p && q.shared != nil {
			foreign[inodeOf(q.parasite)] = true
		}
		if q != p && q.arena != nil {
			foreign[inodeOf(q.arena.fd)] = true
		}
	}
	for _, a := range parseMaps(text, nil) {
		if a.shared && foreign[a.ino] && strings.HasPrefix(a.name, "/memfd:") {
			b.add(uapi.SysMunmap, a.start, a.end-a.start)
		}
	}
	for _, q := range t.procs {
		if q == p || q.remoteChannel < 0 || q.pidfd < 0 {
			continue
		}
		if r, e := uapi.Kcmp(p.pid, q.pid, q.remoteChannel, q.remoteChannel); e == 0 && r == 0 {
			b.add(uapi.SysClose, uint64(q.remoteChannel))
		}
	}
	return t.flush(tk, b)
}

// shareParasite takes over the memory file made inside the process and puts the code into it.
func (t *Tree) shareParasite(p *process, remote int) error {
	fd, e := uapi.PidfdGetfd(p.pidfd, remote)
	if e != 0 {
		return fail(ReasonKernel, "copy a descriptor out of process %d: %v", p.pid, e)
	}
	p.dropParasite()
	if err := uapi.Truncate(fd, parasiteSize); err != nil {
		uapi.Close(fd)
		return fail(ReasonUnexpected, "size the parasite's memory: %v", err)
	}
	mem, err := uapi.MapShared(fd, parasiteSize, true)
	if err != nil {
		uapi.Close(fd)
		return fail(ReasonUnexpected, "map the parasite's memory: %v", err)
	}
	copy(mem, parasiteCode[:])
	p.shared, p.parasite = mem, fd
	return nil
}

func inodeOf(fd int) uint64 {
	var st uapi.Stat_t
	if uapi.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Ino
}

// equip opens the userfaultfd and the channel inside the process and takes them over.
// User-mode-only is the one form of userfaultfd that an unprivileged user may open; it
// suffices, since with asynchronous write protection no fault ever reaches a handler.
func (t *Tree) equip(p *process, tk *task) error {
	b := p.batch()
	u := b.add(uapi.SysUserfaultfd, uapi.OCloexec|uapi.ONonblock|uapi.UffdUserModeOnly)
	s := b.add(uapi.SysSocketpair, uapi.AfUnix, uapi.SockDgram|uapi.SockCloexec, 0, p.scratchAddr(0))
	if err := t.run(tk, b); err != nil {
		return err
	}
	res := b.calls[:2]
	if isErr(res[u].ret) || isErr(res[s].ret) {
		return fail(ReasonKernel, "userfaultfd in process %d: %d, socketpair: %d", p.pid, res[u].ret, res[s].ret)
	}
	remoteUffd := int(res[u].ret)
	pair := uapi.View[int32](p.scratch(), 2)
	theirs, ours := int(pair[0]), int(pair[1])
	var e1, e2 uapi.Errno
	p.uffd, e1 = uapi.PidfdGetfd(p.pidfd, remoteUffd)
	p.channel, e2 = uapi.PidfdGetfd(p.pidfd, ours)
	if e1 != 0 || e2 != 0 {
		return fail(ReasonKernel, "copy descriptors out of process %d: %v, %v", p.pid, e1, e2)
	}
	b.add(uapi.SysClose, uint64(remoteUffd))
	b.add(uapi.SysClose, uint64(ours))
	var high int
	if p.remoteChannel >= 0 { // a process made again: the channel goes where it was
		high = b.add(uapi.SysDup3, uint64(theirs), uint64(p.remoteChannel), uapi.OCloexec)
	} else {
		high = b.add(uapi.SysFcntl, uint64(theirs), fDupfdCloexec, channelFloor)
	}
	b.add(uapi.SysClose, uint64(theirs))
	if err := t.run(tk, b); err != nil {
		return err
	}
	ch := b.calls[:4][high].ret
	if isErr(ch) {
		return fail(ReasonUnexpected, "place the channel in process %d: %v", p.pid, uapi.Errno(-ch))
	}
	p.remoteChannel = int(ch)
	if p.channelEnd, e1 = uapi.PidfdGetfd(p.pidfd, p.remoteChannel); e1 != 0 {
		return fail(ReasonKernel, "copy the channel out of process %d: %v", p.pid, e1)
	}
	const features = uapi.UffdFeatureWPAsync | uapi.UffdFeatureWPUnpopulated | uapi.UffdFeaturePagefaultFlagWP | uapi.UffdFeatureWPHugetlbfsShmem
	if e := uapi.UffdInit(p.uffd, features); e != 0 {
		return fail(ReasonKernel, "userfaultfd has no asynchronous write protection: %v", e)
	}
	return nil
}

const (
	fDupfdCloexec = 1030
	channelFloor  = 512 // above what programs that pick descriptors by number use, below usual limits
)

// mapArena makes an arena and maps it, read-only, into the process.
func (t *Tree) mapArena(p *process, tk *task) error {
	if p.arena == nil {
		a, err := newArena("saved-pages")
		if err != nil {
			return err
		}
		p.arena = a
	}
	ro, err := uapi.Open(fmt.Sprintf("/proc/self/fd/%d", p.arena.fd), uapi.ORdonly)
	if err != nil {
		return fmt.Errorf("open saved pages for reading: %w", err)
	}
	defer uapi.Close(ro)
	remote, err := t.sendFd(p, tk, ro)
	if err != nil {
		return err
	}
	at, how, places := firstArena+uint64(p.slot)*arenaSize, uint64(mapFixedNoReplace), placesTried
	if p.arena.at != 0 { // made again, with what its parent has mapped there, and must have its own
		at, how, places = p.arena.at, mapFixed, 1
	}
	var got int64
	for range places {
		if got, err = t.one(p, tk, uapi.SysMmap, at, arenaSize, protRead, mapShared|how|mapNoReserve, uint64(remote), 0); err != nil {
			return err
		}
		if uint64(got) == at || uapi.Errno(-got) != uapi.EEXIST {
			break
		}
		at += placesApart
	}
	if uint64(got) != at {
		return fail(ReasonMemory, "map saved pages in process %d: %v", p.pid, uapi.Errno(-got))
	}
	p.arena.at = at
	_, err = t.one(p, tk, uapi.SysClose, uint64(remote))
	return err
}

// infested says whether a process still has its parasite: a program that replaced itself has not.
func (p *process) infested() bool {
	var b [1]byte
	return p.channel >= 0 && p.read(p.code, b[:]) == nil && b[0] == parasiteCode[0]
}
