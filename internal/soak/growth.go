package soak

import (
	"runtime"
	"slices"

	"github.com/prometheus/procfs"
)

// What a server leaks shows in no single episode: it is looked at again and again.

// Drift is measured from after the warm-up to the end, as medians of some looks each.
type Drift struct {
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Percent float64 `json:"percent"`
}

// ServerDrift is that of the process that holds the worlds.
type ServerDrift struct {
	MemoryMB   Drift `json:"memory_mb"`
	Goroutines Drift `json:"goroutines"`
	Files      Drift `json:"open_files"`
}

const (
	// mostDrift bounds the memory of the worlds, mostGrowth whatever the server holds, in percent.
	mostDrift, mostGrowth = 2.0, 10.0
	// fewestForDrift resets are needed to judge growth: before, starts are still being kept.
	fewestForDrift = 1000
	// samples is how often one looks.
	samples = 200
)

// look is what is held at one time.
type look struct{ worldsMB, serverMB, goroutines, files float64 }

func lookAt(worldsMB float64) (look, error) {
	self, err := procfs.Self()
	if err != nil {
		return look{}, err
	}
	stat, err := self.Stat()
	if err != nil {
		return look{}, err
	}
	files, err := self.FileDescriptorsLen()
	return look{worldsMB, float64(stat.ResidentMemory()) / (1 << 20), float64(runtime.NumGoroutine()), float64(files)}, err
}

// driftOf compares looks. A tenth of them warms up; a tenth at each end of the others is taken.
func driftOf(looks []look, what func(look) float64) Drift {
	tenth := len(looks) / 10
	if tenth == 0 {
		return Drift{}
	}
	d := Drift{Start: median(looks[tenth:2*tenth], what), End: median(looks[len(looks)-tenth:], what)}
	if d.Start > 0 {
		d.Percent = 100 * (d.End - d.Start) / d.Start
	}
	return d
}

func median(looks []look, what func(look) float64) float64 {
	v := make([]float64, len(looks))
	for i, l := range looks {
		v[i] = what(l)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// grown says whether a result tells of growth that goes on.
func (r *ResetsResult) grown() bool {
	s := r.Server
	return r.Resets >= fewestForDrift &&
		(r.MemoryMB.Percent >= mostDrift || max(s.MemoryMB.Percent, s.Goroutines.Percent, s.Files.Percent) >= mostGrowth)
}
