// Package nemo has the shape of a resources server of NeMo Gym: seed_session begins an
// episode, each action is a route of its own, verify tells the reward.
//
// It is an adapter: episodes, leases and retries are the business of gym.Sessions. Tool
// answers go into the model's conversation, so no word of rewards stands in them; what is
// for the trainer comes with verify.
//
// # Sessions
//
// The cookie names the episode and the number of its next step. NeMo Gym's agents send
// the cookie of the last answer, and their client repeats a request whose reply was lost
// with the cookie it had: so a repeated call is known, and carried out once.
package nemo

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/mcp"
	"github.com/pommelgym/pommel/internal/server/wire"
)

const (
	// maxRequest bounds a request: verify brings the whole conversation along.
	maxRequest = 64 << 20
	// resetWait is how long seed_session waits for a free world. NeMo Gym starts more rollouts
	// at once than there are worlds, and its client has no limit of its own.
	resetWait = 5 * time.Minute
)

// Config of a Handler.
type Config struct {
	Sessions gym.Sessions
	// Agent makes the token with which an agent acts on an episode through MCP.
	Agent func(episode string) string
	// Count is told of each call and how it ended; nil counts nothing.
	Count func(call string, err error, took time.Duration)
}

// Handler answers the routes of a resources server.
type Handler struct{ cfg Config }

// New makes a handler. It holds nothing that needs closing.
func New(c Config) *Handler {
	if c.Count == nil {
		c.Count = func(string, error, time.Duration) {}
	}
	return &Handler{cfg: c}
}

// Routes adds the protocol's paths to mux.
func (h *Handler) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /seed_session", h.respond("Reset", h.seed))
	mux.HandleFunc("POST /verify", h.respond("Status", h.verify))
	mux.HandleFunc("POST /close_session", h.respond("Close", h.close))
	mux.HandleFunc("GET /tools", h.respond("ListTools", h.tools))
	for _, t := range mcp.Tools() {
		mux.HandleFunc("POST /"+t.Name, h.respond(mcp.CallName(t.Name), h.act(t.Name)))
	}
}

// call is one request and what its answer says of the session.
type call struct {
	r    *http.Request
	body []byte
	// session is the request's, if it has one, and what the answer's cookie names.
	session *session
}

// problem is the body of an error. Detail is where NeMo Gym's servers write it.
type problem struct {
	Detail string     `json:"detail"`
	Kind   fault.Kind `json:"kind"`
	Void   bool       `json:"void"`
}

func (h *Handler) respond(name string, f func(*call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		c := &call{r: r, session: sessionOf(r)}
		var v any
		err := c.read(w)
		if err == nil {
			v, err = f(c)
		}
		h.cfg.Count(name, err, time.Since(start))
		status := http.StatusOK
		if err != nil {
			e := wire.ErrorOf(err)
			status, v = wire.Status(err), problem{Detail: e.String(), Kind: e.Kind, Void: e.Void()}
		}
		// With each answer, also of an error: the client keeps the cookies of the last one alone.
		if c.session != nil {
			http.SetCookie(w, c.session.cookie())
		}
		wire.WriteJSON(w, status, v)
	}
}

func (c *call) read(w http.ResponseWriter) error {
	var err error
	if c.body, err = io.ReadAll(http.MaxBytesReader(w, c.r.Body, maxRequest)); err != nil {
		return fault.New(fault.InvalidArgument, "the request could not be read, or is larger than %d bytes", maxRequest)
	}
	if len(bytes.TrimSpace(c.body)) == 0 {
		c.body = []byte("{}")
	}
	return nil
}

// decode reads the body, of which members that out does not name are none of ours.
func (c *call) decode(out any) error {
	if err := json.Unmarshal(c.body, out); err != nil {
		return fault.New(fault.InvalidArgument, "the body is not as expected: %v", err)
	}
	return nil
}
