package rewind

import (
	"github.com/pommelgym/pommel/internal/uapi"
)

// Where pages were saved, a page that is not there counts as changed (it
// was given back with madvise); elsewhere only what exists and was written matters.
// Whether a page is still the file's own is not asked: to find that out the kernel looks
// at each page's descriptor, which makes the scan several times slower. A page of a file
// that was only read is then given back like one that was written.
var (
	scanSaved = uapi.PmScanArg{Flags: uapi.PmScanCheckWPAsync, CategoryInverted: uapi.PageIsPresent,
		CategoryAnyof: uapi.PageIsWritten | uapi.PageIsPresent, ReturnMask: inMemory | uapi.PageIsWritten | uapi.PageIsPfnZero}
	scanNew = uapi.PmScanArg{Flags: uapi.PmScanCheckWPAsync, CategoryMask: uapi.PageIsWritten,
		CategoryAnyof: inMemory, ReturnMask: inMemory | uapi.PageIsWritten | uapi.PageIsPfnZero}
	scanSealed = uapi.PmScanArg{CategoryMask: uapi.PageIsWPAllowed, CategoryInverted: uapi.PageIsPresent,
		CategoryAnyof: uapi.PageIsWritten | uapi.PageIsPresent, ReturnMask: inMemory | uapi.PageIsWritten | uapi.PageIsPfnZero}
	scanShared = uapi.PmScanArg{Flags: uapi.PmScanCheckWPAsync | uapi.PmScanWPMatching, CategoryMask: uapi.PageIsWritten,
		CategoryAnyof: inMemory, ReturnMask: inMemory | uapi.PageIsWritten}
)

// scanKind says what a scan of a range looks for.
type scanKind uint8

const (
	kindNew   scanKind = iota // no pages are saved there
	kindSaved                 // most of its pages are saved
	kindShared
	kindSealed // a row of libraries, in which what is tracked cannot be mapped anew
)

func (k scanKind) selector() uapi.PmScanArg {
	switch k {
	case kindSaved:
		return scanSaved
	case kindShared:
		return scanShared
	case kindSealed:
		return scanSealed
	}
	return scanNew
}

// scanRange is a range that one scan covers. It lies in the areas i to j-1 of a process, which adjoin.
type scanRange struct {
	start, end uint64
	i, j       int
	kind       scanKind
}

// widestHole is the widest gap between saved pages, in bytes, that is scanned with them. A
// page that is missing costs the kernel a few nanoseconds; a scan of its own two microseconds.
const widestHole = 256 * pageSize

// planScans decides once for all rewinds which ranges of the areas are scanned, and how.
// Stacks and reservations are wide, and all but empty: to report each missing page of them
// would take longer than everything else.
func (st *processState) planScans() {
	cur := cursor{runs: st.runs}
	rows := st.sealedRows()
	for i := 0; i < len(st.areas); {
		for len(rows) > 0 && rows[0].end <= st.areas[i].start {
			rows = rows[1:]
		}
		if len(rows) > 0 && st.areas[i].start >= rows[0].start {
			i = st.planRow(i, rows[0].end)
			continue
		}
		j := st.group(i)
		if a := &st.areas[i]; a.tracked && a.shared {
			st.scans = append(st.scans, scanRange{a.start, a.end, i, j, kindShared})
		} else if a.tracked {
			st.planGroup(i, j, &cur)
		}
		i = j
	}
}

// planRow plans the scan of a row of sealed libraries, from area i on, and answers which
// area comes after it. Areas that are not tracked cost the kernel next to nothing.
func (st *processState) planRow(i int, end uint64) int {
	first, last := -1, 0
	for ; i < len(st.areas) && st.areas[i].start < end; i++ {
		if st.areas[i].tracked {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first >= 0 {
		st.scans = append(st.scans, scanRange{st.areas[first].start, st.areas[last].end, first, last + 1, kindSealed})
	}
	return i
}

// group gives the end of the row of adjoining private areas from i on.
func (st *processState) group(i int) int {
	a := &st.areas[i]
	j := i + 1
	if !a.tracked || a.shared {
		return j
	}
	for j < len(st.areas) {
		b := &st.areas[j]
		if !b.tracked || b.shared || b.start != st.areas[j-1].end {
			break
		}
		j++
	}
	return j
}

// planGroup cuts a row of areas at the wide gaps between its saved pages.
func (st *processState) planGroup(i, j int, cur *cursor) {
	add := func(start, end uint64, kind scanKind) {
		if start >= end {
			return
		}
		a, b := i, j
		for st.areas[a].end <= start {
			a++
		}
		for st.areas[b-1].start >= end {
			b--
		}
		st.scans = append(st.scans, scanRange{start, end, a, b, kind})
	}
	begin, end := st.areas[i].start, st.areas[j-1].end
	var saved span // the saved pages since the last wide gap
	for at := begin; at < end; {
		r, upto := cur.find(at, end)
		if r != nil {
			if saved.end == 0 || at-saved.end > widestHole {
				add(saved.start, saved.end, kindSaved)
				add(max(begin, saved.end), at, kindNew)
				saved.start = at
			}
			saved.end = upto
		}
		at = upto
	}
	add(saved.start, saved.end, kindSaved)
	add(max(begin, saved.end), end, kindNew)
}

// planMemory scans the tracked areas of a process and fills its plan. It needs no
// ptrace and may run on any thread. The list of shared pages is added to: a scan of shared
// areas protects them at once, so what a first scan has found a second one would not.
func (p *process) planMemory(st *processState, diff []span) error {
	p.writes.reset()
	cur := cursor{runs: st.runs}
	for i := range st.areas {
		if st.areas[i].untrack {
			p.putUntracked(&st.areas[i], &cur)
		}
	}
	for _, r := range st.scans {
		if r.kind == kindSealed && p.seals != st.seals { // made again since: it may have other seals
			if err := p.scanRow(st, r, &cur); err != nil {
				return err
			}
			continue
		}
		if err := p.scan(st, r, &cur); err != nil {
			return err
		}
	}
	p.planSpans(st, diff, p.writes.seen, inMemory)
	return nil
}

// scanRow scans the areas of a row one by one.
func (p *process) scanRow(st *processState, r scanRange, cur *cursor) error {
	for i := r.i; i < r.j; i++ {
		if a := &st.areas[i]; a.tracked {
			if err := p.scan(st, scanRange{a.start, a.end, i, i + 1, kindSaved}, cur); err != nil {
				return err
			}
		}
	}
	return nil
}

// putUntracked plans to write an area back of which nobody knows whether it has changed.
func (p *process) putUntracked(a *area, cur *cursor) {
	for at := a.start; at < a.end; {
		r, upto := cur.find(at, a.end)
		if r != nil {
			p.writes.slow = append(p.writes.slow, copyOp{at, uint64(r.first) + (at-r.addr)>>pageShift, upto - at})
		}
		at = upto
	}
}

// planRemapped plans for stretches that were mapped again and are all holes, and for the heap, part of which may be.
func (p *process) planRemapped(st *processState, holes []span, heap bool) error {
	p.planSpans(st, holes, nil, 0)
	if !heap {
		return nil
	}
	cur := cursor{runs: st.runs}
	for i := range st.areas {
		if a := &st.areas[i]; a.tracked && a.name == "[heap]" {
			if err := p.scan(st, scanRange{a.start, a.end, i, i + 1, kindSaved}, &cur); err != nil {
				return err
			}
		}
	}
	return nil
}

// manyRegions is for how many regions a scan is given room. The kernel allocates as much
// for itself each time; if there are more the scan goes on where it was.
const manyRegions = 96

// scan looks for what has changed in a range.
func (p *process) scan(st *processState, sr scanRange, cur *cursor) error {
	w := &p.writes
	sel := sr.kind.selector()
	room := min(manyRegions, (sr.end-sr.start)>>pageShift)
	k, again := sr.i, false
	for at := sr.start; at < sr.end; {
		sel.Start, sel.End = at, sr.end
		n, e := uapi.Scan(p.pagemap, &sel, w.vec[:room])
		if e == uapi.EPERM && !again {
			again = true
			if err := p.trackAgain(st, sr); err != nil {
				return err
			}
			continue
		}
		if e != 0 {
			return fail(ReasonMemory, "scan %#x-%#x (%s) of process %d: %v", sr.start, sr.end, st.areas[sr.i].name, p.pid, e)
		}
		for _, r := range w.vec[:n] {
			if sr.kind == kindShared {
				w.planShared(&st.areas[sr.i], r)
				continue
			}
			k = p.planRegion(st, k, sr.i, sr.j, r, cur)
			if exists(r.Categories) {
				w.seen = append(w.seen, span{r.Start, r.End})
			}
		}
		if sel.WalkEnd <= at {
			break
		}
		at = sel.WalkEnd
	}
	return nil
}

// trackAgain tracks areas that were unmapped and mapped again with equal attributes, which
// the maps do not show: what is there now is not tracked.
func (p *process) trackAgain(st *processState, sr scanRange) error {
	p.writes.onlyRseq = false
	for x := sr.i; x < sr.j; x++ {
		if err := p.register(st.areas[x].start, st.areas[x].end); err != nil {
			return err
		}
		if o := st.areas[x].object; o != nil {
			o.full = true
		}
	}
	return nil
}
