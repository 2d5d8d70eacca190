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
