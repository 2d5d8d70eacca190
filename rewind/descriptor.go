package rewind

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/uapi"
)

type fileKind int

const (
	kindOther fileKind = iota
	kindRegular
	kindPipe
	kindSocket
	kindListener
	kindEventfd
	kindEpoll
	kindTimerfd
	kindSignalfd
	kindInotify
)

// descriptor is what a snapshot keeps of one descriptor of a process.
type descriptor struct {
	fd      int
	kind    fileKind
	id      identity
	link    string
	status  int // O_APPEND, O_NONBLOCK, access mode
	cloexec bool
	pos     int64
	family  int
	unread  int
	ready   bool

	// dup is a duplicate by which an open file that was closed is put back. None is held of
	// the writing end of a pipe, nor of a connection to the outside: it would keep a close
	// in the episode from reaching the other side.
	dup int
	// path leads to a pipe without opening it.
	path int

	info  []byte // what fdinfo says, for the kinds that have a state there
	about int    // that file, held open
	epoll []epollItem
	count uint64 // of an eventfd
	timer uapi.ItimerSpec
	ticks uint64

	now int // duplicate taken during a rewind, -1 otherwise
}

func (d *descriptor) close() {
	uapi.Close(d.dup)
	uapi.Close(d.path)
	uapi.Close(d.about)
	d.dup, d.path, d.about = -1, -1, -1
}

// outside says whether the other end is not in the tree, as far as the kernel tells.
func (d *descriptor) held() bool { return d.dup >= 0 }

func kindOf(fd int, mode uint32, link string) fileKind {
	switch {
	case uapi.IsRegular(mode):
		return kindRegular
	case uapi.IsFifo(mode):
		return kindPipe
	case uapi.IsSocket(mode):
		if uapi.SockOpt(fd, uapi.SoAcceptConn) != 0 {
			return kindListener
		}
		return kindSocket
	case link == "anon_inode:[eventfd]":
		return kindEventfd
	case link == "anon_inode:[eventpoll]":
		return kindEpoll
	case link == "anon_inode:[timerfd]":
		return kindTimerfd
	case link == "anon_inode:[signalfd]":
		return kindSignalfd
	case link == "anon_inode:inotify" || link == "anon_inode:[inotify]":
		return kindInotify
	}
	return kindOther
}

// captureFiles saves the descriptors of a process.
func (t *Tree) captureFiles(p *process, st *processState) error {
	fds, err := numbers(p.fdDir, nil)
	if err != nil {
		return fail(ReasonDescriptor, "list descriptors of process %d: %v", p.pid, err)
	}
	for _, fd := range fds {
		if fd == p.remoteChannel {
			continue
		}
		d, err := t.captureFile(p, fd)
		if err != nil {
			return err
		}
		st.files = append(st.files, d)
	}
	return nil
}

func (t *Tree) captureFile(p *process, fd int) (descriptor, error) {
	d := descriptor{fd: fd, dup: -1, path: -1, about: -1, now: -1}
	dup, e := uapi.PidfdGetfd(p.pidfd, fd)
	if e != 0 {
		return d, fail(ReasonDescriptor, "copy descriptor %d of process %d: %v", fd, p.pid, e)
	}
	d.dup = dup
	var st uapi.Stat_t
	if err := uapi.Fstat(dup, &st); err != nil {
		d.close()
		return d, fail(ReasonDescriptor, "look at descriptor %d of process %d: %v", fd, p.pid, err)
	}
	d.id = identity{st.Dev, st.Ino}
	d.link = readLink(fmt.Sprintf("/proc/self/fd/%d", dup))
	d.kind = kindOf(dup, st.Mode, d.link)
	d.status = uapi.StatusFlags(dup)
	var buf [8192]byte
	info := readSmall(fmt.Sprintf("/proc/%d/fdinfo/%d", p.pid, fd), buf[:])
	flags, _ := strconv.ParseUint(statusField(info, "flags"), 8, 64)
	d.cloexec = flags&uapi.OCloexec != 0
	if err := t.captureKind(p, &d, st.Mode); err != nil {
		d.close()
		return d, err
	}
	return d, nil
}

func (t *Tree) captureKind(p *process, d *descriptor, mode uint32) error {
	if d.hasInfo() {
		if err := d.openInfo(); err != nil {
			return err
		}
	}
	switch d.kind {
	case kindRegular:
		d.pos, _ = uapi.Seek(d.dup, 0, uapi.SeekCur)
		return t.checkForeign(p, d)
	case kindPipe:
		d.unread = uapi.Unread(d.dup)
		if d.status&uapi.OAccmode != uapi.ORdonly {
			path, err := uapi.Open(fmt.Sprintf("/proc/self/fd/%d", d.dup), uapi.OPath)
			if err != nil {
				return fail(ReasonDescriptor, "keep the pipe at descriptor %d of process %d: %v", d.fd, p.pid, err)
			}
			d.path = path
			uapi.Close(d.dup)
			d.dup = -1
		}
	case kindSocket:
		d.unread = uapi.Unread(d.dup)
		d.family = uapi.SockOpt(d.dup, uapi.SoDomain)
		d.ready = readable(d.dup)
		if t.leadsOutside(d) {
			uapi.Close(d.dup)
			d.dup = -1
		}
	case kindListener:
		d.ready = readable(d.dup)
	case kindEventfd, kindTimerfd, kindSignalfd, kindInotify:
		d.ready = readable(d.dup)
		d.parseInfo()
	case kindEpoll:
		d.epoll = parseEpoll(d.info)
	}
	return nil
}

// hasInfo says whether fdinfo tells of a state.
func (d *descriptor) hasInfo() bool {
	switch d.kind {
	case kindEventfd, kindTimerfd, kindSignalfd, kindInotify, kindEpoll:
		return true
	}
	return false
}

// openInfo reads fdinfo, and keeps it open to be read again at each rewind.
func (d *descriptor) openInfo() error {
	var err error
	if d.about, err = uapi.Open(fmt.Sprintf("/proc/self/fdinfo/%d", d.dup), uapi.ORdonly); err != nil {
		return fail(ReasonDescriptor, "read the state of descriptor %d: %v", d.fd, err)
	}
	d.info = selfInfo(d.dup, nil)
	return nil
}

// leadsOutside says whether a socket is a connection whose other end is not in the tree.
// Of TCP that is taken for granted: the connections of a tree with itself are mended all the same.
func (t *Tree) leadsOutside(d *descriptor) bool {
	if uapi.SockOpt(d.dup, uapi.SoType) != uapi.SockStream {
		return false
	}
	switch d.family {
	case uapi.AfInet, uapi.AfInet6:
		return true
	case uapi.AfUnix:
		return uapi.Connected(d.dup) && t.procs[uapi.PeerPid(d.dup)] == nil // 0: in a namespace above this one
	}
	return false
}

// checkForeign refuses regular files outside the tree's folders that are open for writing.
func (t *Tree) checkForeign(p *process, d *descriptor) error {
	if d.status&uapi.OAccmode == uapi.ORdonly || d.fd <= 2 || d.status&uapi.OAppend != 0 {
		return nil
	}
	if t.files.covers(d.link) || t.objects[d.id] != nil {
		return nil
	}
	if uapi.SealedAgainstWrites(d.dup) {
		return nil // open for writing, which no write gets through
	}
	path := strings.TrimSuffix(d.link, " (deleted)")
	if magic, err := uapi.FsMagicFd(d.dup); err == nil && magic == uapi.TmpfsMagic {
		// A file in memory that is not in the folders: kept like shared memory.
		fd, err := uapi.Open(fmt.Sprintf("/proc/self/fd/%d", d.dup), uapi.ORdwr)
		if err == nil {
			_, err = t.addObject(d.id, d.link, fd)
		}
		if err == nil {
			return nil
		}
	}
	if t.opt.AllowForeign(path) {
		return nil
	}
	return fail(ReasonFile, "process %d has %s open for writing, which lies outside the tree's folders", p.pid, path)
}

func readable(fd int) bool {
	pf := [1]uapi.PollFd{{Fd: int32(fd), Events: uapi.PollIn}}
	n, _ := uapi.Poll(pf[:], 0)
	return n > 0 && pf[0].Revents&uapi.PollIn != 0
}

// selfInfo reads the fdinfo of a descriptor of ours.
func selfInfo(fd int, buf []byte) []byte {
	if buf == nil {
		buf = make([]byte, 16<<10)
	}
	var path [40]byte
	name := strconv.AppendInt(append(path[:0], "/proc/self/fdinfo/"...), int64(fd), 10)
	return readSmall(string(name), buf)
}

// parseInfo reads counters out of fdinfo.
func (d *descriptor) parseInfo() {
	switch d.kind {
	case kindEventfd:
		d.count, _ = strconv.ParseUint(statusField(d.info, "eventfd-count"), 16, 64)
	case kindTimerfd:
		d.ticks, _ = strconv.ParseUint(statusField(d.info, "ticks"), 10, 64)
		d.timer.Value = parseSpec(statusField(d.info, "it_value"))
		d.timer.Interval = parseSpec(statusField(d.info, "it_interval"))
	}
}

// parseSpec reads "(seconds, nanoseconds)".
func parseSpec(s string) uapi.Timespec {
	sec, nsec, _ := strings.Cut(strings.Trim(s, "()"), ",")
	a, _ := strconv.ParseInt(strings.TrimSpace(sec), 10, 64)
	b, _ := strconv.ParseInt(strings.TrimSpace(nsec), 10, 64)
	return uapi.Timespec{Sec: a, Nsec: b}
}

// epollItem is one member of an epoll set.
type epollItem struct {
	fd     int
	events uint32
	data   uint64
	ino    uint64
}

// parseEpoll reads the lines "tfd: 5 events: 19 data: 5 pos:0 ino:3b sdev:8".
func parseEpoll(info []byte) []epollItem {
	var out []epollItem
	for line := range bytes.Lines(info) {
		if !bytes.HasPrefix(line, []byte("tfd:")) {
			continue
		}
		f := bytes.Fields(line)
		if len(f) < 6 {
			continue
		}
		fd, _ := decField(f[1], 0)
		ev, _ := hexField(f[3], 0)
		data, _ := hexField(f[5], 0)
		it := epollItem{fd: int(fd), events: uint32(ev), data: data}
		for _, w := range f[6:] {
			if v, ok := bytes.CutPrefix(w, []byte("ino:")); ok {
				it.ino, _ = hexField(v, 0)
			}
		}
		out = append(out, it)
	}
	return out
}
