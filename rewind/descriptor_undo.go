package rewind

import (
	"bytes"
	"errors"

	"github.com/pommelgym/pommel/internal/uapi"
)

// undoFiles brings the descriptors of a process back: new ones are closed, missing ones
// put back, then offsets, flags, epoll sets and counters.
func (t *Tree) undoFiles(p *process, tk *task, st *processState, b *batch) error {
	for _, fd := range p.now.extra {
		if err := t.room(tk, b); err != nil {
			return err
		}
		b.add(uapi.SysClose, uint64(fd))
		t.report.DescriptorsClosed++
	}
	missing, inside := false, false
	for i := range st.files {
		if err := t.room(tk, b); err != nil {
			return err
		}
		d := &st.files[i]
		switch p.now.files[i] {
		case fileGone:
			missing, inside = true, inside || d.special()
			d.now = -1
			continue
		case fileChanged:
			inside = inside || d.special()
		}
		b.add(uapi.SysFcntl, uint64(d.fd), fSetfd, flag(d.cloexec, 1))
	}
	if missing {
		if err := t.putFiles(p, tk, st, b); err != nil {
			return err
		}
	}
	if inside { // what follows makes calls of its own and looks at the outcome of these
		if err := t.flush(tk, b); err != nil {
			return err
		}
	}
	for i := range st.files {
		if p.now.files[i] != fileSame {
			if err := t.undoFileState(p, tk, &st.files[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

const fSetfd = 2

func flag(on bool, v uint64) uint64 {
	if on {
		return v
	}
	return 0
}

// special says whether what is inside an open file is mended by calls of the process.
func (d *descriptor) special() bool {
	return d.kind == kindEpoll || d.kind == kindSignalfd || d.kind == kindInotify
}

// sameFile says whether a descriptor still is the open file that it was.
func (t *Tree) sameFile(p *process, d *descriptor) (bool, error) {
	if d.held() {
		r, e := uapi.Kcmp(p.pid, t.self, d.fd, d.dup)
		if e == uapi.EBADF {
			return false, nil // it is closed
		}
		if e != 0 {
			return false, fail(ReasonDescriptor, "compare descriptor %d of process %d: %v", d.fd, p.pid, e)
		}
		return r == 0, nil
	}
	now, e := uapi.PidfdGetfd(p.pidfd, d.fd)
	if e != 0 {
		return false, nil
	}
	var st uapi.Stat_t
	if uapi.Fstat(now, &st) != nil || st.Ino != d.id.ino || st.Dev != d.id.dev ||
		uapi.StatusFlags(now)&uapi.OAccmode != d.status&uapi.OAccmode {
		uapi.Close(now)
		return false, nil
	}
	d.now = now
	return true, nil
}

// peekFiles takes duplicates of the connections of a process that has not run: bytes may
// have come for it that it had no time to read.
func (p *process) peekFiles(st *processState) {
	for i := range st.files {
		d := &st.files[i]
		d.now = -1
		if d.kind == kindSocket && !d.held() {
			if now, e := uapi.PidfdGetfd(p.pidfd, d.fd); e == 0 {
				d.now = now
			}
		}
	}
}

// current is a descriptor of ours for the open file.
func (d *descriptor) current() int {
	if d.held() {
		return d.dup
	}
	return d.now
}

// undoFileState mends what is inside an open file.
func (t *Tree) undoFileState(p *process, tk *task, d *descriptor) error {
	fd := d.current()
	if fd < 0 {
		return nil
	}
	if f := uapi.StatusFlags(fd); f != d.status {
		_ = uapi.SetStatusFlags(fd, d.status)
	}
	switch d.kind {
	case kindRegular:
		if pos, err := uapi.Seek(fd, 0, uapi.SeekCur); err == nil && pos != d.pos {
			// A file in /proc about a thread or process that has ended says so even to a seek.
			if _, err := uapi.Seek(fd, d.pos, uapi.SeekSet); err != nil && !errors.Is(err, uapi.ESRCH) {
				return fail(ReasonDescriptor, "set the offset of descriptor %d of process %d: %v", d.fd, p.pid, err)
			}
		}
	case kindEpoll:
		return t.undoEpoll(p, tk, d)
	case kindEventfd, kindTimerfd, kindSignalfd, kindInotify:
		return t.undoSpecial(p, tk, d)
	}
	return nil
}

const (
	epollAdd = 1
	epollDel = 2
	epollMod = 3
)

func findItem(list []epollItem, it epollItem) *epollItem {
	for i := range list {
		if list[i].fd == it.fd && list[i].ino == it.ino {
			return &list[i]
		}
	}
	return nil
}

// undoEpoll makes the members of an epoll set those of the snapshot.
func (t *Tree) undoEpoll(p *process, tk *task, d *descriptor) error {
	info := selfInfo(d.dup, t.infoBuf)
	if bytes.Equal(info, d.info) {
		return nil
	}
	now := parseEpoll(info)
	b := p.batch()
	mem := p.scratch()
	used := 0
	event := func(it epollItem) uint64 { // struct epoll_event is packed on this architecture only
		at := used
		used += epollEventSize
		putEpollEvent(mem[at:], it.events, it.data)
		return p.scratchAddr(at)
	}
	for _, it := range now {
		if findItem(d.epoll, it) == nil {
			b.add(uapi.SysEpollCtl, uint64(d.fd), epollDel, uint64(it.fd), 0)
		}
		if len(b.calls) > maxCalls-4 {
			if err := t.run(tk, b); err != nil {
				return err
			}
		}
	}
	if err := t.run(tk, b); err != nil {
		return err
	}
	for _, it := range d.epoll {
		old := findItem(now, it)
		switch {
		case old == nil:
			b.add(uapi.SysEpollCtl, uint64(d.fd), epollAdd, uint64(it.fd), event(it))
		case *old != it:
			b.add(uapi.SysEpollCtl, uint64(d.fd), epollMod, uint64(it.fd), event(it))
		}
		if len(b.calls) > maxCalls-4 || used > scratchSize-64 {
			if err := t.checkedEpoll(p, tk, b); err != nil {
				return err
			}
			used = 0
		}
	}
	return t.checkedEpoll(p, tk, b)
}

func (t *Tree) checkedEpoll(p *process, tk *task, b *batch) error {
	n := len(b.calls)
	if err := t.run(tk, b); err != nil {
		return err
	}
	for _, c := range b.calls[:n] {
		if c.ret == 0 {
			continue
		}
		return fail(ReasonDescriptor, "epoll set %d of process %d, member %d, operation %d: %v", c.arg[0], p.pid, c.arg[2], c.arg[1], uapi.Errno(-c.ret))
	}
	return nil
}

// undoSpecial puts the counter of an eventfd, the expiry of a timerfd and the mask of a signalfd back.
func (t *Tree) undoSpecial(p *process, tk *task, d *descriptor) error {
	info := selfInfo(d.dup, t.infoBuf)
	if bytes.Equal(info, d.info) {
		return nil
	}
	live := descriptor{kind: d.kind, info: info}
	live.parseInfo()
	switch d.kind {
	case kindEventfd:
		return setEventfd(d, live.count)
	case kindTimerfd:
		if d.timer == (uapi.ItimerSpec{}) && live.timer == d.timer && live.ticks == d.ticks {
			return nil
		}
		if err := uapi.TimerfdSet(d.dup, d.timer); err != nil {
			return fail(ReasonDescriptor, "set timer descriptor %d of process %d: %v", d.fd, p.pid, err)
		}
		if d.ticks > 0 {
			if e := uapi.TimerfdTicks(d.dup, d.ticks); e != 0 {
				return fail(ReasonDescriptor, "set expirations of timer descriptor %d of process %d: %v", d.fd, p.pid, e)
			}
		}
	case kindSignalfd:
		mask, _ := hexField([]byte(statusField(d.info, "sigmask")), 0)
		uapi.View[uint64](p.scratch(), 1)[0] = mask
		if _, err := t.one(p, tk, uapi.SysSignalfd4, uint64(d.fd), p.scratchAddr(0), 8, 0); err != nil {
			return err
		}
	case kindInotify:
		return t.undoInotify(p, tk, d, info)
	}
	return nil
}

// setEventfd brings a counter from one value to the other.
func setEventfd(d *descriptor, now uint64) error {
	if now == d.count {
		return nil
	}
	var b [8]byte
	for now > 0 { // one read takes it all, unless it is a semaphore
		if _, err := uapi.Read(d.dup, b[:]); err != nil {
			return fail(ReasonDescriptor, "read event descriptor %d: %v", d.fd, err)
		}
		live := descriptor{kind: kindEventfd, info: selfInfo(d.dup, nil)}
		live.parseInfo()
		if live.count >= now {
			break
		}
		now = live.count
	}
	if d.count == 0 {
		return nil
	}
	uapi.View[uint64](b[:], 1)[0] = d.count
	if _, err := uapi.Write(d.dup, b[:]); err != nil {
		return fail(ReasonDescriptor, "set event descriptor %d: %v", d.fd, err)
	}
	return nil
}

// undoInotify takes new watches away. Watches that were removed have lost their number for good.
func (t *Tree) undoInotify(p *process, tk *task, d *descriptor, info []byte) error {
	want, now := watches(d.info), watches(info)
	b := p.batch()
	for wd := range now {
		if !want[wd] && !b.full() {
			b.add(uapi.SysInotifyRmWatch, uint64(d.fd), uint64(wd))
		}
	}
	for wd := range want {
		if !now[wd] {
			return fail(ReasonDescriptor, "watch %d of inotify descriptor %d of process %d was removed", wd, d.fd, p.pid)
		}
	}
	return t.run(tk, b)
}

func watches(info []byte) map[int]bool {
	m := map[int]bool{}
	for line := range bytes.Lines(info) {
		if rest, ok := bytes.CutPrefix(line, []byte("inotify wd:")); ok {
			v, _ := hexField(rest, 0)
			m[int(v)] = true
		}
	}
	return m
}

// readableOf is a descriptor that bytes may have come to.
type readableOf struct {
	d   *descriptor
	pid int
}

// changed says that what lay unread at the snapshot cannot be made to lie there again.
func (r readableOf) changed(what string, now int) error {
	return fail(ReasonDescriptor, "%d bytes lay unread in the %s at descriptor %d of process %d at the snapshot, and %d do now", r.d.unread, what, r.d.fd, r.pid, now)
}

// drain takes away what has become readable since the snapshot, in all descriptors of all processes.
func (t *Tree) drain(s *Snapshot) error {
	t.polls, t.polled = t.polls[:0], t.polled[:0]
	for _, st := range s.procs {
		for i := range st.files {
			d := &st.files[i]
			fd := d.current()
			if fd < 0 {
				continue
			}
			switch d.kind {
			case kindPipe:
				if d.status&uapi.OAccmode == uapi.OWronly {
					continue
				}
			case kindSocket, kindListener, kindInotify:
			default:
				continue
			}
			t.polls = append(t.polls, uapi.PollFd{Fd: int32(fd), Events: uapi.PollIn})
			t.polled = append(t.polled, readableOf{d, st.pid})
		}
	}
	if _, err := uapi.Poll(t.polls, 0); err != nil {
		return fail(ReasonDescriptor, "poll the tree's descriptors: %v", err)
	}
	for i := range t.polls {
		if ready := t.polls[i].Revents&uapi.PollIn != 0; ready || t.polled[i].d.unread > 0 {
			if err := t.drainOne(t.polled[i], int(t.polls[i].Fd)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Tree) drainOne(r readableOf, fd int) error {
	d := r.d
	switch d.kind {
	case kindListener:
		for !d.ready && readable(fd) && uapi.AcceptAndDrop(fd) {
		}
	case kindPipe, kindInotify:
		n := uapi.Unread(fd)
		if n == d.unread {
			return nil
		}
		if d.unread > 0 {
			return r.changed("pipe", n)
		}
		for n > 0 {
			k, err := uapi.Read(fd, t.sink[:min(n, len(t.sink))])
			if err != nil || k <= 0 {
				break
			}
			n -= k
		}
	case kindSocket:
		n := uapi.Unread(fd)
		if d.unread > 0 {
			if n != d.unread {
				return r.changed("socket", n)
			}
			return nil
		}
		if d.ready {
			return nil
		}
		for {
			k, err := uapi.Recv(fd, t.sink)
			if err != nil || k <= 0 {
				break
			}
		}
	}
	return nil
}

// closeTemporary closes the duplicates that were taken for one rewind.
func (s *Snapshot) closeTemporary() {
	for _, st := range s.procs {
		for i := range st.files {
			uapi.Close(st.files[i].now)
			st.files[i].now = -1
		}
	}
}
