// Package server offers a gym.Sessions to other processes: Connect, gRPC and
// gRPC-Web on one port, over HTTP/1.1 and HTTP/2 without TLS or with it.
//
// The handlers are thin. Episodes, leases, step numbers and retries are the
// Sessions' business; the server translates, bounds and guards.
//
// # Failure
//
// Every error that a Sessions returns becomes one code and one pommel.v1.Error
// as its detail; see codes for the table. On the Session stream errors are
// answers, and the stream goes on.
//
// # Lost callers
//
// The Sessions carries a step to its end even when its caller has gone, so that a
// retry gets its result. A caller that vanishes without a word loses its episode
// when the lease ends; one whose Session stream breaks loses it at once, unless
// it asked to keep it.
package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"go.opentelemetry.io/otel/trace"

	"github.com/pommelgym/pommel/gen/pommel/v1/pommelv1connect"
	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server/dashboard"
	"github.com/pommelgym/pommel/internal/server/mcp"
	"github.com/pommelgym/pommel/internal/server/metrics"
	"github.com/pommelgym/pommel/internal/server/nemo"
	"github.com/pommelgym/pommel/internal/server/openenv"
	"github.com/pommelgym/pommel/internal/server/spans"
)

const (
	// maxMessage bounds one message in either direction.
	maxMessage = 64 << 20
	// compressFrom is the size from which an answer is compressed for callers that ask for
	// it: below it the time to compress is longer than the time to send.
	compressFrom = 256 << 10
	// closeTimeout bounds the closing of a broken stream's episodes, cutTimeout how long
	// calls may still run when the server stops after its drain.
	closeTimeout = time.Minute
	cutTimeout   = 10 * time.Second
)

// Options of a server; the zero value serves on loopback without a token.
type Options struct {
	// Log receives defects and lost worlds with their private causes. Nil is silence.
	Log *slog.Logger
	// Token is what callers must send as "Authorization: Bearer <token>". It is required
	// for listening on anything but loopback and unix sockets.
	Token string
	// TLS serves HTTPS when set.
	TLS *tls.Config
	// Hosts are names under which callers without a token may address the server besides
	// those of loopback.
	Hosts []string
	// Idle is how long an OpenEnv socket may send nothing; 0 is an hour.
	Idle time.Duration
	// Traces is the folder of recorded episodes, and Training are folders of trainings: the
	// dashboard shows what is there.
	Traces   string
	Training []string
	// NoDashboard leaves the dashboard out.
	NoDashboard bool
	// Tracer receives spans of resets and steps. Nil is none.
	Tracer trace.TracerProvider
	// Drain is called when the server is told to stop. Until it returns, calls on running
	// episodes are answered and new episodes are refused. Nil is no wait.
	Drain func(context.Context) error
}

// Server is the RPC server. It is an http.Handler too, for use behind a server of one's own.
type Server struct {
	sessions gym.Sessions
	opts     Options
	log      *slog.Logger
	metrics  *metrics.Metrics
	openenv  *openenv.Handler
	mcp      *mcp.Server
	nemo     *nemo.Handler
	spans    *spans.Spans
	// dashboard is for people, and for the trainer's side only.
	dashboard *dashboard.Handler
	agents    agents
	ends      seen
	handler   http.Handler
	// wait waits for what the HTTP server does not know of; nil for nothing.
	wait func(context.Context) error
	// draining: no new episodes. stopping is closed after it: streams end after the call they are in.
	draining atomic.Bool
	stopping chan struct{}
	stop     sync.Once
}

// New makes a server over sessions. It holds nothing that needs closing until it listens.
func New(sessions gym.Sessions, opts Options) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		opts:     opts,
		log:      opts.Log,
		agents:   newAgents(),
		spans:    spans.New(opts.Tracer),
		stopping: make(chan struct{}),
	}
	s.sessions = gate{Sessions: sessions, s: s}
	s.metrics = metrics.New(sessions.Describe, func() int { return s.openenv.Active() })
	s.openenv = openenv.New(openenv.Config{
		Sessions: s.sessions, Log: s.log, Count: s.metrics.Surface("openenv"), Stopping: s.stopping, Idle: opts.Idle,
	})
	s.mcp = mcp.New(mcp.Config{
		Log: s.log, Count: s.metrics.Surface("mcp"), Version: sessions.Describe().Version,
		Episode: func(_ context.Context, h http.Header) (gym.Sessions, string, error) {
			id, err := s.agents.named(h)
			return s.sessions, id, err
		},
	})
	s.nemo = nemo.New(nemo.Config{Sessions: s.sessions, Count: s.metrics.Surface("nemo"), Agent: s.agents.token})
	s.dashboard = dashboard.New(dashboard.Config{
		Sessions: sessions, Traces: opts.Traces, Training: opts.Training, Metrics: s.metrics.Gatherer(), Stopping: s.stopping, Log: s.log,
	})
	s.wait = s.openenv.Wait
	s.handler = s.guard(s.spans.Handler(s.routes()))
	return s
}

// NewViewer makes a server that runs no worlds and has nothing but the dashboard: for
// recorded episodes and trainings.
func NewViewer(opts Options) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, log: opts.Log, agents: newAgents(), stopping: make(chan struct{})}
	s.dashboard = dashboard.New(dashboard.Config{Traces: opts.Traces, Training: opts.Training, Stopping: s.stopping, Log: s.log})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	s.dashboard.Routes(mux)
	s.handler = s.guard(mux)
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func (s *Server) routes() http.Handler {
	rpc := []connect.HandlerOption{
		connect.WithReadMaxBytes(maxMessage),
		connect.WithSendMaxBytes(maxMessage),
		connect.WithCompressMinBytes(compressFrom),
		connect.WithRecover(s.recovered),
	}
	mux := http.NewServeMux()
	path, handler := pommelv1connect.NewGymServiceHandler(service{s}, rpc...)
	mux.Handle(path, handler)
	mux.Handle(pommelv1connect.GymServiceSessionProcedure, gatherWrites(handler))
	reflector := grpcreflect.NewStaticReflector(pommelv1connect.GymServiceName)
	mux.Handle(grpcreflect.NewHandlerV1(reflector))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector))
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", s.metrics.Handler())
	s.openenv.Routes(mux)
	s.nemo.Routes(mux)
	if !s.opts.NoDashboard {
		s.dashboard.Routes(mux)
	}
	mux.Handle(mcpPath, s.mcp.Handler())
	return mux
}
