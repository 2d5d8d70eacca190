package stream

import "testing"

// TestValues: plans that were made once stay as they are. If this fails, every recorded
// seed means another plan.
func TestValues(t *testing.T) {
	t.Parallel()
	s := New(7, "ui.popup", 3)
	got := [3]uint64{s.Next(), s.Next(), s.Next()}
	want := [3]uint64{0x72b6a9eb4b6070b1, 0xacad42cb4be9baf6, 0x467964f7df3c8e34}
	if got != want {
		t.Errorf("stream(7, ui.popup, 3) = %#x, want %#x", got, want)
	}
}

// TestStreamsAreApart: no two neighbours share a value.
func TestStreamsAreApart(t *testing.T) {
	t.Parallel()
	seen := map[uint64]string{}
	for seed := range int64(20) {
		for _, rule := range []string{"a", "b", "ab"} {
			for point := range 20 {
				v := New(seed, rule, point).Next()
				if other, dup := seen[v]; dup {
					t.Fatalf("seed %d, rule %s, point %d draws what %s draws", seed, rule, point, other)
				}
				seen[v] = rule
			}
		}
	}
}

// TestUniform: means are where they should be.
func TestUniform(t *testing.T) {
	t.Parallel()
	sum, count := 0.0, [5]int{}
	const n = 20000
	for i := range n {
		s := New(1, "x", i)
		sum += s.Float()
		count[s.Int(5)]++
	}
	if mean := sum / n; mean < 0.49 || mean > 0.51 {
		t.Errorf("mean of Float is %v", mean)
	}
	for i, c := range count {
		if c < n/5-400 || c > n/5+400 {
			t.Errorf("Int(5) gave %d %d times of %d", i, c, n)
		}
	}
}
