// Package dashboard shows people what a gym does and did: live episodes, recorded ones,
// trainings and the health of the worlds.
//
// It only looks. What it tells of live episodes is what their callers were told anyway; a
// screen is taken when somebody asks for it, between two steps, without renewing the
// lease, without moving the page's clock and outside of what the episode's chain covers.
//
// All that it serves of an episode may be text of a hostile page. It goes out as JSON, and
// the pages put it into the document as text, under a policy that runs no script but ours.
package dashboard

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
	"github.com/pommelgym/pommel/internal/version"
)

// Path is where the dashboard begins.
const Path = "/dashboard/"

// Config of a dashboard. What is missing is not shown.
type Config struct {
	// Sessions are the live episodes.
	Sessions gym.Sessions
	// Traces is the folder of recorded episodes.
	Traces string
	// Training are folders of trainings, or folders that hold some.
	Training []string
	// Metrics are the server's counters.
	Metrics prometheus.Gatherer
	// Stopping ends streams when it is closed; nil never does.
	Stopping <-chan struct{}
	// Log receives defects. Nil is silence.
	Log *slog.Logger
}

// Handler answers the dashboard's requests.
type Handler struct {
	cfg    Config
	book   *Book
	traces *shelf
}

// New makes a dashboard.
func New(cfg Config) *Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Handler{cfg: cfg, book: newBook(), traces: newShelf(cfg.Traces)}
}

// Book is where the server writes down what its callers are told.
func (h *Handler) Book() *Book { return h.book }

// Routes adds the dashboard's paths to mux.
func (h *Handler) Routes(mux *http.ServeMux) {
	get := func(path string, f func(r *http.Request) (any, error)) {
		mux.Handle("GET "+Path+"api/"+path, own(h.answer(f)))
	}
	get("server", h.server)
	get("live", func(*http.Request) (any, error) { return h.live(), nil })
	get("episodes", h.episodes)
	get("episodes/{id}", h.episode)
	get("episodes/{id}/steps/{index}", h.step)
	get("training", h.trainings)
	get("training/{name}", h.training)
	get("fleet", h.fleet)
	mux.Handle("GET "+Path+"api/events", own(http.HandlerFunc(h.events)))
	mux.Handle("GET "+Path+"api/episodes/{id}/screens/{file}", own(http.HandlerFunc(h.attachment)))
	mux.Handle("GET "+Path+"api/episodes/{id}/screen", own(http.HandlerFunc(h.screen)))
	mux.Handle("POST "+Path+"api/episodes/{id}/look", own(http.HandlerFunc(h.look)))
	mux.Handle("GET "+Path, own(http.StripPrefix(Path, http.HandlerFunc(file))))
	mux.Handle("GET /{$}", http.RedirectHandler(Path, http.StatusFound))
}

// about is what the pages say of the server.
type about struct {
	Version    string `json:"version"`
	World      string `json:"world,omitempty"`
	WorldTitle string `json:"world_title,omitempty"`
	Driver     string `json:"driver,omitempty"`
	Worlds     int    `json:"worlds"`
	Live       bool   `json:"live"`
	Traces     string `json:"traces,omitempty"`
	Training   bool   `json:"training"`
}

func (h *Handler) server(*http.Request) (any, error) {
	a := about{Version: version.String(), Traces: h.cfg.Traces, Training: len(h.cfg.Training) > 0}
	if h.cfg.Sessions != nil {
		d := h.cfg.Sessions.Describe()
		a.Live, a.World, a.WorldTitle, a.Driver, a.Worlds = true, d.World, d.WorldTitle, d.Driver, d.Worlds
	}
	return a, nil
}

// answer writes what f returns as JSON.
func (h *Handler) answer(f func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(v) // a reader that has gone needs no answer
	})
}

// statuses are the HTTP codes of errors; others are defects.
var statuses = map[fault.Kind]int{
	fault.InvalidArgument:   http.StatusBadRequest,
	fault.NotFound:          http.StatusNotFound,
	fault.EpisodeOver:       http.StatusGone,
	fault.StaleEpisode:      http.StatusGone,
	fault.LeaseExpired:      http.StatusGone,
	fault.WorldLost:         http.StatusGone,
	fault.ResourceExhausted: http.StatusConflict,
	fault.Unsupported:       http.StatusNotImplemented,
	fault.Canceled:          http.StatusServiceUnavailable,
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := wire.ErrorOf(err)
	status, ok := statuses[e.Kind]
	if !ok {
		status = http.StatusInternalServerError
		h.cfg.Log.Error("dashboard", "path", r.URL.Path, "error", err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"kind": string(e.Kind), "error": e.Message, "hint": e.Hint})
}
