package world

import (
	"path/filepath"
	"testing"
)

// TestOddDraws: a world unlike the others is told, and a host that changed is learnt.
func TestOddDraws(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "drawn")
	var today, tomorrow draws
	for i, c := range []struct {
		d    *draws
		draw string
		odd  bool
	}{
		{&today, "a", false}, {&today, "a", false}, {&today, "b", true}, {&today, "a", false},
		{&tomorrow, "a", false}, {&tomorrow, "c", true}, {&tomorrow, "c", false}, {&tomorrow, "c", false}, {&tomorrow, "a", true},
	} {
		odd, err := c.d.compare(file, c.draw)
		if err != nil {
			t.Fatal(err)
		}
		if (odd != "") != c.odd {
			t.Errorf("draw %d, %s: odd %q, expected %v", i, c.draw, odd, c.odd)
		}
	}
}
