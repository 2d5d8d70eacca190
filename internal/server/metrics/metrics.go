// Package metrics counts what the server does, for Prometheus.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// buckets are in seconds: steps take milliseconds, resets up to seconds.
var buckets = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60}

// Metrics are one server's. There is no registry beside its own.
type Metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.HistogramVec
	parts    *prometheus.HistogramVec
	episodes *prometheus.CounterVec
	streams  prometheus.Gauge
}

// New makes the metrics of a server that runs what describe tells. sockets is the number
// of open OpenEnv sockets.
func New(describe func() gym.Description, sockets func() int) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pommel_call_seconds", Help: "Time of calls, by surface, call and kind of error (empty: success).", Buckets: buckets,
		}, []string{"surface", "call", "kind"}),
		parts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pommel_step_part_seconds", Help: "Where the time of steps and resets goes: act, observe, judge, reset.", Buckets: buckets,
		}, []string{"part"}),
		episodes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pommel_episodes_total", Help: "Episodes by what became of them: started, succeeded, failed, truncated, void.",
		}, []string{"outcome"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pommel_streams", Help: "Session streams that are open."}),
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	d := describe()
	m.registry.MustRegister(
		m.calls, m.parts, m.episodes, m.streams,
		gauge("pommel_worlds", "Worlds that this server runs.", func() float64 { return float64(describe().Worlds) }),
		gauge("pommel_worlds_free", "Worlds that are ready for an episode.", func() float64 { return float64(describe().Free) }),
		gauge("pommel_sockets", "OpenEnv sockets that are open.", func() float64 { return float64(sockets()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pommel_info", Help: "Always 1; the labels tell what runs.",
			ConstLabels: prometheus.Labels{"version": d.Version, "world": d.World, "driver": d.Driver},
		}, func() float64 { return 1 }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Gatherer gives the metrics to who reads them in this process.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Count adds one call.
func (m *Metrics) Count(surface, call string, err error, took time.Duration) {
	kind := ""
	if err != nil {
		kind = string(wire.ErrorOf(err).Kind)
	}
	m.calls.WithLabelValues(surface, call, kind).Observe(took.Seconds())
}

// Surface is Count for one surface.
func (m *Metrics) Surface(name string) func(call string, err error, took time.Duration) {
	return func(call string, err error, took time.Duration) { m.Count(name, call, err, took) }
}

// Stream counts one Session stream until the function that it returns is called.
func (m *Metrics) Stream() (done func()) {
	m.streams.Inc()
	return m.streams.Dec
}

// Episode counts an outcome.
func (m *Metrics) Episode(outcome string) { m.episodes.WithLabelValues(outcome).Inc() }

// Part observes where the time of a result went.
func (m *Metrics) Part(t gym.Timing) {
	for part, ms := range map[string]float64{"act": t.ActMS, "observe": t.ObserveMS, "judge": t.JudgeMS, "reset": t.ResetMS} {
		if ms > 0 {
			m.parts.WithLabelValues(part).Observe(ms / 1000)
		}
	}
}
