package rewind

import (
	"github.com/pommelgym/pommel/internal/uapi"
)

// copyOp tells the machine code to copy saved pages, or to clear pages; the layout is its own.
type copyOp struct{ dst, src, n uint64 }

// span is a stretch of addresses.
type span struct{ start, end uint64 }

// plan is what a scan of a process's memory says has to be done to it.
type plan struct {
	copies []copyOp
	slow   []copyOp // into areas that cannot be written; src is a page of the arena, n in bytes
	drops  []span
	armed  []span // areas in which something was written
	seen   []span // what the scan has reported
	shared []sharedPage
	vec    []uapi.PageRegion

	written, zeroed, dropped int
	onlyRseq                 bool
}

type sharedPage struct {
	o    *object
	page int
}

// longestZeroed is the longest row of new pages, in bytes, that is cleared rather than
// given back: cleared pages cost no fault when the next episode uses them.
const longestZeroed = 64 * pageSize

func (w *plan) reset() {
	w.copies, w.slow, w.drops, w.armed, w.seen = w.copies[:0], w.slow[:0], w.drops[:0], w.armed[:0], w.seen[:0]
	w.written, w.zeroed, w.dropped, w.onlyRseq = 0, 0, 0, true
	if w.vec == nil {
		w.vec = make([]uapi.PageRegion, manyRegions)
	}
}

func (w *plan) planShared(a *area, r uapi.PageRegion) {
	w.onlyRseq = false
	for x := r.Start; x < r.End; x += pageSize {
		w.shared = append(w.shared, sharedPage{a.object, int((x - a.start + a.off) >> pageShift)})
	}
}

// planRegion splits a region by area; k is the area where the last one ended.
func (p *process) planRegion(st *processState, k, i, j int, r uapi.PageRegion, cur *cursor) int {
	for at := r.Start; at < r.End; {
		for k > i && st.areas[k].start > at {
			k--
		}
		for k < j-1 && st.areas[k].end <= at {
			k++
		}
		a := &st.areas[k]
		end := min(r.End, a.end)
		p.planStretch(st, a, at, end, r.Categories, cur)
		at = end
	}
	return k
}

// exists says whether a page holds something. The kernel shows its notes about pages
// that are not there ("if one comes, protect it") as swapped pages that were not written.
func exists(cat uint64) bool {
	const swappedOut = uapi.PageIsSwapped | uapi.PageIsWritten
	return cat&uapi.PageIsPresent != 0 || cat&swappedOut == swappedOut
}

// planStretch decides about a stretch within one area.
func (p *process) planStretch(st *processState, a *area, at, end, cat uint64, cur *cursor) {
	w := &p.writes
	here := exists(cat)
	if here {
		w.touched(a.start, a.end)
		if w.onlyRseq && !st.onlyRseq(at, end) {
			w.onlyRseq = false
		}
	}
	for at < end {
		r, upto := cur.find(at, end)
		if r != nil {
			p.putPages(a, at, upto, r.pageAt(at))
			w.touched(a.start, a.end)
			if !here {
				w.onlyRseq = false
			}
		} else if here && cat&uapi.PageIsPfnZero == 0 {
			p.forget(a, at, upto)
		}
		at = upto
	}
}

// putPages plans to write saved pages back.
func (p *process) putPages(a *area, at, end uint64, page uint32) {
	w := &p.writes
	w.written += int((end - at) >> pageShift)
	if !a.writable() {
		w.slow = append(w.slow, copyOp{at, uint64(page), end - at})
		return
	}
	src := p.arena.inTracee(page)
	if k := len(w.copies); k > 0 {
		if l := &w.copies[k-1]; l.src != 0 && l.dst+l.n == at && l.src+l.n == src {
			l.n += end - at
			return
		}
	}
	w.copies = append(w.copies, copyOp{at, src, end - at})
}

// forget plans to make pages as good as new.
func (p *process) forget(a *area, at, end uint64) {
	w := &p.writes
	if a.ino == 0 && a.writable() && end-at <= longestZeroed {
		w.zeroed += int((end - at) >> pageShift)
		w.copies = append(w.copies, copyOp{at, 0, end - at})
		return
	}
	w.dropped += int((end - at) >> pageShift)
	w.drops = append(w.drops, span{at, end})
}

// touched notes an area that has to be armed again; adjoining ones are joined.
func (w *plan) touched(start, end uint64) {
	if k := len(w.armed); k > 0 {
		l := &w.armed[k-1]
		if start >= l.start && end <= l.end {
			return
		}
		if l.end == start {
			l.end = end
			return
		}
	}
	w.armed = append(w.armed, span{start, end})
}

// planSpans plans stretches that no scan has reported as they are: there the wanted state
// differs from the one that tracking is relative to, or everything was mapped anew. Both
// the stretches and those that a scan has reported, which are planned already, ascend.
func (p *process) planSpans(st *processState, list, seen []span, cat uint64) {
	cur, k := cursor{runs: st.runs}, 0
	for _, d := range list {
		for at := d.start; at < d.end; {
			for len(seen) > 0 && seen[0].end <= at {
				seen = seen[1:]
			}
			end := d.end
			if len(seen) > 0 {
				if seen[0].start <= at {
					at = min(seen[0].end, end)
					continue
				}
				end = min(end, seen[0].start)
			}
			k = p.planSpan(st, k, span{at, end}, cat, &cur)
			at = end
		}
	}
}

// planSpan plans one stretch, which begins in no area before the k-th; it answers where the next one may.
func (p *process) planSpan(st *processState, k int, d span, cat uint64, cur *cursor) int {
	for k < len(st.areas) && st.areas[k].end <= d.start {
		k++
	}
	for i := k; i < len(st.areas) && st.areas[i].start < d.end; i++ {
		a := &st.areas[i]
		if !a.tracked || a.shared {
			continue
		}
		p.writes.onlyRseq = false
		p.planStretch(st, a, max(a.start, d.start), min(a.end, d.end), cat, cur)
	}
	return k
}

// onlyRseq says whether all pages of a stretch hold a thread's restartable sequence,
// which the kernel itself writes: they prove no activity.
func (st *processState) onlyRseq(at, end uint64) bool {
	for ; at < end; at += pageSize {
		found := false
		for _, th := range st.threads {
			if th.rseq.Ptr&^(pageSize-1) == at {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// diffRuns lists the stretches in which two states of a process keep different pages.
func diffRuns(from, to []run, out []span) []span {
	add := func(a, b uint64) {
		if k := len(out); k > 0 && out[k-1].end == a {
			out[k-1].end = b
			return
		}
		out = append(out, span{a, b})
	}
	ca, cb := cursor{runs: from}, cursor{runs: to}
	for at := uint64(0); ; {
		ra, ua := ca.find(at, ^uint64(0))
		rb, ub := cb.find(at, ^uint64(0))
		if ca.i >= len(from) && cb.i >= len(to) {
			return out
		}
		end := min(ua, ub)
		switch {
		case ra == nil && rb == nil:
		case ra != nil && rb != nil && ra.pageAt(at) == rb.pageAt(at):
		default:
			add(at, end)
		}
		at = end
	}
}
