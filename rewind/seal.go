package rewind

import (
	"strings"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Most of what a process has mapped are its shared libraries: dozens, with five areas each.
// Sealed (mseal), they can neither be unmapped nor mapped anew nor protected differently, so
// that no rewind has to ask the kernel about them, and what is written to them is found by
// one scan over a row of them instead of one for each.

// seals are the rows of library areas of a process that are sealed. They never change; a
// state that was saved with them has its areas there as they are.
type seals struct{ rows []span }

// seal seals the libraries of a process, once. Where the kernel cannot, nothing is sealed.
func (t *Tree) seal(p *process, tk *task, st *processState) error {
	if !t.opt.Seal || p.seals != nil {
		return nil
	}
	rows := libraries(st)
	if len(rows) > maxCalls-8 {
		rows = rows[:maxCalls-8]
	}
	b := p.batch()
	for _, r := range rows {
		b.add(uapi.SysMseal, r.start, r.end-r.start, 0)
	}
	if err := t.run(tk, b); err != nil {
		return err
	}
	p.seals = &seals{}
	for i, c := range b.calls[:len(rows)] {
		if c.ret == 0 {
			p.seals.rows = append(p.seals.rows, rows[i])
		}
	}
	return nil
}

// libraries finds the rows of adjoining areas that belong to shared libraries.
//
// The program's own file is left out: browsers protect parts of it differently at times, and
// JavaScript engines map parts of it anew. So is memory without a file: a thread's stack may lie beside a library, and the C library
// ends a program whose stacks it cannot give back.
func libraries(st *processState) (rows []span) {
	for i := range st.areas {
		a := &st.areas[i]
		if a.shared || a.ino == 0 || !isLibrary(a.name) {
			continue
		}
		if k := len(rows); k > 0 && rows[k-1].end == a.start {
			rows[k-1].end = a.end
			continue
		}
		rows = append(rows, span{a.start, a.end})
	}
	return rows
}

// isLibrary goes by the name: libc.so.6, libz.so, ld-linux-x86-64.so.2.
func isLibrary(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return strings.HasSuffix(name, ".so") || strings.Contains(name, ".so.") && !strings.HasSuffix(name, " (deleted)")
}

// sealedRows are the rows that were sealed when a state was saved.
func (st *processState) sealedRows() []span {
	if st.seals == nil {
		return nil
	}
	return st.seals.rows
}

// sealed are the rows of a state's areas that need not be looked at.
func (p *process) sealed(st *processState) []span {
	if p.seals != st.seals {
		return nil
	}
	return st.sealedRows()
}
