package dashboard

import (
	"slices"

	"github.com/pommelgym/pommel/gym"
)

// slowest remembers the times of the last steps.
type slowest struct {
	ring []timed
	next int
}

const (
	rememberSteps = 1000
	tellSlowest   = 15
)

// timed is one step's time.
type timed struct {
	Episode string     `json:"episode"`
	Index   int        `json:"index"`
	Action  string     `json:"action"`
	URL     string     `json:"url"`
	Timing  gym.Timing `json:"timing"`
}

func (s *slowest) add(id string, r row) {
	t := timed{Episode: id, Index: r.Index, Action: r.Action, URL: r.URL, Timing: r.Timing}
	if len(s.ring) < rememberSteps {
		s.ring = append(s.ring, t)
		return
	}
	s.ring[s.next] = t
	s.next = (s.next + 1) % rememberSteps
}

// spread are quantiles of a list of times in milliseconds.
type spread struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func spreadOf(ms []float64) spread {
	if len(ms) == 0 {
		return spread{}
	}
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	return spread{N: len(ms), P50: at(.5), P90: at(.9), P99: at(.99), Max: ms[len(ms)-1]}
}

// lately is what the last steps took.
type lately struct {
	Total   spread  `json:"total"`
	Act     spread  `json:"act"`
	Observe spread  `json:"observe"`
	Judge   spread  `json:"judge"`
	Slowest []timed `json:"slowest"`
}

func (b *Book) lately() lately {
	b.mu.Lock()
	ring := slices.Clone(b.slow.ring)
	b.mu.Unlock()
	of := func(f func(gym.Timing) float64) spread {
		var ms []float64
		for _, t := range ring {
			ms = append(ms, f(t.Timing))
		}
		return spreadOf(ms)
	}
	l := lately{
		Total:   of(func(t gym.Timing) float64 { return t.TotalMS }),
		Act:     of(func(t gym.Timing) float64 { return t.ActMS }),
		Observe: of(func(t gym.Timing) float64 { return t.ObserveMS }),
		Judge:   of(func(t gym.Timing) float64 { return t.JudgeMS }),
	}
	slices.SortStableFunc(ring, func(a, b timed) int {
		switch {
		case a.Timing.TotalMS > b.Timing.TotalMS:
			return -1
		case a.Timing.TotalMS < b.Timing.TotalMS:
			return 1
		}
		return 0
	})
	l.Slowest = append([]timed{}, ring[:min(len(ring), tellSlowest)]...)
	return l
}
