package worldclock

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Entries of the table by which the kernel tells a new program about itself.
const (
	atNull        = 0
	atRandom      = 25
	atSysinfoEhdr = 33
)

// table is that table, on the stack of a program that has not begun yet.
type table struct {
	vdso, vdsoAt uint64 // the value and the address where it stands; 0 without
	random       uint64 // where sixteen random bytes are
}

// maxStack bounds the search: arguments and environment lie elsewhere, here are pointers to them.
const maxStack = 4 << 20

// readTable walks from the top of the first stack (the number of arguments, their
// addresses, 0, those of the environment, 0) to the table behind.
func readTable(pid int, sp uint64) (t table, err error) {
	w := words{pid: pid, at: sp}
	argc, err := w.next()
	if err != nil {
		return t, err
	}
	if argc > maxStack/8 {
		return t, errors.New("the first stack makes no sense")
	}
	w.at += 8 * (argc + 1)
	w.n = 0
	for v := uint64(1); v != 0; {
		if v, err = w.next(); err != nil {
			return t, err
		}
		if w.at > sp+maxStack {
			return t, errors.New("the first stack has no end")
		}
	}
	for {
		at := w.at
		key, err := w.next()
		if err != nil {
			return t, err
		}
		value, err := w.next()
		if err != nil {
			return t, err
		}
		switch key {
		case atNull:
			return t, nil
		case atRandom:
			t.random = value
		case atSysinfoEhdr:
			t.vdso, t.vdsoAt = value, at+8
		}
	}
}

// words reads 64-bit words upwards.
type words struct {
	pid  int
	at   uint64 // of the next word
	buf  [2048]byte
	n, i int
}

func (w *words) next() (uint64, error) {
	if w.i >= w.n || w.n == 0 {
		// The stack ends with a page: what lies beyond cannot be read.
		size := min(uint64(len(w.buf)), PageSize-w.at%PageSize)
		n, e := uapi.Peek(w.pid, w.at, w.buf[:size])
		if e != 0 || n < 8 {
			return 0, fmt.Errorf("read the first stack: %w", e)
		}
		w.n, w.i = n&^7, 0
	}
	v := binary.LittleEndian.Uint64(w.buf[w.i:])
	w.i += 8
	w.at += 8
	return v, nil
}
