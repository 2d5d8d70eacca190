// Package spans tells a collector of OpenTelemetry about resets and steps: one span each,
// with where its time went as spans below. A caller that sends a traceparent header gets
// them below its own.
//
// Spans hold no answers, no texts of pages and no arguments of actions: a collector is
// read by more people than a gym.
package spans

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server/wire"
	"github.com/pommelgym/pommel/internal/version"
)

// Enabled says that the environment names a collector.
func Enabled(getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Exporter sends spans to the collector that the environment names, over HTTP, in batches
// and from a goroutine of its own: a collector that is slow or gone holds nothing up.
// Close what it returns with Shutdown.
func Exporter(ctx context.Context, o ...otlptracehttp.Option) (*sdk.TracerProvider, error) {
	exporter, err := otlptracehttp.New(ctx, o...)
	if err != nil {
		return nil, fmt.Errorf("open the exporter of spans: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "pommel"), attribute.String("service.version", version.String()), attribute.String("host.name", host)),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before ours
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("describe the source of spans: %w", err), exporter.Shutdown(ctx))
	}
	return sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about)), nil
}

// Spans makes the spans of one server.
type Spans struct {
	tracer trace.Tracer
	on     bool
}

// New makes spans of a provider; with none it makes nothing, at no cost.
func New(p trace.TracerProvider) *Spans {
	if p == nil {
		p = noop.NewTracerProvider()
		return &Spans{tracer: p.Tracer("")}
	}
	return &Spans{tracer: p.Tracer("github.com/pommelgym/pommel"), on: true}
}

// Handler takes the caller's trace out of a request's headers.
func (s *Spans) Handler(next http.Handler) http.Handler {
	if !s.on {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Reset begins the span of a reset. end takes what came of it.
func (s *Spans) Reset(ctx context.Context, r gym.SessionRequest) (_ context.Context, end func(*gym.Result, error)) {
	if !s.on {
		return ctx, func(*gym.Result, error) {}
	}
	ctx, span := s.tracer.Start(ctx, "pommel.reset", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("pommel.task", r.Task), attribute.Int64("pommel.seed", r.Seed), attribute.String("pommel.profile", r.Profile), attribute.String("pommel.client", r.Client)))
	return ctx, func(res *gym.Result, err error) { s.end(ctx, span, res, err) }
}

// Step begins the span of a step.
func (s *Spans) Step(ctx context.Context, id, action string) (_ context.Context, end func(*gym.Result, error)) {
	if !s.on {
		return ctx, func(*gym.Result, error) {}
	}
	ctx, span := s.tracer.Start(ctx, "pommel.step", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("pommel.episode", id), attribute.String("pommel.action", verb(action))))
	return ctx, func(res *gym.Result, err error) { s.end(ctx, span, res, err) }
}

// verb is the name of the first action: what follows may be a password.
func verb(action string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(action), "(")
	for _, r := range name {
		if r != '_' && (r < 'a' || r > 'z') {
			return "?"
		}
	}
	return name
}

func (s *Spans) end(ctx context.Context, span trace.Span, res *gym.Result, err error) {
	defer span.End()
	if err != nil {
		e := wire.ErrorOf(err)
		span.SetStatus(codes.Error, string(e.Kind))
		span.SetAttributes(attribute.String("error.type", string(e.Kind)))
		return
	}
	span.SetAttributes(attribute.String("pommel.episode", res.EpisodeID), attribute.Int("pommel.step", res.Step), attribute.Float64("pommel.reward", res.Reward),
		attribute.Bool("pommel.done", res.Done()), attribute.Bool("pommel.success", res.Info.Success))
	if o := res.Observation; o != nil && o.LastActionError != nil {
		span.SetAttributes(attribute.String("pommel.action_error", string(o.LastActionError.Kind)))
	}
	s.parts(ctx, res.Info.Timing)
}

// parts are where the time went. Observing and judging begin together, when the action is done.
func (s *Spans) parts(ctx context.Context, t gym.Timing) {
	ms := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
	begin := time.Now().Add(-ms(t.TotalMS))
	acted := begin.Add(ms(t.ActMS))
	for _, p := range []struct {
		name string
		from time.Time
		took float64
	}{{"act", begin, t.ActMS}, {"observe", acted, t.ObserveMS}, {"judge", acted, t.JudgeMS}} {
		if p.took <= 0 {
			continue
		}
		_, span := s.tracer.Start(ctx, "pommel."+p.name, trace.WithTimestamp(p.from))
		span.End(trace.WithTimestamp(p.from.Add(ms(p.took))))
	}
}
