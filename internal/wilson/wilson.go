// Package wilson says how sure a success rate is.
package wilson

import "math"

// Interval holds the true rate with 95 % confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// z is the normal distribution's quantile for 95 %, two-sided.
const z = 1.959963984540054

// Of is the score interval of Wilson, "Probable Inference, the Law of Succession, and
// Statistical Inference", JASA 22 (1927): unlike the textbook interval it holds for few
// episodes and for rates near 0 and 1. Without episodes it is 0 to 1.
func Of(success, n int) Interval {
	if n == 0 {
		return Interval{0, 1}
	}
	m := float64(n)
	p := float64(success) / m
	centre := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Interval{Low: max(0, (centre-half)/(1+z*z/m)), High: min(1, (centre+half)/(1+z*z/m))}
}

// Difference holds the true difference of two rates, the first less the second, with 95 %
// confidence: method 10 of Newcombe, "Interval estimation for the difference between
// independent proportions", Statistics in Medicine 17 (1998), which is made of two intervals
// of Wilson. Without episodes on either side it is -1 to 1.
func Difference(success1, n1, success2, n2 int) Interval {
	if n1 == 0 || n2 == 0 {
		return Interval{-1, 1}
	}
	p1, p2 := float64(success1)/float64(n1), float64(success2)/float64(n2)
	i1, i2 := Of(success1, n1), Of(success2, n2)
	d := p1 - p2
	return Interval{Low: d - math.Hypot(p1-i1.Low, i2.High-p2), High: d + math.Hypot(i1.High-p1, p2-i2.Low)}
}
