package rewind

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/uapi"
)

// run is a row of saved pages: n pages at addr, kept from page first of the arena on.
type run struct {
	addr  uint64
	n     uint32
	first uint32
}

func (r *run) end() uint64 { return r.addr + uint64(r.n)<<pageShift }

// pageAt is where in the arena the page at an address is kept.
func (r *run) pageAt(at uint64) uint32 { return r.first + uint32((at-r.addr)>>pageShift) }

// rawRun is a row of pages that are kept outside the arena.
type rawRun struct {
	addr uint64
	data []byte
}

const (
	inMemory = uapi.PageIsPresent | uapi.PageIsSwapped
	fileZero = uapi.PageIsFile | uapi.PageIsPfnZero
)

// register puts an area under tracking.
func (p *process) register(start, end uint64) error {
	if e := uapi.UffdRegister(p.uffd, start, end); e != 0 {
		return fail(ReasonMemory, "track writes to %#x-%#x of process %d: %v", start, end, p.pid, e)
	}
	return nil
}

// droppable says whether an area is memory that the kernel may take back at any time
// (MAP_DROPPABLE), in which C libraries and Go keep the state of their random numbers.
// The kernel tracks no writes to it. The maps do not show it.
func (p *process) droppable(a *area) bool {
	if a.shared || a.ino != 0 {
		return false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", p.pid))
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(text), fmt.Sprintf("%08x-%08x ", a.start, a.end))
	if !found {
		return false
	}
	_, rest, _ = strings.Cut(rest, "VmFlags:")
	flags, _, _ := strings.Cut(rest, "\n")
	return slices.Contains(strings.Fields(flags), "dp")
}

// captureMemory registers all areas that can be written, saves what is in them and
// starts tracking. With prev given (the state to which tracking is relative), only
// pages written since are copied.
func (t *Tree) captureMemory(p *process, tk *task, st, prev *processState) error {
	if p.arena == nil || p.arena.at == 0 {
		if err := t.mapArena(p, tk); err != nil {
			return err
		}
	}
	text, err := p.readMaps()
	if err != nil {
		return err
	}
	var droppable []uint64
	for _, a := range parseMaps(text, nil) {
		if p.ours(&a) || !t.wanted(&a) {
			continue
		}
		if strings.HasPrefix(a.name, "anon_inode:[io_uring]") {
			return fail(ReasonIOUring, "process %d has mapped an io_uring", p.pid)
		}
		err := p.register(a.start, a.end)
		if err != nil && p.droppable(&a) {
			droppable = append(droppable, a.start)
			continue
		}
		if err != nil {
			return fail(ReasonMemory, "%s: %v", a.name, err)
		}
	}
	if text, err = p.readMaps(); err != nil { // registering may split or merge areas
		return err
	}
	st.areas = parseMaps(text, nil)
	if err := t.seal(p, tk, st); err != nil {
		return err
	}
	st.seals = p.seals
	k := keeping{p: p, st: st, prev: prev, peers: t.peers(p.pid, prev)}
	if prev != nil {
		k.cur.runs = prev.runs
	}
	for i := range st.areas {
		st.areas[i].untrack = slices.Contains(droppable, st.areas[i].start)
		if err := t.captureArea(&k, &st.areas[i]); err != nil {
			return err
		}
	}
	st.planScans()
	for i := range st.areas {
		if a := &st.areas[i]; a.tracked {
			if err := p.arm(a.start, a.end); err != nil {
				return err
			}
		}
	}
	p.sinceArm = 0
	return nil
}

// ours says whether an area is the tracer's own doing.
func (p *process) ours(a *area) bool {
	return a.start >= p.code && a.end <= p.data+parasiteData ||
		p.arena != nil && p.arena.at != 0 && a.start >= p.arena.at && a.end <= p.arena.at+arenaSize
}

// wanted says whether writes to an area have to be tracked. Those to shared mappings of files that the caller has
// allowed are left alone.
func (t *Tree) wanted(a *area) bool {
	return a.wanted() && !(a.shared && strings.HasPrefix(a.name, "/") && t.opt.AllowForeign(a.name))
}

// keeping is the memory of one process while it is saved.
type keeping struct {
	p        *process
	st, prev *processState
	cur      cursor   // through the pages of prev
	peers    []cursor // through those of other snapshots, the newest first
}

// manyPeers is how many snapshots a new one shares equal pages with, beside its parent. Equal
// pages are shared from one to the next, so a few reach all of them.
const manyPeers = 8

// peers are the newest other states of a process.
func (t *Tree) peers(pid int, prev *processState) (out []cursor) {
	for i := len(t.snaps) - 1; i >= 0 && len(out) < manyPeers; i-- {
		if st := t.snaps[i].process(pid); st != nil && st != prev {
			out = append(out, cursor{runs: st.runs})
		}
	}
	return out
}

func (t *Tree) captureArea(k *keeping, a *area) error {
	if k.p.ours(a) || a.kernelOwned() {
		return nil
	}
	if !t.wanted(a) {
		return t.captureReadOnly(k.p, k.st, k.prev, a)
	}
	if a.untrack {
		return t.capturePrivate(k, a)
	}
	a.tracked = true
	if a.shared {
		o, err := t.objectAt(k.p, a)
		if err != nil {
			return err
		}
		a.object = o
		return nil
	}
	if strings.HasSuffix(a.name, " (deleted)") {
		a.keep = k.p.openMapping(a)
	}
	return t.capturePrivate(k, a)
}

func (p *process) openMapping(a *area) int {
	fd, err := uapi.Open(mapFile(p.pid, a), uapi.ORdonly)
	if err != nil {
		return -1
	}
	return fd
}

// captureReadOnly saves the pages of a read-only file mapping that were written before
// it was made read-only (relocations). Only making the process again needs them.
func (t *Tree) captureReadOnly(p *process, st, prev *processState, a *area) error {
	if a.shared || strings.HasSuffix(a.name, " (deleted)") {
		a.keep = p.openMapping(a)
	}
	if a.shared {
		return nil
	}
	return p.eachRegion(a.start, a.end, present, func(r uapi.PageRegion) error {
		data := make([]byte, r.End-r.Start)
		if err := p.read(r.Start, data); err != nil {
			return err
		}
		st.readOnly = append(st.readOnly, rawRun{r.Start, prev.sharedReadOnly(r.Start, data)})
		return nil
	})
}

// sharedReadOnly gives the copy that an earlier state has, if it is the same: such pages
// are megabytes in each process and hardly ever change.
func (st *processState) sharedReadOnly(addr uint64, data []byte) []byte {
	if st == nil {
		return data
	}
	i, found := slices.BinarySearchFunc(st.readOnly, addr, func(r rawRun, addr uint64) int { return cmp.Compare(r.addr, addr) })
	if found && bytes.Equal(st.readOnly[i].data, data) {
		return st.readOnly[i].data
	}
	return data
}

// present selects pages that exist and are neither the file's own nor the zero page.
var present = uapi.PmScanArg{
	CategoryInverted: fileZero, CategoryMask: fileZero, CategoryAnyof: inMemory,
	ReturnMask: inMemory | uapi.PageIsWritten,
}

// eachRegion visits what a scan finds; sel says what to look for.
func (p *process) eachRegion(start, end uint64, sel uapi.PmScanArg, visit func(uapi.PageRegion) error) error {
	var vec [512]uapi.PageRegion
	for at := start; at < end; {
		sel.Start, sel.End = at, end
		n, e := uapi.Scan(p.pagemap, &sel, vec[:])
		if e != 0 {
			return fail(ReasonMemory, "scan %#x-%#x of process %d: %v", start, end, p.pid, e)
		}
		for _, r := range vec[:n] {
			if err := visit(r); err != nil {
				return err
			}
		}
		if sel.WalkEnd <= at {
			break
		}
		at = sel.WalkEnd
	}
	return nil
}

// capturePrivate saves the pages of a private area.
func (t *Tree) capturePrivate(k *keeping, a *area) error {
	return k.p.eachRegion(a.start, a.end, present, func(r uapi.PageRegion) error {
		if !exists(r.Categories) && !t.swaps {
			return nil // a note about a page that is not there
		}
		for at := r.Start; at < r.End; {
			old, upto := k.cur.find(at, r.End)
			first := uint32(0)
			if old != nil {
				first = old.pageAt(at)
			}
			if old != nil && exists(r.Categories) && r.Categories&uapi.PageIsWritten == 0 {
				k.share(at, pageRun{first, uint32((upto - at) >> pageShift)})
			} else if err := t.savePages(k, a, span{at, upto}, old != nil, first); err != nil {
				return err
			}
			at = upto
		}
		return nil
	})
}

// savePages copies pages of the process into its arena; known says that older copies exist
// from page old of the arena on. Pages that are equal to those, or to what other snapshots
// have there, are shared with them. Tracked memory that is all zeroes is saved as memory that
// was never touched, which reads the same: so notes about absent pages, where they cannot be
// told from swapped ones, take no room.
func (t *Tree) savePages(k *keeping, a *area, s span, known bool, old uint32) error {
	arena := k.p.arena
	for at := s.start; at < s.end; {
		rest := t.infoBuf[:min(uint64(len(t.infoBuf)), s.end-at)]
		if err := k.p.read(at, rest); err != nil {
			return err
		}
		for ; len(rest) > 0; at, old, rest = at+pageSize, old+1, rest[pageSize:] {
			b := rest[:pageSize]
			if known && k.st.samePage(at, b, arena.page(old)) {
				k.share(at, pageRun{old, 1})
				continue
			}
			if a.tracked && a.ino == 0 && bytes.Equal(b, zeroPage[:]) || k.likePeers(at, b) {
				continue
			}
			r, err := arena.alloc(1)
			if err != nil {
				return err
			}
			copy(arena.bytes(r), b)
			k.st.addRun(run{at, 1, r.first})
		}
	}
	return nil
}

// share keeps pages that the arena has.
func (k *keeping) share(at uint64, r pageRun) {
	k.p.arena.hold(r, 1)
	k.st.addRun(run{at, r.n, r.first})
}

// likePeers shares a page with a snapshot that has the same there, if one has.
func (k *keeping) likePeers(at uint64, b []byte) bool {
	for i := range k.peers {
		r, _ := k.peers[i].find(at, at+pageSize)
		if r == nil {
			continue
		}
		if page := r.pageAt(at); k.st.samePage(at, b, k.p.arena.page(page)) {
			k.share(at, pageRun{page, 1})
			return true
		}
	}
	return false
}

// samePage says whether a page is still what it was, as far as the program can have changed
// it: the number of the processor, which the kernel writes down by itself, is no change.
func (st *processState) samePage(at uint64, b, was []byte) bool {
	return bytes.Equal(b, was) || onlyRseqDiffers(st, at, b, was)
}

// swapping says whether the host has swap space, or may have: then a page that is swapped
// out looks like a note about one that is not there.
func swapping() bool {
	text, err := os.ReadFile("/proc/swaps")
	return err != nil || bytes.Count(text, []byte{'\n'}) != 1
}

// addRun appends a run, joining it to the last one where both places continue it.
func (st *processState) addRun(r run) {
	if k := len(st.runs); k > 0 {
		if l := &st.runs[k-1]; l.end() == r.addr && l.first+l.n == r.first {
			l.n += r.n
			return
		}
	}
	st.runs = append(st.runs, r)
}

// saved counts the pages in a process's memory that are kept.
func (st *processState) saved() (n int) {
	for i := range st.runs {
		n += int(st.runs[i].n)
	}
	return n
}

// arm protects every present page of a range again, so that the next write to it shows.
func (p *process) arm(start, end uint64) error {
	a := uapi.PmScanArg{Flags: uapi.PmScanWPMatching | uapi.PmScanCheckWPAsync, CategoryAnyof: inMemory,
		CategoryMask: uapi.PageIsWritten}
	for at := start; at < end; {
		a.Start, a.End = at, end
		if _, e := uapi.Scan(p.pagemap, &a, nil); e != 0 {
			return fail(ReasonMemory, "protect %#x-%#x of process %d: %v", start, end, p.pid, e)
		}
		if a.WalkEnd <= at {
			break
		}
		at = a.WalkEnd
	}
	return nil
}

// cursor walks a sorted list of runs along with ascending addresses.
type cursor struct {
	runs []run
	i    int
}

// find gives the run that covers at, or nil, and up to where (at most end) that holds.
// Addresses may go back a little, as areas and regions overlap.
func (c *cursor) find(at, end uint64) (*run, uint64) {
	for c.i > 0 && c.runs[c.i-1].end() > at {
		c.i--
	}
	for c.i < len(c.runs) && c.runs[c.i].end() <= at {
		c.i++
	}
	if c.i == len(c.runs) {
		return nil, end
	}
	r := &c.runs[c.i]
	if r.addr > at {
		return nil, min(r.addr, end)
	}
	return r, min(r.end(), end)
}
