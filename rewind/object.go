package rewind

import (
	"bytes"
	"fmt"

	"github.com/pommelgym/pommel/internal/uapi"
)

// object is a piece of shared memory: shared anonymous memory, a memfd, a System V
// segment, or a file of a tmpfs that is mapped shared. It is reached through a mapping
// of the tracer's own, so writing it back costs a copy and no system call.
type object struct {
	id    identity
	name  string
	fd    int
	live  []byte
	size  int64
	epoch []uint32 // rewind in which a page was last put back
	full  bool     // compare all of it at this rewind
	dense bool     // it has no holes
}

// objectState is what a snapshot keeps of an object.
type objectState struct {
	o            *object
	size         int64
	pages        []uint32 // place in the arena plus one; 0 is a hole
	mtime, ctime uapi.Timespec
	blocks       int64
	mapped       bool // some process has it mapped writable, and its stores are tracked
	opened       bool // some process has a descriptor of it, by which it may be written untracked
	count        int
}

const maxObject = 64 << 30

// objectAt finds or makes the object behind a shared area.
func (t *Tree) objectAt(p *process, a *area) (*object, error) {
	path := fmt.Sprintf("/proc/%d/map_files/%x-%x", p.pid, a.start, a.end)
	id := identify(path)
	if o := t.objects[id]; o != nil {
		return o, nil
	}
	fd, err := uapi.Open(path, uapi.ORdwr)
	if err != nil {
		return nil, fail(ReasonMemory, "open shared memory %s of process %d: %v", a.name, p.pid, err)
	}
	return t.addObject(id, a.name, fd)
}

// addObject takes over fd.
func (t *Tree) addObject(id identity, name string, fd int) (*object, error) {
	var st uapi.Stat_t
	if err := uapi.Fstat(fd, &st); err != nil || !uapi.IsRegular(st.Mode) {
		uapi.Close(fd)
		return nil, fail(ReasonMemory, "shared memory %s is not a file", name)
	}
	if magic, err := uapi.FsMagicFd(fd); err != nil || magic != uapi.TmpfsMagic {
		uapi.Close(fd)
		return nil, fail(ReasonMemory, "%s is mapped shared and writable but lies on no tmpfs", name)
	}
	if st.Size > maxObject {
		uapi.Close(fd)
		return nil, fail(ReasonMemory, "shared memory %s has %d GB", name, st.Size>>30)
	}
	o := &object{id: id, name: name, fd: fd}
	if err := o.mapLive(st.Size); err != nil {
		uapi.Close(fd)
		return nil, err
	}
	t.objects[id] = o
	return o, nil
}

// mapLive maps the object anew when its size has changed.
func (o *object) mapLive(size int64) error {
	if o.live != nil {
		_ = uapi.Unmap(o.live)
		o.live = nil
	}
	o.size = size
	n := int((size + pageSize - 1) &^ (pageSize - 1))
	if n == 0 {
		return nil
	}
	mem, err := uapi.MapShared(o.fd, n, true)
	if err != nil {
		return fail(ReasonMemory, "map shared memory %s: %v", o.name, err)
	}
	o.live = mem
	for len(o.epoch) < n>>pageShift {
		o.epoch = append(o.epoch, 0)
	}
	return nil
}

func (o *object) page(i int) []byte {
	return o.live[i<<pageShift : (i+1)<<pageShift : (i+1)<<pageShift]
}

func (o *object) close() {
	if o.live != nil {
		_ = uapi.Unmap(o.live)
	}
	uapi.Close(o.fd)
}

// extents calls visit for each range of pages that hold data: touching a hole through the mapping would fill it.
func (o *object) extents(visit func(first, end int) error) error {
	if o.dense {
		return visit(0, len(o.live)>>pageShift)
	}
	for pos := int64(0); pos < o.size; {
		d, err := uapi.Seek(o.fd, pos, uapi.SeekData)
		if err != nil || d >= o.size {
			return nil // ENXIO: nothing but holes from here on
		}
		h, err := uapi.Seek(o.fd, d, uapi.SeekHole)
		if err != nil || h > o.size {
			h = o.size
		}
		if err := visit(int(d>>pageShift), int((h+pageSize-1)>>pageShift)); err != nil {
			return err
		}
		pos = h
	}
	return nil
}

// capture saves an object; pages that equal those of an earlier state are shared with it.
func (o *object) capture(a *arena, prev *objectState) (*objectState, error) {
	var st uapi.Stat_t
	if err := uapi.Fstat(o.fd, &st); err != nil {
		return nil, fail(ReasonMemory, "look at shared memory %s: %v", o.name, err)
	}
	if st.Size != o.size {
		if err := o.mapLive(st.Size); err != nil {
			return nil, err
		}
	}
	o.dense = st.Blocks<<9 >= int64(len(o.live))
	s := &objectState{o: o, size: st.Size, mtime: st.Mtim, ctime: st.Ctim, blocks: st.Blocks, pages: make([]uint32, (st.Size+pageSize-1)>>pageShift)}
	err := o.extents(func(first, end int) error {
		for i := first; i < end; i++ {
			s.count++
			if prev != nil && i < len(prev.pages) && prev.pages[i] != 0 && bytes.Equal(o.page(i), a.page(prev.pages[i]-1)) {
				s.pages[i] = prev.pages[i]
				a.hold(pageRun{prev.pages[i] - 1, 1}, 1)
				continue
			}
			r, err := a.alloc(1)
			if err != nil {
				return err
			}
			copy(a.bytes(r), o.page(i))
			s.pages[i] = r.first + 1
		}
		return nil
	})
	return s, err
}

// release gives the pages of a state back.
func (s *objectState) release(a *arena) {
	for _, p := range s.pages {
		if p != 0 {
			a.release(pageRun{p - 1, 1})
		}
	}
	s.pages = nil
}

// prepare makes an object's size and flags ready for being written back.
func (s *objectState) prepare() error {
	var st uapi.Stat_t
	if err := uapi.Fstat(s.o.fd, &st); err != nil {
		return fail(ReasonMemory, "look at shared memory %s: %v", s.o.name, err)
	}
	if st.Size != s.size {
		if err := uapi.Truncate(s.o.fd, s.size); err != nil {
			return fail(ReasonMemory, "size shared memory %s: %v", s.o.name, err)
		}
		s.o.full = true
	}
	if s.o.size != s.size {
		if err := s.o.mapLive(s.size); err != nil {
			return err
		}
		s.o.full = true
	}
	// A write(2) leaves a time stamp; but so does the first store to a page through a mapping.
	if (s.opened || !s.mapped) && (st.Mtim != s.mtime || st.Ctim != s.ctime) {
		s.o.full = true
	}
	s.o.dense = st.Blocks<<9 >= int64(len(s.o.live))
	if st.Blocks < s.blocks { // pages were punched out
		s.o.full = true
	}
	return nil
}

// settle remembers the time stamps after everything was put back.
func (s *objectState) settle() {
	var st uapi.Stat_t
	if uapi.Fstat(s.o.fd, &st) == nil {
		s.mtime, s.ctime, s.blocks = st.Mtim, st.Ctim, st.Blocks
	}
}

var zeroPage [pageSize]byte

// putBack writes one page back, once in a rewind.
func (s *objectState) putBack(a *arena, i int, epoch uint32) bool {
	o := s.o
	if i < 0 || i >= len(s.pages) || o.epoch[i] == epoch {
		return false
	}
	o.epoch[i] = epoch
	want := zeroPage[:]
	if s.pages[i] != 0 {
		want = a.page(s.pages[i] - 1)
	}
	copy(o.page(i), want)
	return true
}

// compareAll puts back every page that differs. Holes of the snapshot that hold data now become zeroes.
func (s *objectState) compareAll(a *arena, epoch uint32) (n int) {
	o := s.o
	_ = o.extents(func(first, end int) error {
		for i := first; i < end && i < len(s.pages); i++ {
			want := zeroPage[:]
			if s.pages[i] != 0 {
				want = a.page(s.pages[i] - 1)
			}
			if o.epoch[i] != epoch && !bytes.Equal(o.page(i), want) {
				copy(o.page(i), want)
				n++
			}
			o.epoch[i] = epoch
		}
		return nil
	})
	for i, p := range s.pages { // saved pages that were punched out
		if p != 0 && o.epoch[i] != epoch {
			if want := a.page(p - 1); !bytes.Equal(want, zeroPage[:]) {
				copy(o.page(i), want)
				n++
			}
			o.epoch[i] = epoch
		}
	}
	return n
}

// compareBlocks is compareAll for a file, whose writes no rewind has to count.
func (s *objectState) compareBlocks(a *arena) (n int) {
	for i := range s.o.epoch {
		s.o.epoch[i] = 0
	}
	return s.compareAll(a, 1)
}
