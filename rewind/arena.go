package rewind

import (
	"fmt"

	"github.com/pommelgym/pommel/internal/uapi"
)

// arenaSize is the room for saved pages; only what is written takes memory.
const arenaSize = 8 << 30

// arena keeps saved pages in a file in memory, outside the Go heap. A process's arena
// is also mapped, for reading only, into the process itself, which then copies its own
// pages back faster than anybody else could write them. Pages are counted: the
// snapshots of a tree share what is equal between them.
type arena struct {
	fd   int
	mem  []byte
	at   uint64 // where it is mapped in the process, 0 if it is not
	top  uint32 // first page never used
	refs []int32
	free []pageRun
}

// pageRun is a row of pages in an arena.
type pageRun struct{ first, n uint32 }

func newArena(name string) (*arena, error) {
	fd, err := uapi.Memfd(name, arenaSize)
	if err != nil {
		return nil, fmt.Errorf("make a file for saved pages: %w", err)
	}
	mem, err := uapi.MapShared(fd, arenaSize, true)
	if err != nil {
		uapi.Close(fd)
		return nil, fmt.Errorf("map the file of saved pages: %w", err)
	}
	return &arena{fd: fd, mem: mem}, nil
}

func (a *arena) close() {
	if a == nil || a.mem == nil {
		return
	}
	_ = uapi.Punch(a.fd, 0, arenaSize) // the process may still have it mapped
	_ = uapi.Unmap(a.mem)
	uapi.Close(a.fd)
	a.mem = nil
}

// alloc finds room for up to n pages in a row; it may give fewer.
func (a *arena) alloc(n uint32) (pageRun, error) {
	if k := len(a.free); k > 0 {
		r := a.free[k-1]
		if r.n > n {
			a.free[k-1] = pageRun{r.first + n, r.n - n}
			r.n = n
		} else {
			a.free = a.free[:k-1]
		}
		a.hold(r, 1)
		return r, nil
	}
	if uint64(a.top)+uint64(n) > arenaSize/pageSize {
		return pageRun{}, fail(ReasonMemory, "more than %d GB of saved pages in one process", arenaSize>>30)
	}
	r := pageRun{a.top, n}
	a.top += n
	for len(a.refs) < int(a.top) {
		a.refs = append(a.refs, 0)
	}
	a.hold(r, 1)
	return r, nil
}

func (a *arena) hold(r pageRun, by int32) {
	for i := r.first; i < r.first+r.n; i++ {
		a.refs[i] += by
	}
}

// release takes one count off each page and gives the unused ones back to the kernel.
func (a *arena) release(r pageRun) {
	a.hold(r, -1)
	for i := r.first; i < r.first+r.n; {
		j := i
		for j < r.first+r.n && a.refs[j] == 0 {
			j++
		}
		if j > i {
			a.free = append(a.free, pageRun{i, j - i})
			_ = uapi.Punch(a.fd, int64(i)<<pageShift, int64(j-i)<<pageShift)
			i = j
			continue
		}
		i++
	}
}

func (a *arena) bytes(r pageRun) []byte {
	return a.mem[uint64(r.first)<<pageShift : uint64(r.first+r.n)<<pageShift]
}

func (a *arena) page(i uint32) []byte {
	o := uint64(i) << pageShift
	return a.mem[o : o+pageSize : o+pageSize]
}

// inTracee is the address of a saved page as the process sees it.
func (a *arena) inTracee(page uint32) uint64 { return a.at + uint64(page)<<pageShift }
