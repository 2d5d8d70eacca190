package wilson

import (
	"math"
	"testing"
)

// TestOf compares with values from Brown, Cai, DasGupta, "Interval Estimation for a Binomial
// Proportion", Statistical Science 2001, and with the closed form at the ends.
func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		success, n int
		low, high  float64
	}{
		{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {80, 100, 0.7112, 0.8666},
	} {
		got := Of(c.success, c.n)
		if math.Abs(got.Low-c.low) > 5e-4 || math.Abs(got.High-c.high) > 5e-4 {
			t.Errorf("%d of %d: %.4f to %.4f; expected %.4f to %.4f", c.success, c.n, got.Low, got.High, c.low, c.high)
		}
	}
}
