package rewind

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestProofSeesOneByte: a page that is not what the snapshot says, be it by one byte, is named.
func TestProofSeesOneByte(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startTarget(t, "sparse")
	p.ask("write")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree) // since which nothing is written
	st, arena := s.process(p.pid()), tree.procs[p.pid()].arena
	seen := 0
	for i, r := range st.runs {
		page := r.n - 1
		at := r.addr + uint64(page)<<pageShift
		// Only the program writes its data, and only when it is told to.
		if data := arena.page(r.first + page); i%10 != 0 || data[0] != 1 || !bytes.Equal(data[1:], zeroPage[1:]) {
			continue
		}
		arena.page(r.first + page)[7] ^= 1
		_, v, err := tree.Verify(context.Background(), s)
		arena.page(r.first + page)[7] ^= 1
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("page %#x", at); v.Count != 1 || !strings.Contains(v.Differences[0], want) || !strings.Contains(v.Differences[0], "from byte 7 on") {
			t.Fatalf("of a byte that differs in %s the proof says %d: %v", want, v.Count, v.Differences)
		}
		if seen++; seen == 20 {
			break
		}
	}
	if seen < 5 {
		t.Fatalf("%d pages were tried", seen)
	}
	mustVerify(t, tree, s)
}
