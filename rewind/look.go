package rewind

import (
	"bytes"

	"github.com/pommelgym/pommel/internal/uapi"
)

// glance is what a look at a stopped process has shown, compared with the snapshot. Looking
// needs no ptrace and changes nothing, so all processes are looked at side by side.
type glance struct {
	areas     []area // what is mapped, unless sameAreas
	sameAreas bool
	files     []fileState // of each descriptor of the snapshot
	extra     []int       // descriptors that have to be closed
	timers    []posixTimer
	moved     bool // to another working folder

	fds  []int
	gone []*descriptor
	sent []int
	// landing are the numbers that files which are put back will get first.
	landing []int32
	query   uapi.ProcmapArg
	noMaps  bool // the kernel cannot be asked for single areas
	buf     []byte
}

// fileState says what became of a descriptor.
type fileState uint8

const (
	fileGone    fileState = iota // closed, or another file now
	fileSame                     // as it was
	fileChanged                  // the same file in another state
)

func (g *glance) buffer() []byte {
	if g.buf == nil {
		g.buf = make([]byte, 16<<10)
	}
	return g.buf
}

// readAgain reads the rest of a file in /proc of which n bytes are in the buffer.
func (p *process) readAgain(fd, n int) []byte {
	b := p.now.buffer()
	for n < len(b) {
		k, err := uapi.Pread(fd, b[n:], uint64(n))
		if err != nil || k <= 0 {
			break
		}
		n += k
	}
	return b[:n]
}

// look compares everything but the memory of a process with a state.
func (w *rewinder) look(p *process, st *processState) error {
	if err := p.lookAreas(st); err != nil {
		return err
	}
	p.lookTimers()
	p.now.moved = st.cwdFd >= 0 && identify("/proc/"+itoa(p.pid)+"/cwd") != st.cwd
	return w.t.lookFiles(p, st)
}

// lookAreas finds out what a process has mapped.
func (p *process) lookAreas(st *processState) error {
	g := &p.now
	if g.noMaps {
		return p.lookText(st)
	}
	g.areas, g.sameAreas = g.areas[:0], true
	k := 0
	differ := func() { // up to here all were equal
		if g.sameAreas {
			g.areas, g.sameAreas = append(g.areas, st.areas[:k]...), false
		}
	}
	sealed := p.sealed(st)
	for at := uint64(0); ; {
		switch e := uapi.QueryMap(p.maps, &g.query, at, nil); {
		case e == uapi.ENOTTY && at == 0:
			g.noMaps = true
			return p.lookText(st)
		case e == uapi.ENOENT:
			for ; k < len(st.areas); k++ {
				if st.areas[k].name != "[vsyscall]" { // is not asked for, and is always there
					differ()
				} else if !g.sameAreas {
					g.areas = append(g.areas, st.areas[k])
				}
			}
			return nil
		case e != 0:
			return fail(ReasonRootGone, "look at the areas of process %d: %v", p.pid, e)
		}
		at = g.query.End
		for k < len(st.areas) && st.areas[k].end <= g.query.Start {
			differ()
			k++
		}
		for len(sealed) > 0 && sealed[0].end <= g.query.Start {
			sealed = sealed[1:]
		}
		if len(sealed) > 0 && g.query.Start == sealed[0].start { // the whole row is as it was
			for at = sealed[0].end; k < len(st.areas) && st.areas[k].start < at; k++ {
				if !g.sameAreas {
					g.areas = append(g.areas, st.areas[k])
				}
			}
			continue
		}
		if k < len(st.areas) && st.areas[k].is(&g.query) {
			if !g.sameAreas {
				g.areas = append(g.areas, st.areas[k])
			}
			k++
			continue
		}
		differ()
		a, err := p.namedArea(g.query.Start)
		if err != nil {
			return err
		}
		g.areas = append(g.areas, a)
	}
}

// is says whether an area is the one that the kernel has told of.
func (a *area) is(q *uapi.ProcmapArg) bool {
	return a.start == q.Start && a.end == q.End && a.prot == int(q.VMAFlags&(protRead|protWrite|protExec)) &&
		a.shared == (q.VMAFlags&uapi.ProcmapShared != 0) && a.ino == q.Ino && a.dev == uint64(q.Major)<<20|uint64(q.Minor) &&
		(a.off == q.Offset || a.ino == 0)
}

// namedArea asks for an area with its name.
func (p *process) namedArea(at uint64) (area, error) {
	q, name := &p.now.query, p.now.buffer()
	if e := uapi.QueryMap(p.maps, q, at, name); e != 0 {
		return area{}, fail(ReasonRootGone, "look at the area at %#x of process %d: %v", at, p.pid, e)
	}
	a := area{start: q.Start, end: q.End, off: q.Offset, ino: q.Ino, dev: uint64(q.Major)<<20 | uint64(q.Minor),
		prot: int(q.VMAFlags & (protRead | protWrite | protExec)), shared: q.VMAFlags&uapi.ProcmapShared != 0, keep: -1}
	if a.ino == 0 && !a.shared {
		a.off = 0 // the kernel counts from the address
	}
	if n := int(q.NameSize); n > 0 {
		a.name = string(bytes.TrimRight(name[:n], "\x00"))
	}
	return a, nil
}

// lookText is lookAreas for kernels that have only the text.
func (p *process) lookText(st *processState) error {
	text, err := p.readMaps()
	if err != nil {
		return err
	}
	g := &p.now
	g.areas = parseMaps(text, g.areas[:0])
	g.sameAreas = len(g.areas) == len(st.areas)
	for i := range g.areas {
		if !g.sameAreas {
			break
		}
		a, b := &g.areas[i], &st.areas[i]
		g.sameAreas = a.start == b.start && a.end == b.end && a.prot == b.prot && a.sameMapping(b)
	}
	return nil
}

// lookFiles compares the descriptors of a process with those of a state.
func (t *Tree) lookFiles(p *process, st *processState) error {
	g := &p.now
	g.files, g.extra = g.files[:0], g.extra[:0]
	all := true
	for i := range st.files {
		d := &st.files[i]
		d.now = -1
		same, err := t.sameFile(p, d)
		if err != nil {
			return err
		}
		state := fileGone
		if same {
			state = p.lookFile(d)
		}
		all = all && same
		g.files = append(g.files, state)
	}
	if all && p.hasChannel(t.self) && p.descriptors() == len(st.files)+1 {
		return nil
	}
	return p.lookExtra(st)
}

// lookExtra lists the descriptors that a state does not know, and those whose number has
// to be free for the file that had it.
func (p *process) lookExtra(st *processState) (err error) {
	g := &p.now
	if g.fds, err = numbers(p.fdDir, g.fds[:0]); err != nil {
		return fail(ReasonDescriptor, "list descriptors of process %d: %v", p.pid, err)
	}
	k := 0
	for _, fd := range g.fds { // both lists ascend
		for k < len(st.files) && st.files[k].fd < fd {
			k++
		}
		known := k < len(st.files) && st.files[k].fd == fd && g.files[k] != fileGone
		if !known && fd != p.remoteChannel {
			g.extra = append(g.extra, fd)
		}
	}
	return nil
}

// descriptors is how many a process has open, or -1: kernels before 6.2 do not tell.
func (p *process) descriptors() int {
	var st uapi.Stat_t
	if uapi.Fstat(p.fdDir, &st) != nil || st.Size == 0 {
		return -1
	}
	return int(st.Size)
}

// hasChannel says whether the channel is still open in the process.
func (p *process) hasChannel(self int) bool {
	if p.channelEnd < 0 {
		return false
	}
	r, e := uapi.Kcmp(p.pid, self, p.remoteChannel, p.channelEnd)
	return e == 0 && r == 0
}

// lookFile compares the state of an open file.
func (p *process) lookFile(d *descriptor) fileState {
	fd := d.current()
	if uapi.StatusFlags(fd) != d.status {
		return fileChanged
	}
	if d.kind == kindRegular {
		if pos, err := uapi.Seek(fd, 0, uapi.SeekCur); err == nil && pos != d.pos {
			return fileChanged
		}
	}
	if d.about < 0 || d.kind == kindEventfd && d.count == 0 && !readable(fd) {
		return fileSame
	}
	n, err := uapi.Pread(d.about, p.now.buffer(), 0)
	if err != nil || !bytes.Equal(p.readAgain(d.about, max(n, 0)), d.info) {
		return fileChanged
	}
	return fileSame
}
