package cli

import (
	"fmt"
	"math"
	"sort"
	"time"
)

type benchCmd struct {
	Step        benchStepCmd        `cmd:"" help:"Time of one step, measured at a client over the stream RPC."`
	Reset       benchResetCmd       `cmd:"" help:"Time from Reset to the first observation, and of putting a world back."`
	Throughput  benchThroughputCmd  `cmd:"" help:"Episodes and steps per second, and CPU per step, with all worlds busy."`
	Determinism benchDeterminismCmd `cmd:"" help:"Play the same episodes again and again, and count how many different ones came of it."`
}

// spread is a set of durations in milliseconds as every benchmark reports it.
type spread struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// spreadOf sorts its argument. Percentiles are nearest-rank.
func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{}
	}
	sort.Float64s(v)
	at := func(p float64) float64 { return round(v[max(0, int(math.Ceil(p*float64(len(v))))-1)]) }
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return spread{P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: round(v[len(v)-1]), Mean: round(sum / float64(len(v)))}
}

func round(ms float64) float64 { return math.Round(ms*1000) / 1000 }

func (s spread) row(name string, n int) []string {
	f := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	return []string{name, fmt.Sprint(n), f(s.P50), f(s.P90), f(s.P99), f(s.Max), f(s.Mean)}
}

const spreadHeader = "MS|N|P50|P90|P99|MAX|MEAN"

func since(t time.Time) float64 { return ms(time.Since(t)) }
