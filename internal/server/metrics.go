package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
)

// metrics counts calls. The text that serveMetrics writes is what Prometheus reads.
type metrics struct {
	streams atomic.Int64

	mu    sync.Mutex
	calls map[callKey]*callSum
}

type callKey struct {
	call string
	kind fault.Kind // "" is success
}

type callSum struct {
	n    int64
	time time.Duration
}

func newMetrics() *metrics { return &metrics{calls: map[callKey]*callSum{}} }

func (m *metrics) count(call string, err error, d time.Duration) {
	key := callKey{call: call}
	if err != nil {
		key.kind = fault.Kind(wireError(err).GetKind())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.calls[key]
	if sum == nil {
		sum = &callSum{}
		m.calls[key] = sum
	}
	sum.n++
	sum.time += d
}

func (m *metrics) write(b *strings.Builder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(m.calls), func(a, b callKey) int {
		return strings.Compare(a.call+" "+string(a.kind), b.call+" "+string(b.kind))
	})
	b.WriteString("# HELP pommel_call_seconds Time and number of calls, by call and kind of error (empty: success).\n# TYPE pommel_call_seconds summary\n")
	for _, k := range keys {
		fmt.Fprintf(b, "pommel_call_seconds_count{call=%q,kind=%q} %d\n", k.call, k.kind, m.calls[k].n)
		fmt.Fprintf(b, "pommel_call_seconds_sum{call=%q,kind=%q} %g\n", k.call, k.kind, m.calls[k].time.Seconds())
	}
}

func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	d := s.sessions.Describe()
	gauge := func(name, help string, v int64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n%s %d\n", name, help, name, name, v)
	}
	gauge("pommel_worlds", "Worlds that this server runs.", int64(d.Worlds))
	gauge("pommel_worlds_free", "Worlds that are ready for an episode.", int64(d.Free))
	gauge("pommel_streams", "Session streams that are open.", s.metrics.streams.Load())
	s.metrics.write(&b)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String())) // a scraper that has gone needs no answer
}
