package server

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/internal/server/spans"
)

// collected is a collector that keeps what it is sent.
type collected struct {
	mu    sync.Mutex
	spans []*otlp.Span // guarded by mu
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if in, err = gzip.NewReader(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	body, err := io.ReadAll(in)
	var req collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &req) != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func attributes(s *otlp.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.GetAttributes() {
		out[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return out
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// TestSpansOfAnEpisode: they reach a collector, stand below the caller's own, and tell no
// secrets.
func TestSpansOfAnEpisode(t *testing.T) {
	t.Parallel()
	got := &collected{}
	at := httptest.NewServer(got)
	t.Cleanup(at.Close)
	p, err := spans.Exporter(t.Context(), otlptracehttp.WithEndpointURL(at.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(t, newScripted(t, script{}), Options{Tracer: p}, "127.0.0.1:0")
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	c := gymClient(t, srv.url, connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			r.Header().Set("Traceparent", "00-"+trace+"-"+parent+"-01")
			return next(ctx, r)
		}
	})))
	id := mustReset(t, c, &pommelv1.ResetRequest{Task: "buy", Seed: 7}).GetEpisodeId()
	for _, action := range []string{`fill("12", "hunter2")`, `hunter2`} {
		if _, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: id, Action: action}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: "nobody", Action: "noop()"}); err == nil {
		t.Error("no error for an unknown episode")
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	var told []string
	for _, s := range got.spans {
		a := attributes(s)
		told = append(told, strings.Join([]string{s.GetName(), a["pommel.task"], a["pommel.action"], a["error.type"]}, " "))
		if hexOf(s.GetTraceId()) != trace || hexOf(s.GetParentSpanId()) != parent {
			t.Errorf("%s stands in trace %s below %s", s.GetName(), hexOf(s.GetTraceId()), hexOf(s.GetParentSpanId()))
		}
		if strings.Contains(s.String(), "hunter2") {
			t.Errorf("a span tells what was typed: %s", s)
		}
	}
	want := "pommel.reset buy  |pommel.step  fill |pommel.step  ? |pommel.step  noop not_found"
	if strings.Join(told, "|") != want {
		t.Errorf("spans = %q, want %q", told, want)
	}
}
