package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/coder/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gen/pommel/v1/pommelv1connect"
	"github.com/pommelgym/pommel/internal/action"
)

// reply is what a caller learns from one call, on whichever surface.
type reply struct {
	broken  bool // the connection broke before the answer came
	episode string
	text    string
	reward  *float64
	done    bool
	kind    string // of the error
	raw     string // everything that was said, where that is text
}

// player plays one episode at a time through one surface.
type player struct {
	reset func() reply
	// step carries out an action as call n; repeating it with the same n must be harmless.
	step func(n int, c action.Call) reply
	// take takes over an episode that another player of this surface has begun.
	take func(other *player)

	episode string
	cookies []*http.Cookie
}

var (
	noop   = action.Call{Name: "noop"}
	other  = action.Call{Name: "go_back"}
	finish = action.Call{Name: "finish"}
)

// surface is one of the ways into the server.
type surface struct {
	name string
	open func(t *testing.T, url string) *player
	// kept: the connection itself renews the lease while it lives.
	kept bool
	// silent: the surface tells no rewards, and an orchestrator resets for it.
	silent bool
}

var surfaces = []surface{
	{name: "rpc", open: openUnary},
	{name: "stream", open: openStreaming},
	{name: "openenv socket", open: openSocket, kept: true},
	{name: "openenv http", open: openHTTP},
	{name: "mcp", open: openMCP, silent: true},
	{name: "nemo gym", open: openNemo},
}

// eachSurface runs a test once for each surface.
func eachSurface(t *testing.T, f func(t *testing.T, s surface)) {
	t.Helper()
	for _, s := range surfaces {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			f(t, s)
		})
	}
}

func openUnary(t *testing.T, url string) *player {
	c := gymClient(t, url)
	p := &player{}
	p.reset = func() reply {
		r, err := c.Reset(t.Context(), &pommelv1.ResetRequest{Task: "buy", View: &pommelv1.View{Html: true}})
		p.episode = r.GetEpisodeId()
		return fromRPC(err, r.GetEpisodeId(), r.GetObservation(), nil, false)
	}
	p.step = func(n int, a action.Call) reply {
		r, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: p.episode, Step: int32(n), Action: a.String()})
		return fromRPC(err, p.episode, r.GetObservation(), new(r.GetReward()), r.GetTerminated() || r.GetTruncated())
	}
	p.take = func(o *player) { p.episode = o.episode }
	return p
}

func fromRPC(err error, id string, o *pommelv1.Observation, reward *float64, done bool) reply {
	if err == nil {
		return reply{episode: id, text: o.GetText(), reward: reward, done: done, raw: o.GetHtml()}
	}
	var ce *connect.Error
	if !asConnect(err, &ce) || len(ce.Details()) == 0 {
		return reply{broken: true}
	}
	v, derr := ce.Details()[0].Value()
	if derr != nil {
		return reply{broken: true}
	}
	return reply{kind: v.(*pommelv1.Error).GetKind(), raw: err.Error()}
}

func openStreaming(t *testing.T, url string) *player {
	var st *clientStream
	ask := func(r *pommelv1.SessionRequest) (*pommelv1.SessionResponse, bool) {
		var err error
		if st == nil {
			if st, err = pommelv1connect.NewGymServiceClient(h2c(t, nil), url).Session(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.Keep = true
		if err = st.Send(r); err == nil {
			var res *pommelv1.SessionResponse
			if res, err = st.Receive(); err == nil {
				return res, true
			}
		}
		st = nil
		return nil, false
	}
	p := &player{}
	p.reset = func() reply {
		call := resetOf("buy")
		call.Reset_.View = &pommelv1.View{Html: true}
		res, ok := ask(&pommelv1.SessionRequest{Call: call})
		if !ok || res.GetError() != nil {
			return reply{broken: !ok, kind: res.GetError().GetKind(), raw: res.GetError().GetMessage()}
		}
		p.episode = res.GetReset_().GetEpisodeId()
		return fromRPC(nil, p.episode, res.GetReset_().GetObservation(), nil, false)
	}
	p.step = func(n int, c action.Call) reply {
		res, ok := ask(&pommelv1.SessionRequest{Call: stepOf(p.episode, int32(n), c.String())})
		if !ok || res.GetError() != nil {
			return reply{broken: !ok, kind: res.GetError().GetKind(), raw: res.GetError().GetMessage()}
		}
		r := res.GetStep()
		return fromRPC(nil, p.episode, r.GetObservation(), new(r.GetReward()), r.GetTerminated() || r.GetTruncated())
	}
	p.take = func(o *player) { p.episode = o.episode }
	return p
}

// openSocket plays over a socket of its own; take attaches to the episode instead.
func openSocket(t *testing.T, url string) *player {
	var c *websocket.Conn
	query := ""
	p := &player{}
	ask := func(text string) reply {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if c == nil {
			c = dialSocket(t, url, query, nil).c
		}
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			return reply{broken: true}
		}
		_, data, err := c.Read(ctx)
		var a wsAnswer
		if err != nil || json.Unmarshal(data, &a) != nil {
			return reply{broken: true}
		}
		text, _ = a.Data.Observation["text"].(string)
		return reply{text: text, reward: a.Data.Reward, done: a.Data.Done, kind: a.Data.Kind, raw: string(data)}
	}
	p.reset = func() reply {
		r := ask(`{"type":"reset","data":{"task":"buy","html":true}}`)
		var a wsAnswer
		if json.Unmarshal([]byte(r.raw), &a) == nil {
			p.episode, _ = a.Data.Metadata["episode_id"].(string)
		}
		r.episode = p.episode
		return r
	}
	p.step = func(n int, c action.Call) reply {
		return ask(fmt.Sprintf(`{"type":"step","data":{"action_str":%q,"step":%d}}`, c, n))
	}
	p.take = func(o *player) {
		waitSockets(t, url, 0)
		p.episode, query = o.episode, "?session_id="+o.episode
	}
	return p
}

// postJSON is a request over a connection of its own, and its answer.
func postJSON(t *testing.T, url string, cookies []*http.Cookie, body any) (out map[string]any, raw string, set []*http.Cookie, ok bool) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(data))
	for _, c := range cookies {
		req.AddCookie(c)
	}
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return nil, "", nil, false
	}
	defer res.Body.Close()
	data, err = io.ReadAll(res.Body)
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil, string(data), nil, false
	}
	if (res.StatusCode == http.StatusOK) == (out["kind"] != nil) {
		t.Errorf("%s: status %d with %.200s", url, res.StatusCode, data)
	}
	return out, string(data), res.Cookies(), true
}

func openHTTP(t *testing.T, url string) *player {
	p := &player{}
	call := func(path string, body any) reply {
		out, raw, _, ok := postJSON(t, url+path, nil, body)
		if !ok {
			return reply{broken: true}
		}
		r := reply{raw: raw}
		r.kind, _ = out["kind"].(string)
		r.done, _ = out["done"].(bool)
		if o, ok := out["observation"].(map[string]any); ok {
			r.text, _ = o["text"].(string)
		}
		if f, ok := out["reward"].(float64); ok {
			r.reward = &f
		}
		if m, ok := out["metadata"].(map[string]any); ok {
			r.episode, _ = m["episode_id"].(string)
		}
		return r
	}
	p.reset = func() reply {
		r := call("/reset", map[string]any{"task": "buy", "html": true})
		p.episode = r.episode
		return r
	}
	p.step = func(n int, c action.Call) reply {
		return call("/step", map[string]any{"episode_id": p.episode, "action": map[string]any{"action_str": c.String(), "step": n}})
	}
	p.take = func(o *player) { p.episode = o.episode }
	return p
}

func openMCP(t *testing.T, url string) *player {
	p := openUnary(t, url)
	var s *sdk.ClientSession
	p.step = func(n int, c action.Call) reply {
		if s == nil {
			s = mcpClient(t, url, http.Header{episodeHeader: {p.episode}})
		}
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: c.Name, Arguments: c.Args, Meta: sdk.Meta{"step": n}})
		if err != nil {
			s = nil
			return reply{broken: true}
		}
		raw, _ := json.Marshal(r)
		out := reply{text: textOf(r), raw: string(raw)}
		out.kind, _ = r.Meta["kind"].(string)
		out.done, _ = r.Meta["done"].(bool)
		return out
	}
	return p
}

// openNemo plays as NeMo Gym's agents do: the cookies of the last answer go with the next
// request, and a request whose reply was lost is repeated with those that it had.
func openNemo(t *testing.T, url string) *player {
	p := &player{}
	call := func(path string, body any) (reply, map[string]any) {
		out, raw, set, ok := postJSON(t, url+path, p.cookies, body)
		if !ok {
			return reply{broken: true}, nil
		}
		p.cookies = set
		r := reply{raw: raw}
		r.kind, _ = out["kind"].(string)
		r.done, _ = out["done"].(bool)
		r.text, _ = out["output"].(string)
		return r, out
	}
	p.reset = func() reply {
		p.cookies = nil
		r, _ := call("/seed_session", nemoRow)
		if r.kind == "" && !r.broken {
			p.episode, _, _ = strings.Cut(p.cookies[0].Value, ".")
			r.episode = p.episode
			look, _ := call("/observe", map[string]any{})
			r.text = look.text
		}
		return r
	}
	p.step = func(_ int, c action.Call) reply {
		r, _ := call("/"+c.Name, c.Args)
		if r.kind == "" && r.done {
			end, out := call("/verify", nemoEnd)
			if f, ok := out["reward"].(float64); ok {
				r.reward = &f
			}
			r.kind = end.kind
		}
		return r
	}
	p.take = func(o *player) { p.episode, p.cookies = o.episode, o.cookies }
	return p
}

var (
	nemoRow = map[string]any{
		"responses_create_params": map[string]any{"input": []any{}}, "agent_ref": map[string]any{"name": "simple_agent"},
		"pommel": map[string]any{"task": "buy", "seed": 3},
	}
	nemoEnd = map[string]any{
		"responses_create_params": map[string]any{"input": []any{}}, "_ng_task_index": 4,
		"response": map[string]any{"id": "r", "output": []any{
			map[string]any{"type": "function_call", "name": "noop", "arguments": "{}", "call_id": "1"},
			map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "42 dollars"}}},
		}},
	}
)
