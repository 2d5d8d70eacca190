package cli

import (
	"fmt"
	"strings"
)

// frictionFlags put perturbations in the way of a benchmark.
type frictionFlags struct {
	Profile string `default:"" help:"Perturbations of the episodes: the name of a built-in profile, see run. Compare with calm."`
}

// frictionBench is what perturbations did during a benchmark.
type frictionBench struct {
	Profile string `json:"profile"`
	Strikes int    `json:"strikes"`
	// HeldMS is for how long, in virtual time, requests were held.
	HeldMS int64 `json:"held_virtual_ms"`
}

// add counts a strike; delay is how long it was, if it has a length.
func (f *frictionBench) add(kind string, delay int) {
	f.Strikes++
	if strings.HasPrefix(kind, "http.") {
		f.HeldMS += int64(delay)
	}
}

// line says it in a table's footer; "" without a profile.
func (f *frictionBench) line() string {
	if f.Profile == "" {
		return ""
	}
	return fmt.Sprintf("; profile %s: %d strikes, requests held for %.1f s of virtual time", f.Profile, f.Strikes, float64(f.HeldMS)/1000)
}
