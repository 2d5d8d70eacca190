package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
)

// Site is a browser under control and a web server that only this test talks to.
type Site struct {
	*browser.Browser
	Process *Process
	URL     string
	Mux     *http.ServeMux
	tb      testing.TB
}

// NewSite starts both. Settings may be changed before the browser is opened.
func NewSite(tb testing.TB, change ...func(*browser.Config)) *Site {
	tb.Helper()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	tb.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	cfg := browser.Config{Proof: true, Seed: 7, Epoch: time.Date(2025, 3, 10, 9, 0, 0, 0, time.UTC), Allow: []string{srv.URL}}
	for _, f := range change {
		f(&cfg)
	}
	p := LaunchWith(tb, browser.FlagConfig{Allow: cfg.Allow, Width: cfg.Width, Height: cfg.Height, Scale: cfg.Scale, Locale: cfg.Locale})
	b, err := browser.Open(Context(tb), p.Conn, cfg)
	if err != nil {
		tb.Fatalf("open browser: %v", err)
	}
	tb.Cleanup(func() { b.Close() })
	return &Site{Browser: b, Process: p, URL: srv.URL, Mux: mux, tb: tb}
}

// Context ends with the test, or after a generous while.
func Context(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	tb.Cleanup(cancel)
	return ctx
}

// Page serves html at a path.
func (s *Site) Page(path, html string) {
	s.Mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, html)
	})
}

// Go loads a path as the start page of an episode.
func (s *Site) Go(path string) {
	s.tb.Helper()
	if err := s.Navigate(Context(s.tb), s.URL+path); err != nil {
		s.tb.Fatalf("navigate to %s: %v", path, err)
	}
}

// Do carries out actions; only a fault of the machinery ends the test.
func (s *Site) Do(text string) browser.Outcome {
	s.tb.Helper()
	calls, err := action.Parse(text)
	if err != nil {
		s.tb.Fatalf("parse %s: %v", text, err)
	}
	out, err := s.Browser.Do(Context(s.tb), calls)
	if err != nil {
		s.tb.Fatalf("%s: %v", text, err)
	}
	return out
}

// OK carries out actions that must succeed.
func (s *Site) OK(text string) browser.Outcome {
	s.tb.Helper()
	out := s.Do(text)
	if out.Err != nil {
		s.tb.Fatalf("%s: %v", text, out.Err)
	}
	return out
}

// Fails carries out an action that must fail in a certain way.
func (s *Site) Fails(kind action.ErrorKind, text string) *action.Error {
	s.tb.Helper()
	out := s.Do(text)
	if out.Err == nil || out.Err.Kind != kind {
		s.tb.Fatalf("%s: got %v, want %s", text, out.Err, kind)
	}
	return out.Err
}

// See observes.
func (s *Site) See(v browser.View) *browser.Observation {
	s.tb.Helper()
	o, err := s.Observe(Context(s.tb), v)
	if err != nil {
		s.tb.Fatalf("observe: %v", err)
	}
	return o
}
