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

// TestDifference compares with the worked examples of Newcombe's paper, table II, method 10.
func TestDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s1, n1, s2, n2 int
		low, high      float64
	}{
		{56, 70, 48, 80, 0.0524, 0.3339}, {9, 10, 3, 10, 0.1705, 0.8090}, {6, 7, 2, 7, 0.0582, 0.8062}, {5, 56, 0, 29, -0.0381, 0.1926}, {10, 10, 0, 10, 0.6075, 1},
	} {
		got := Difference(c.s1, c.n1, c.s2, c.n2)
		if math.Abs(got.Low-c.low) > 5e-5 || math.Abs(got.High-c.high) > 5e-5 {
			t.Errorf("%d/%d - %d/%d = %.4f to %.4f, want %.4f to %.4f", c.s1, c.n1, c.s2, c.n2, got.Low, got.High, c.low, c.high)
		}
	}
	if got := Difference(0, 0, 1, 2); got != (Interval{Low: -1, High: 1}) {
		t.Errorf("without episodes: %+v", got)
	}
}
