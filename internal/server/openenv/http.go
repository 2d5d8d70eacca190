package openenv

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// Over plain HTTP an episode is held by its lease and named in every request, so that a
// caller may lose its connection and go on.

func (h *Handler) serveReset(w http.ResponseWriter, r *http.Request) {
	respond(h, w, "Reset", func() (any, error) {
		body, err := readBody(w, r)
		if err != nil {
			return nil, err
		}
		a, err := h.readReset(body)
		if err != nil {
			return nil, err
		}
		if a.name != "" {
			return nil, &invalid{[]fieldError{{Type: "value_error", Loc: []string{"episode_id"}, Msg: "over HTTP the server names episodes; use the id in metadata.episode_id, or a socket"}}}
		}
		res, err := h.cfg.Sessions.Reset(r.Context(), a.SessionRequest)
		if err != nil {
			return nil, err
		}
		return fromResult(res, res.Instruction), nil
	})
}

func (h *Handler) serveStep(w http.ResponseWriter, r *http.Request) {
	respond(h, w, "Step", func() (any, error) {
		body, err := readBody(w, r)
		if err != nil {
			return nil, err
		}
		f := readFields("", body, "action", "episode_id", "timeout_s", "request_id")
		id := f.text("episode_id")
		if id == "" {
			f.wrong("episode_id", "missing", "Field required: metadata.episode_id of the reset; over a socket it is not needed")
		}
		if !f.has("action") {
			f.wrong("action", "missing", "Field required")
		}
		if err := f.err(); err != nil {
			return nil, err
		}
		a, err := readAction("action", f.values["action"])
		if err != nil {
			return nil, err
		}
		st, err := h.cfg.Sessions.Status(r.Context(), id)
		if err != nil {
			return nil, err
		}
		res, err := h.cfg.Sessions.Step(r.Context(), id, a.n, a.action, st.View)
		if err != nil {
			return nil, err
		}
		return fromResult(res, st.Instruction), nil
	})
}

func (h *Handler) serveState(w http.ResponseWriter, r *http.Request) {
	respond(h, w, "Status", func() (any, error) {
		id := r.URL.Query().Get("episode_id")
		if id == "" {
			return emptyState(h.cfg.Sessions.Describe()), nil
		}
		st, err := h.cfg.Sessions.Status(r.Context(), id)
		if err != nil {
			return nil, err
		}
		return fromStatus(st, id, h.cfg.Sessions.Describe()), nil
	})
}

func (h *Handler) serveClose(w http.ResponseWriter, r *http.Request) {
	respond(h, w, "Close", func() (any, error) {
		body, err := readBody(w, r)
		if err != nil {
			return nil, err
		}
		f := readFields("", body, "episode_id")
		id := f.text("episode_id")
		if id == "" {
			f.wrong("episode_id", "missing", "Field required")
		}
		if err := f.err(); err != nil {
			return nil, err
		}
		return struct{}{}, h.cfg.Sessions.CloseEpisode(r.Context(), id)
	})
}

func readBody(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFrame))
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "the request could not be read, or is larger than %d bytes", maxFrame)
	}
	if len(body) > 0 && !json.Valid(body) {
		return nil, &invalid{[]fieldError{{Type: "json_invalid", Loc: []string{"body"}, Msg: "JSON decode error"}}}
	}
	return body, nil
}

// problem is the body of an error. Detail is what the reference server writes there.
type problem struct {
	Detail any        `json:"detail"`
	Kind   fault.Kind `json:"kind"`
	Void   bool       `json:"void"`
}

func respond(h *Handler, w http.ResponseWriter, call string, f func() (any, error)) {
	v, err := counted(h, call, f)
	if err == nil {
		wire.WriteJSON(w, http.StatusOK, v)
		return
	}
	var bad *invalid
	if errors.As(err, &bad) {
		wire.WriteJSON(w, http.StatusUnprocessableEntity, problem{Detail: bad.errors, Kind: fault.InvalidArgument})
		return
	}
	e := wire.ErrorOf(err)
	wire.WriteJSON(w, wire.Status(err), problem{Detail: e.String(), Kind: e.Kind, Void: e.Void()})
}
