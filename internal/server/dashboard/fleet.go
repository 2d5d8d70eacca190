package dashboard

import (
	"fmt"
	"math"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pommelgym/pommel/gym"
)

// health is how the worlds and the server do.
type health struct {
	At       time.Time    `json:"at"`
	Worlds   int          `json:"worlds"`
	Free     int          `json:"free"`
	Driver   string       `json:"driver"`
	Episodes []counted    `json:"episodes"` // by outcome
	Calls    []histogram  `json:"calls"`    // surface, call, kind
	Parts    []histogram  `json:"parts"`    // act, observe, judge, reset
	Gauges   []counted    `json:"gauges"`
	Lately   lately       `json:"lately"`
	Leases   []leaseState `json:"leases"`
}

type counted struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// histogram is one of Prometheus: Counts[i] are the observations up to Bounds[i], in seconds.
type histogram struct {
	Labels map[string]string `json:"labels"`
	Bounds []float64         `json:"bounds"`
	Counts []uint64          `json:"counts"`
	Count  uint64            `json:"count"`
	Sum    float64           `json:"sum"`
}

type leaseState struct {
	Episode string `json:"episode"`
	Task    string `json:"task"`
	Client  string `json:"client,omitempty"`
	Busy    bool   `json:"busy"`
	LeaseMS int64  `json:"lease_ms"`
	LeftMS  int64  `json:"left_ms"`
}

func (h *Handler) fleet(*http.Request) (any, error) {
	out := health{At: time.Now().UTC(), Episodes: []counted{}, Calls: []histogram{}, Parts: []histogram{}, Gauges: []counted{}, Leases: []leaseState{}, Lately: h.book.lately()}
	if h.cfg.Sessions != nil {
		d := h.cfg.Sessions.Describe()
		out.Worlds, out.Free, out.Driver = d.Worlds, d.Free, d.Driver
		for _, l := range h.cfg.Sessions.Held() {
			out.Leases = append(out.Leases, h.lease(l))
		}
	}
	if h.cfg.Metrics == nil {
		return out, nil
	}
	families, err := h.cfg.Metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	for _, f := range families {
		out.take(f)
	}
	return out, nil
}

func (h *Handler) lease(l gym.Held) leaseState {
	s := leaseState{Episode: l.EpisodeID, Busy: l.Busy, LeaseMS: l.Lease.Milliseconds(), LeftMS: max(0, time.Until(l.Expires).Milliseconds())}
	if f, ok := h.book.film(l.EpisodeID); ok {
		s.Task, s.Client = f.Head.Task, f.Head.Client
	}
	return s
}

// gauges are those worth a number on the page.
var gauges = map[string]string{
	"pommel_streams": "streams", "pommel_sockets": "sockets", "go_goroutines": "goroutines",
	"process_resident_memory_bytes": "server_memory_bytes", "process_cpu_seconds_total": "server_cpu_seconds", "process_start_time_seconds": "started",
}

func (h *health) take(f *dto.MetricFamily) {
	for _, m := range f.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		switch name := f.GetName(); {
		case name == "pommel_episodes_total":
			h.Episodes = append(h.Episodes, counted{labels["outcome"], m.GetCounter().GetValue()})
		case name == "pommel_call_seconds":
			h.Calls = append(h.Calls, histogramOf(labels, m.GetHistogram()))
		case name == "pommel_step_part_seconds":
			h.Parts = append(h.Parts, histogramOf(labels, m.GetHistogram()))
		case gauges[name] != "":
			h.Gauges = append(h.Gauges, counted{gauges[name], m.GetGauge().GetValue() + m.GetCounter().GetValue()})
		}
	}
}

func histogramOf(labels map[string]string, m *dto.Histogram) histogram {
	h := histogram{Labels: labels, Count: m.GetSampleCount(), Sum: m.GetSampleSum()}
	for _, b := range m.GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 0) {
			h.Bounds, h.Counts = append(h.Bounds, b.GetUpperBound()), append(h.Counts, b.GetCumulativeCount())
		}
	}
	return h
}
