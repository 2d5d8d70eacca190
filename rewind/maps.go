package rewind

import (
	"bytes"
	"strings"
)

// area is one line of /proc/PID/maps.
type area struct {
	start, end, off, dev, ino uint64
	prot                      int
	shared                    bool
	name                      string

	tracked bool    // writes to it are tracked
	untrack bool    // writes to it cannot be tracked: its saved pages are written back each time
	object  *object // the shared object behind it
	keep    int     // descriptor by which it can be mapped again, or -1
}

const (
	protRead  = 1
	protWrite = 2
	protExec  = 4
)

func (a *area) writable() bool { return a.prot&protWrite != 0 }

// kernelOwned are the areas that the kernel put there; they are never touched.
func (a *area) kernelOwned() bool {
	return strings.HasPrefix(a.name, "[vvar") || a.name == "[vdso]" || a.name == "[vsyscall]" || a.name == "[uprobes]"
}

// sameMapping says that two areas map the same thing at the same place, apart from protection.
func (a *area) sameMapping(b *area) bool {
	if a.shared != b.shared || a.dev != b.dev || a.ino != b.ino {
		return false
	}
	if a.ino != 0 || a.shared {
		return a.off-a.start == b.off-b.start
	}
	return true
}

func hexField(b []byte, i int) (uint64, int) {
	var v uint64
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return v, i
		}
	}
	return v, i
}

func decField(b []byte, i int) (uint64, int) {
	var v uint64
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		v = v*10 + uint64(b[i]-'0')
	}
	return v, i
}

// parseMaps reads the text of /proc/PID/maps, appending to out. Lines that make no sense are left out.
func parseMaps(text []byte, out []area) []area {
	for len(text) > 0 {
		line := text
		if k := bytes.IndexByte(text, '\n'); k >= 0 {
			line, text = text[:k], text[k+1:]
		} else {
			text = nil
		}
		if a, ok := parseArea(line); ok {
			out = append(out, a)
		}
	}
	return out
}

func parseArea(l []byte) (area, bool) {
	a := area{keep: -1}
	var i int
	a.start, i = hexField(l, 0)
	a.end, i = hexField(l, i+1)
	if i+6 > len(l) || a.end <= a.start {
		return a, false
	}
	p := l[i+1 : i+5]
	for k, c := range []byte("rwx") {
		if p[k] == c {
			a.prot |= 1 << k
		}
	}
	a.shared = p[3] == 's'
	a.off, i = hexField(l, i+6)
	major, i := hexField(l, i+1)
	minor, i := hexField(l, i+1)
	a.dev = major<<20 | minor
	a.ino, i = decField(l, i+1)
	for i < len(l) && l[i] == ' ' {
		i++
	}
	if i < len(l) {
		a.name = string(l[i:])
	}
	return a, true
}

// wanted says whether writes to an area have to be tracked.
func (a *area) wanted() bool {
	switch {
	case a.kernelOwned():
		return false
	case a.shared:
		return a.writable()
	case a.ino == 0:
		return true // whatever its protection: programs reserve first and allow later
	}
	return a.writable()
}
