package rewind

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"

	"github.com/pommelgym/pommel/internal/uapi"
)

// compare holds the stopped tree against a snapshot, byte for byte.
func (t *Tree) compare(s *Snapshot) *Verification {
	v := &Verification{}
	memories := t.compareMemories(s)
	for i, st := range s.procs {
		p := t.procs[st.pid]
		if p == nil {
			v.add(fmt.Sprintf("process %d is missing", st.pid))
			continue
		}
		v.join(&memories[i])
		compareThreads(p, st, v)
		t.compareDescriptors(p, st, v)
	}
	t.compareObjects(s, v)
	t.compareFiles(s, v)
	return v
}

// compareMemories compares what needs no ptrace, which takes longest.
func (t *Tree) compareMemories(s *Snapshot) []Verification {
	out := make([]Verification, len(s.procs))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(out)); i = next.Add(1) - 1 {
			st := s.procs[i]
			if p := t.procs[st.pid]; p != nil {
				compareAreas(p, st, &out[i])
				comparePages(p, st, &out[i])
				compareExtra(p, st, &out[i])
			}
		}
	}
	end := t.helper.start(work)
	work()
	end()
	return out
}

func compareAreas(p *process, st *processState, v *Verification) {
	text, err := p.readMaps()
	if err != nil {
		v.add(err.Error())
		return
	}
	now := parseMaps(text, nil)
	// Areas may have been split or joined on the way; what counts is what is mapped at each place.
	i := 0
	for k := range st.areas {
		want := &st.areas[k]
		at := want.start
		for at < want.end {
			for i < len(now) && now[i].end <= at {
				i++
			}
			if i == len(now) || now[i].start > at || !want.sameMapping(&now[i]) || want.prot != now[i].prot {
				v.add(fmt.Sprintf("process %d: area %#x-%#x %s differs at %#x", p.pid, want.start, want.end, want.name, at))
				break
			}
			at = now[i].end
		}
	}
	total := func(list []area) (n uint64) {
		for i := range list {
			n += list[i].end - list[i].start
		}
		return n
	}
	if a, b := total(st.areas), total(now); a != b {
		v.add(fmt.Sprintf("process %d: %d bytes are mapped, %d were", p.pid, b, a))
	}
}

func comparePages(p *process, st *processState, v *Verification) {
	chunk := make([]byte, 64*pageSize)
	for _, r := range st.runs {
		for i := uint32(0); i < r.n; i += uint32(len(chunk) / pageSize) {
			now := chunk[:min(len(chunk), int(r.n-i)*pageSize)]
			comparePiece(p, st, r.addr+uint64(i)<<pageShift, now, p.arena.bytes(pageRun{r.first + i, uint32(len(now) / pageSize)}), v)
		}
	}
}

// comparePiece compares some pages in a row; now is room for what they are.
func comparePiece(p *process, st *processState, at uint64, now, want []byte, v *Verification) {
	v.Pages += len(now) / pageSize
	err := p.read(at, now)
	if err == nil && bytes.Equal(now, want) {
		return
	}
	for ; len(now) > 0; at, now, want = at+pageSize, now[pageSize:], want[pageSize:] {
		b, w := now[:pageSize], want[:pageSize]
		if err != nil { // of which page, shows when each is read by itself
			if one := p.read(at, b); one != nil {
				v.add(one.Error())
				continue
			}
		}
		if !bytes.Equal(b, w) && !onlyRseqDiffers(st, at, b, w) {
			v.add(fmt.Sprintf("process %d: page %#x (%s) differs from byte %d on", p.pid, at, st.nameAt(at), firstDifference(b, w)))
		}
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func (st *processState) nameAt(at uint64) string {
	for i := range st.areas {
		if st.areas[i].start <= at && at < st.areas[i].end {
			return st.areas[i].name
		}
	}
	return "?"
}

// onlyRseqDiffers allows for the fields that the kernel itself keeps up to date (the number of the processor).
func onlyRseqDiffers(st *processState, at uint64, a, b []byte) bool {
	for _, th := range st.threads {
		if th.rseq.Ptr&^(pageSize-1) != at {
			continue
		}
		o := int(th.rseq.Ptr & (pageSize - 1))
		end := min(o+max(int(th.rseq.Size), 32), pageSize)
		if bytes.Equal(a[:o], b[:o]) && bytes.Equal(a[end:], b[end:]) {
			return true
		}
	}
	return false
}

// compareExtra looks for pages that were not there and are not empty, or not the file's own.
func compareExtra(p *process, st *processState, v *Verification) {
	cur := cursor{runs: st.runs}
	var b [pageSize]byte
	for i := range st.areas {
		a := &st.areas[i]
		if !a.tracked || a.shared {
			continue
		}
		err := p.eachRegion(a.start, a.end, present, func(r uapi.PageRegion) error {
			if !exists(r.Categories) {
				return nil
			}
			for at := r.Start; at < r.End; at += pageSize {
				if found, _ := cur.find(at, at+pageSize); found != nil {
					continue
				}
				v.Pages++
				if a.ino != 0 {
					v.add(fmt.Sprintf("process %d: page %#x (%s) was the file's own and is a copy", p.pid, at, a.name))
				} else if err := p.read(at, b[:]); err != nil {
					v.add(err.Error())
				} else if !bytes.Equal(b[:], zeroPage[:]) {
					v.add(fmt.Sprintf("process %d: page %#x (%s) did not exist and is not empty", p.pid, at, a.name))
				}
			}
			return nil
		})
		if err != nil {
			v.add(err.Error())
		}
	}
}

// compareThreads sets each thread's registers, as letting it go would, and reads them back.
func compareThreads(p *process, st *processState, v *Verification) {
	if len(p.tasks) != len(st.threads) {
		v.add(fmt.Sprintf("process %d: %d threads, there were %d", p.pid, len(p.tasks), len(st.threads)))
	}
	buf := make([]byte, maxXState)
	for i := range p.tasks {
		tk := &p.tasks[i]
		if tk.saved == nil {
			v.add(fmt.Sprintf("process %d: thread %d is unknown", p.pid, tk.tid))
			continue
		}
		v.Threads++
		if err := tk.restore(true); err != nil {
			v.add(err.Error())
			continue
		}
		tk.masked = false
		var r uapi.Regs
		if e := uapi.GetRegs(tk.tid, &r); e != 0 || r != tk.saved.regs {
			v.add(fmt.Sprintf("thread %d: registers differ", tk.tid))
		}
		if n, e := uapi.GetXState(tk.tid, buf); e != 0 || !bytes.Equal(buf[:n], tk.saved.xstate) {
			v.add(fmt.Sprintf("thread %d: vector state differs", tk.tid))
		}
		if m, e := uapi.GetSigMask(tk.tid); e != 0 || m != tk.saved.mask {
			v.add(fmt.Sprintf("thread %d: signal mask differs", tk.tid))
		}
		if got := pendingSignals(tk.tid, false); !sameSignals(got, tk.saved.pending) {
			v.add(fmt.Sprintf("thread %d: pending signals differ", tk.tid))
		}
	}
}

func (t *Tree) compareDescriptors(p *process, st *processState, v *Verification) {
	fds, err := numbers(p.fdDir, nil)
	if err != nil {
		v.add(err.Error())
		return
	}
	open := map[int]bool{}
	for _, fd := range fds {
		open[fd] = fd != p.remoteChannel
	}
	for i := range st.files {
		d := &st.files[i]
		v.Descriptors++
		if !open[d.fd] {
			v.add(fmt.Sprintf("process %d: descriptor %d (%s) is missing", p.pid, d.fd, d.link))
			continue
		}
		delete(open, d.fd)
		if p.ran || d.held() {
			same, err := t.sameFileNow(p, d)
			if err != nil || !same {
				v.add(fmt.Sprintf("process %d: descriptor %d (%s) is another file", p.pid, d.fd, d.link))
			}
		}
		if d.kind == kindRegular {
			if pos, _ := uapi.Seek(d.dup, 0, uapi.SeekCur); pos != d.pos && !d.aboutDead() {
				v.add(fmt.Sprintf("process %d: descriptor %d stands at %d, was at %d", p.pid, d.fd, pos, d.pos))
			}
		}
		if d.kind == kindEpoll || d.kind == kindEventfd || d.kind == kindSignalfd {
			t.compareInfo(p, d, v)
		}
	}
	for fd, is := range open {
		if is {
			v.add(fmt.Sprintf("process %d: descriptor %d is new", p.pid, fd))
		}
	}
}

// aboutDead says whether a file is one of /proc about somebody who has ended: it has no other offset than 0.
func (d *descriptor) aboutDead() bool {
	_, err := uapi.Seek(d.dup, d.pos, uapi.SeekSet)
	return errors.Is(err, uapi.ESRCH)
}

// sameFileNow is sameFile without keeping a duplicate.
func (t *Tree) sameFileNow(p *process, d *descriptor) (bool, error) {
	c := *d
	c.now = -1
	same, err := t.sameFile(p, &c)
	uapi.Close(c.now)
	return same, err
}

func (t *Tree) compareInfo(p *process, d *descriptor, v *Verification) {
	info := selfInfo(d.dup, nil)
	if d.kind != kindEpoll {
		if !bytes.Equal(info, d.info) {
			v.add(fmt.Sprintf("process %d: state of descriptor %d differs", p.pid, d.fd))
		}
		return
	}
	now := parseEpoll(info)
	for _, it := range d.epoll {
		found := false
		for _, n := range now {
			// A connection that ended was replaced: the same number, another inode.
			found = found || n.fd == it.fd && n.events == it.events && n.data == it.data
		}
		if !found {
			v.add(fmt.Sprintf("process %d: epoll set %d lacks descriptor %d", p.pid, d.fd, it.fd))
		}
	}
	if len(now) != len(d.epoll) {
		v.add(fmt.Sprintf("process %d: epoll set %d has %d members, had %d", p.pid, d.fd, len(now), len(d.epoll)))
	}
}

func (t *Tree) compareObjects(s *Snapshot, v *Verification) {
	for _, o := range s.objects {
		_ = o.o.extents(func(first, end int) error {
			for i := first; i < end && i < len(o.pages); i++ {
				v.Pages++
				want := zeroPage[:]
				if o.pages[i] != 0 {
					want = t.shm.page(o.pages[i] - 1)
				}
				if !bytes.Equal(o.o.page(i), want) {
					v.add(fmt.Sprintf("shared memory %s: page %d differs from byte %d on", o.o.name, i, firstDifference(o.o.page(i), want)))
				}
			}
			return nil
		})
	}
}

func (t *Tree) compareFiles(s *Snapshot, v *Verification) {
	seen := map[string]bool{}
	for i := range t.files.dirs {
		_ = filepath.WalkDir(t.files.dirs[i].path, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				v.add(err.Error())
				return nil
			}
			if t.files.hiddenPath(path) {
				return filepath.SkipDir
			}
			seen[path] = true
			if s.files[path] == nil {
				v.add(fmt.Sprintf("file %s is new", path))
			}
			return nil
		})
	}
	for path, e := range s.files {
		v.Files++
		if !seen[path] {
			v.add(fmt.Sprintf("file %s is missing", path))
			continue
		}
		t.compareFile(path, e, v)
	}
}

func (t *Tree) compareFile(path string, e *entry, v *Verification) {
	var st uapi.Stat_t
	if err := uapi.Lstat(path, &st); err != nil {
		v.add(err.Error())
		return
	}
	if e.inode != nil && (identity{st.Dev, st.Ino}) != e.id || st.Mode != e.mode || st.Uid != e.uid || st.Gid != e.gid {
		v.add(fmt.Sprintf("file %s: inode, mode or owner differ", path))
	}
	if e.content == nil {
		return
	}
	if st.Size != e.content.size {
		v.add(fmt.Sprintf("file %s has %d bytes, had %d", path, st.Size, e.content.size))
		return
	}
	fd, err := uapi.Open(path, uapi.ORdonly)
	if err != nil {
		v.add(err.Error())
		return
	}
	defer uapi.Close(fd)
	var b [pageSize]byte
	for i, p := range e.content.pages {
		n, _ := uapi.Pread(fd, b[:], uint64(i)<<pageShift)
		want := zeroPage[:]
		if p != 0 {
			want = t.files.arena.page(p - 1)
		}
		if n < 0 || !bytes.Equal(b[:n], want[:n]) {
			v.add(fmt.Sprintf("file %s: block %d differs", path, i))
			return
		}
	}
}
