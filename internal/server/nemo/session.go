package nemo

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
)

const cookieName = "pommel_session"

// session is what the cookie says.
type session struct {
	episode string
	next    int // number of the next step
}

func (s *session) cookie() *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: s.episode + "." + strconv.Itoa(s.next), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

func sessionOf(r *http.Request) *session {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	at := strings.LastIndexByte(c.Value, '.') // ids hold dots too
	next, err := strconv.Atoi(c.Value[at+1:])
	if at < 1 || err != nil || next < 1 {
		return nil
	}
	return &session{c.Value[:at], next}
}

func (c *call) needSession() error {
	if c.session == nil {
		return fault.New(fault.InvalidArgument, "the request has no session").
			WithHint("send the cookie " + cookieName + " of the answer before; seed_session gives the first one")
	}
	return nil
}

// seedBody is a row of the data set, or the request of an environment server with the row
// in task_data.
type seedBody struct {
	Pommel json.RawMessage `json:"pommel"`
	// SessionID is the environment server's name of the session.
	SessionID string `json:"resources_session_id"`
	TaskData  struct {
		Pommel json.RawMessage `json:"pommel"`
	} `json:"task_data"`
}

// row is the member pommel of a row.
type row struct {
	Task     string  `json:"task"`
	Seed     *int64  `json:"seed"`
	MaxSteps int     `json:"max_steps"`
	Profile  string  `json:"profile"`
	MaxText  int     `json:"max_text"`
	LeaseS   float64 `json:"lease_s"`
	Client   string  `json:"client"`
}

// access is how an agent reaches the episode's tools through MCP.
type access struct {
	Server    string            `json:"server_name"`
	Path      string            `json:"url_path"`
	Transport string            `json:"transport"`
	Headers   map[string]string `json:"headers"`
}

// seed begins the episode of a row. One that an environment server has named is begun once,
// however often it asks.
func (h *Handler) seed(c *call) (any, error) {
	var b seedBody
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	data := b.Pommel
	if b.SessionID != "" {
		data = b.TaskData.Pommel
	}
	r, err := readRow(data)
	if err != nil {
		return nil, err
	}
	req := gym.SessionRequest{RequestID: b.SessionID, Wait: resetWait, Lease: time.Duration(r.LeaseS * float64(time.Second))}
	req.Task, req.Seed, req.MaxSteps, req.Profile, req.Client = r.Task, *r.Seed, r.MaxSteps, r.Profile, r.Client
	req.View.MaxText = r.MaxText
	c.session = nil // of an episode before, which ends by itself
	res, err := h.cfg.Sessions.Reset(c.r.Context(), req)
	if err != nil {
		return nil, err
	}
	c.session = &session{res.EpisodeID, 1}
	tools := access{"pommel", "/mcp", "http", map[string]string{"Authorization": "Bearer " + h.cfg.Agent(res.EpisodeID)}}
	if b.SessionID != "" {
		return map[string]any{"resources_session_id": b.SessionID, "resources_tools": tools}, nil
	}
	return map[string]any{"mcp": tools}, nil
}

// readRow wants task and seed: the generations of a row are compared with each other, so
// they must be of one episode.
func readRow(data json.RawMessage) (row, error) {
	var r row
	if len(data) == 0 || string(data) == "null" {
		return r, fault.New(fault.InvalidArgument, `the row has no member pommel; want "pommel": {"task": "...", "seed": n}`)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fault.New(fault.InvalidArgument, "pommel: %v", err)
	}
	for _, c := range []struct {
		wrong bool
		what  string
	}{
		{r.Task == "", "task is missing"}, {r.Seed == nil, "seed is missing"}, {r.MaxSteps < 0, "max_steps is negative"},
		{r.MaxText < 0, "max_text is negative"}, {r.LeaseS < 0, "lease_s is negative"},
	} {
		if c.wrong {
			return r, fault.New(fault.InvalidArgument, "pommel.%s", c.what)
		}
	}
	return r, nil
}

// close gives the world back. A session that is closed or never was is no error.
func (h *Handler) close(c *call) (any, error) {
	var b seedBody
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	out := map[string]string{"resources_session_id": b.SessionID}
	if c.session == nil {
		return out, nil
	}
	return out, h.cfg.Sessions.CloseEpisode(c.r.Context(), c.session.episode)
}
