// Package openenv speaks the protocol of OpenEnv, as its published Python client does:
// a WebSocket at /ws on which one socket is one session, and HTTP beside it.
//
// It is an adapter: episodes, leases and retries are the business of gym.Sessions. What
// is for the trainer alone (success, stages, kinds of failure) stands in the metadata
// beside the observation and never inside it, because harnesses show the observation to
// the model.
//
// # Vanished callers
//
// A socket that closes, however it closes, takes its episode with it. A caller whose
// host is gone or that stands still answers no pings; its session ends within the lease.
package openenv

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pommelgym/pommel/gym"
)

const (
	// maxFrame bounds one frame of a client.
	maxFrame = 1 << 20
	// maxPart bounds each big part of an observation, so that no page makes a frame which
	// the published client refuses (100 MB).
	maxPart = 12 << 20
	// resetWait is how long a reset waits for a free world: the published client gives up
	// after 60 s, and a wait that ends after its caller helps nobody.
	resetWait = 45 * time.Second
	// joinWait is how long a new socket waits for the place of one that is going away.
	joinWait = 5 * time.Second
	// writeLimit bounds the sending of one frame to a caller that does not read.
	writeLimit = time.Minute
	// closeLimit bounds the closing of an episode that nobody waits for.
	closeLimit = time.Minute
	// defaultIdle is how long a session may send nothing at all although its host answers pings.
	defaultIdle = time.Hour
)

// Config of a Handler.
type Config struct {
	Sessions gym.Sessions
	// Log receives what an operator should know. It must not be nil.
	Log *slog.Logger
	// Count is told of each call and how it ended; nil counts nothing.
	Count func(call string, err error, took time.Duration)
	// Stopping is closed when sessions must end.
	Stopping <-chan struct{}
	// Idle is how long a session may send nothing; 0 is an hour.
	Idle time.Duration
}

// Handler answers the routes of OpenEnv.
type Handler struct {
	cfg Config
	// places holds one token for each open socket.
	places chan struct{}
	open   sync.WaitGroup
	active atomic.Int64
	// attached are the episodes that a socket drives without owning them.
	attached sync.Map
}

// New makes a handler. As many sockets may be open as the server has worlds.
func New(c Config) *Handler {
	if c.Count == nil {
		c.Count = func(string, error, time.Duration) {}
	}
	if c.Idle == 0 {
		c.Idle = defaultIdle
	}
	return &Handler{cfg: c, places: make(chan struct{}, max(1, c.Sessions.Describe().Worlds))}
}

// Routes adds the protocol's paths to mux.
func (h *Handler) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /ws", h.serveSocket)
	mux.HandleFunc("POST /reset", h.serveReset)
	mux.HandleFunc("POST /step", h.serveStep)
	mux.HandleFunc("GET /state", h.serveState)
	mux.HandleFunc("POST /close", h.serveClose)
	mux.HandleFunc("GET /health", h.serveHealth)
	mux.HandleFunc("GET /metadata", h.serveMetadata)
	mux.HandleFunc("GET /schema", h.serveSchema)
	mux.HandleFunc("GET /openapi.json", h.serveOpenAPI)
	h.taskRoutes(mux)
}

// Active is the number of open sockets.
func (h *Handler) Active() int { return int(h.active.Load()) }

// Wait waits for the end of all sockets, which Config.Stopping begins: the HTTP server
// does not know of them any more.
func (h *Handler) Wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { h.open.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// counted runs one call and reports how it ended.
func counted[T any](h *Handler, call string, f func() (T, error)) (T, error) {
	start := time.Now()
	v, err := f()
	h.cfg.Count(call, err, time.Since(start))
	return v, err
}
