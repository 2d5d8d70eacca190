package rewind

import (
	"fmt"
	"math"
	"strings"

	"github.com/pommelgym/pommel/internal/uapi"
)

func mapFile(pid int, a *area) string {
	return fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, a.start, a.end)
}

const (
	mapShared    = 0x01
	mapPrivate   = 0x02
	mapFixed     = 0x10
	mapAnon      = 0x20
	mapGrowsDown = 0x100
	mapNoReserve = 0x4000

	mapFixedNoReplace = 0x100000
)

// origin says where the address space at hand comes from.
type origin int

const (
	itsOwn   origin = iota // that of the process itself, some time later
	parents                // inherited from the parent, which runs the same program
	stranger               // inherited from a parent that runs another program
)

// areaUndo brings the areas of a process back to those of a state.
type areaUndo struct {
	t     *Tree
	p     *process
	tk    *task
	st    *processState
	b     *batch
	how   origin
	heap  bool
	holes []span // mapped again
}

// undoAreas mends the areas of a process that was made again, whose memory is its parent's.
func (t *Tree) undoAreas(p *process, tk *task, st *processState, b *batch, how origin) error {
	u := areaUndo{t: t, p: p, tk: tk, st: st, b: b, how: how}
	if err := u.sweep(); err != nil {
		return err
	}
	if err := t.flush(tk, b); err != nil {
		return err
	}
	return u.settle()
}

// sweep goes over both lists of areas from border to border.
func (u *areaUndo) sweep() error {
	want, have := u.st.areas, u.p.now.areas
	for i, j, at := 0, 0, uint64(0); i < len(want) || j < len(have); {
		var o, w *area
		begin, end := uint64(math.MaxUint64), uint64(math.MaxUint64)
		if i < len(want) {
			o = &want[i]
			begin = max(o.start, at)
		}
		if j < len(have) {
			w = &have[j]
			begin = min(begin, max(w.start, at))
		}
		inO, inW := o != nil && o.start <= begin, w != nil && w.start <= begin
		for _, e := range []struct {
			a  *area
			in bool
		}{{o, inO}, {w, inW}} {
			if e.a != nil && e.in {
				end = min(end, e.a.end)
			} else if e.a != nil {
				end = min(end, e.a.start)
			}
		}
		if err := u.piece(begin, end, o, w, inO, inW); err != nil {
			return err
		}
		at = end
		if o != nil && end >= o.end {
			i++
		}
		if w != nil && end >= w.end {
			j++
		}
	}
	if u.heap { // unmapping alone would leave the kernel with a wrong break
		u.t.report.AreasChanged++
		u.b.add(uapi.SysBrk, u.st.brk)
	}
	return nil
}

// piece mends one stretch [a, b) in which both lists say one thing.
func (u *areaUndo) piece(a, b uint64, o, w *area, inO, inW bool) error {
	if err := u.t.room(u.tk, u.b); err != nil {
		return err
	}
	switch {
	case inO && !inW:
		if u.how != stranger && o.name == "[heap]" {
			u.heap = true
			return nil
		}
		return u.remap(a, b, o)
	case !inO && inW:
		switch {
		case w.name == "[heap]" && u.how != stranger:
			u.heap = true
		case !w.kernelOwned():
			u.unmapped(w)
			u.b.add(uapi.SysMunmap, a, b-a)
			u.t.report.AreasChanged++
		}
	case inO && inW && !o.kernelOwned():
		if !o.sameMapping(w) {
			u.unmapped(w)
			return u.remap(a, b, o)
		}
		if o.prot != w.prot {
			if o.shared && w.writable() && !o.writable() {
				u.unmapped(w) // was writable for a while, and nobody tracked it
			}
			u.b.add(uapi.SysMprotect, a, b-a, uint64(o.prot))
			u.t.report.AreasChanged++
		}
	}
	return nil
}

// unmapped notes that shared memory may have been written through a mapping that was not tracked.
func (u *areaUndo) unmapped(w *area) {
	if !w.shared {
		return
	}
	for _, s := range u.t.target.objects {
		if s.o.id.ino == w.ino {
			s.o.full = true
		}
	}
}

// remap maps a stretch of a saved area again. Its pages are holes then and will be written back.
func (u *areaUndo) remap(a, b uint64, o *area) error {
	u.t.report.AreasChanged++
	if o.kernelOwned() {
		if u.how != itsOwn {
			return nil // the child was given them at the right place beforehand
		}
		return fail(ReasonMemory, "process %d has unmapped %s", u.p.pid, o.name)
	}
	if u.p.ours(o) {
		if u.how != itsOwn {
			return nil // mapped beforehand as well
		}
		return fail(ReasonMemory, "process %d has unmapped the tracer's memory", u.p.pid)
	}
	if o.object != nil {
		o.object.full = true
	}
	flags := uint64(mapFixed)
	if o.shared {
		flags |= mapShared
	} else {
		flags |= mapPrivate
	}
	if !o.shared && o.ino == 0 {
		flags |= mapAnon | mapNoReserve
		if o.name == "[stack]" {
			flags |= mapGrowsDown
		}
		u.b.add(uapi.SysMmap, a, b-a, uint64(o.prot), flags, math.MaxUint64, 0)
	} else {
		if err := u.t.flush(u.tk, u.b); err != nil { // handing over a descriptor takes calls of its own
			return err
		}
		fd, err := u.source(o)
		if err != nil {
			return err
		}
		u.b.add(uapi.SysMmap, a, b-a, uint64(o.prot), flags, uint64(fd), o.off+(a-o.start))
		u.b.add(uapi.SysClose, uint64(fd))
	}
	if o.tracked {
		u.holes = append(u.holes, span{a, b})
	}
	return nil
}

// source puts a descriptor of the file behind an area into the process.
func (u *areaUndo) source(o *area) (int, error) {
	switch {
	case o.object != nil:
		return u.t.sendFd(u.p, u.tk, o.object.fd)
	case o.keep >= 0:
		return u.t.sendFd(u.p, u.tk, o.keep)
	}
	path := strings.TrimSuffix(o.name, " (deleted)")
	fd, err := uapi.Open(fmt.Sprintf("/proc/%d/root%s", u.p.pid, path), uapi.ORdonly)
	if err != nil {
		return -1, fail(ReasonMemory, "map %s again in process %d: %v", o.name, u.p.pid, err)
	}
	defer uapi.Close(fd)
	var st uapi.Stat_t
	if uapi.Fstat(fd, &st) != nil || st.Ino != o.ino {
		return -1, fail(ReasonMemory, "%s, once mapped by process %d, is another file now", path, u.p.pid)
	}
	return u.t.sendFd(u.p, u.tk, fd)
}

// unsettled says whether there is more to do once the calls of the sweep have been made.
func (u *areaUndo) unsettled() bool {
	return u.heap || len(u.holes) > 0 || u.p.job != nil
}

// settle tracks what was mapped again and plans what is to be written there.
func (u *areaUndo) settle() error {
	p, forked := u.p, u.how != itsOwn
	for _, h := range u.holes {
		if err := p.register(h.start, h.end); err != nil {
			return err
		}
	}
	for i := range u.st.areas {
		a := &u.st.areas[i]
		if a.tracked && (forked || u.heap && a.name == "[heap]") {
			if err := p.register(a.start, a.end); err != nil {
				return err
			}
		}
	}
	if forked || p.job != nil { // what a scan could not find out before it can now
		return p.planMemory(u.st, p.diff)
	}
	return p.planRemapped(u.st, u.holes, u.heap)
}
