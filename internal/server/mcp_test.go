package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/fault"
)

// withHeader sends headers with each request.
type withHeader struct {
	header http.Header
	next   http.RoundTripper
}

func (w withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range w.header {
		r.Header[k] = v
	}
	return w.next.RoundTrip(r)
}

func mcpClient(t *testing.T, url string, header http.Header) *sdk.ClientSession {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	c := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil)
	s, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: withHeader{header, tr}}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func tool(t *testing.T, s *sdk.ClientSession, name string, args map[string]any, meta sdk.Meta) *sdk.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args, Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func textOf(r *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if x, ok := c.(*sdk.TextContent); ok {
			b.WriteString(x.Text)
		}
	}
	return b.String()
}

// agentOf begins an episode as an orchestrator does and returns what its agent holds.
func agentOf(t *testing.T, url, token string, view *pommelv1.View) (episode string, header http.Header) {
	t.Helper()
	c := gymClient(t, url, withToken(token))
	res, err := c.Reset(t.Context(), &pommelv1.ResetRequest{Task: "buy", View: view})
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.GetEpisode(t.Context(), &pommelv1.GetEpisodeRequest{EpisodeId: res.GetEpisodeId()})
	if err != nil {
		t.Fatal(err)
	}
	return res.GetEpisodeId(), http.Header{"Authorization": {"Bearer " + st.GetAgentToken()}}
}

func TestAgentActsThroughMCP(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{observation: func(int) *gym.Observation {
		return &gym.Observation{URL: "http://shop/", Title: "Shop", Text: "[1] button 'Buy'", Screenshot: &gym.Image{Format: "png", Data: []byte("picture")}}
	}})
	srv := serve(t, sessions, Options{Token: "secret"}, "127.0.0.1:0")
	id, header := agentOf(t, srv.url, "secret", &pommelv1.View{Screenshot: "png"})
	s := mcpClient(t, srv.url, header)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range list.Tools {
		names = append(names, x.Name)
	}
	for _, want := range append([]string{"observe"}, actionNames()...) {
		if !slices.Contains(names, want) {
			t.Errorf("no tool %s", want)
		}
	}
	for _, never := range []string{"reset", "step", "state", "close", "verify", "judge"} {
		if slices.Contains(names, never) {
			t.Errorf("the agent has a tool %s", never)
		}
	}
	if r := tool(t, s, "observe", nil, nil); r.IsError || !strings.Contains(textOf(r), "Task: Do buy") || !strings.Contains(textOf(r), "[1] button 'Buy'") {
		t.Errorf("observe = %q", textOf(r))
	}
	r := tool(t, s, "click", map[string]any{"selector": `text="Buy"`, "modifiers": []any{"Shift"}}, nil)
	if image, ok := r.Content[1].(*sdk.ImageContent); !ok || image.MIMEType != "image/png" || string(image.Data) != "picture" {
		t.Errorf("click = %+v", r.Content)
	}
	raw, _ := json.Marshal(r)
	for _, secret := range []string{"reward", "success", "stage", "potential"} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("the agent is told of %s: %s", secret, raw)
		}
	}
	for range 2 { // a repeated call with its number is carried out once
		tool(t, s, "noop", map[string]any{"wait_ms": 5}, sdk.Meta{"step": 2})
	}
	if r := tool(t, s, "finish", nil, nil); !strings.Contains(textOf(r), "The episode has ended.") || strings.Contains(textOf(r), "success") || r.Meta["done"] != true {
		t.Errorf("finish = %+v", r)
	}
	if r := tool(t, s, "observe", nil, nil); !r.IsError || !strings.Contains(textOf(r), "ended") {
		t.Errorf("after the end = %+v", r)
	}
	want := []string{`click(selector="text=\"Buy\"", modifiers=["Shift"])`, "noop(wait_ms=5)", "finish()"}
	if got := sessions.done(id); !slices.Equal(got, want) {
		t.Errorf("steps made = %q, want %q", got, want)
	}
	st, err := gymClient(t, srv.url, withToken("secret")).GetEpisode(t.Context(), &pommelv1.GetEpisodeRequest{EpisodeId: id})
	if err != nil || st.GetReward() != 1.5 || st.GetLast().GetStep() != 3 || !st.GetLast().GetInfo().GetSuccess() {
		t.Errorf("what the orchestrator sees = %v, %v", st, err)
	}
}

func actionNames() (names []string) {
	for _, s := range action.Signatures() {
		names = append(names, s.Name)
	}
	return names
}

// TestAgentReachesItsEpisodeAlone: not another's, not the server's calls, and not with a made-up token.
func TestAgentReachesItsEpisodeAlone(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	srv := serve(t, sessions, Options{Token: "secret"}, "127.0.0.1:0")
	mine, header := agentOf(t, srv.url, "secret", nil)
	other, _ := agentOf(t, srv.url, "secret", nil)
	header[episodeHeader] = []string{other}
	tool(t, mcpClient(t, srv.url, header), "noop", nil, nil)
	if len(sessions.done(mine)) != 1 || len(sessions.done(other)) != 0 {
		t.Errorf("mine: %q, other: %q", sessions.done(mine), sessions.done(other))
	}
	token := header.Get("Authorization")
	forged := token[:len(token)-len(mine)] + other
	for path, header := range map[string]string{"/mcp": forged, "/reset": token, "/metrics": token, getServer: token, "/ws": token} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url+path, strings.NewReader("{}"))
		req.Header.Set("Authorization", header)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with %.30s...: %d", path, header, res.StatusCode)
		}
	}
}

// TestMCPByServerToken: an orchestrator may bind its agent's client by name.
func TestMCPByServerToken(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	id := mustReset(t, gymClient(t, srv.url), &pommelv1.ResetRequest{}).GetEpisodeId()
	r := tool(t, mcpClient(t, srv.url, nil), "noop", nil, nil)
	if !r.IsError || !strings.Contains(textOf(r), "names no episode") {
		t.Errorf("without an episode: %q", textOf(r))
	}
	s := mcpClient(t, srv.url, http.Header{episodeHeader: {id}})
	for name, args := range map[string]map[string]any{"click": {"bid": "1", `x") ; finish(`: "1"}} {
		if r := tool(t, s, name, args, nil); !r.IsError {
			t.Errorf("%s(%v) = %q", name, args, textOf(r))
		}
	}
	if got := sessions.done(id); len(got) != 0 {
		t.Errorf("steps made = %q", got)
	}
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "reset"}); err == nil {
		t.Error("a tool that is none was called")
	}
}

// TestMCPVoidEpisode: a lost world is not put down to the agent, and nothing says that it succeeded.
func TestMCPVoidEpisode(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{step: func(context.Context, string) error { return fault.New(fault.WorldLost, "the browser died") }})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	_, header := agentOf(t, srv.url, "", nil)
	r := tool(t, mcpClient(t, srv.url, header), "finish", nil, nil)
	if !r.IsError || !strings.Contains(textOf(r), "not your doing") || r.Meta["void"] != true || r.Meta["kind"] != "world_lost" {
		t.Errorf("finish = %+v %q", r, textOf(r))
	}
}

// TestMCPLostReply: the connection is cut in the middle of a call. The repetition over a new one
// gets the result of the first, and the step is made once.
func TestMCPLostReply(t *testing.T) {
	t.Parallel()
	var proxy *cuttingProxy
	cut := true
	sessions := newScripted(t, script{step: func(context.Context, string) error {
		if cut {
			cut = false
			proxy.cut()
		}
		return nil
	}})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	proxy = newProxy(t, srv.url[len("http://"):])
	id, header := agentOf(t, srv.url, "", nil)
	s := mcpClient(t, "http://"+proxy.l.Addr().String(), header)
	call := &sdk.CallToolParams{Name: "noop", Meta: sdk.Meta{"step": 1}}
	if _, err := s.CallTool(t.Context(), call); err == nil {
		t.Error("the reply was not lost")
	}
	again := mcpClient(t, srv.url, header)
	if r, err := again.CallTool(t.Context(), call); err != nil || r.Meta["step"] != 1.0 {
		t.Errorf("repeated = %+v, %v", r, err)
	}
	if got := sessions.done(id); len(got) != 1 {
		t.Errorf("steps made = %q", got)
	}
}

func TestMCPGuard(t *testing.T) {
	t.Parallel()
	s := New(newScripted(t, script{}), Options{})
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, c := range map[string]struct {
		body   string
		header map[string]string
		status int
		want   string
	}{
		"plain":          {list, nil, 200, `"tools"`},
		"rebound name":   {list, map[string]string{"Host": "evil.example"}, 403, ""},
		"page elsewhere": {list, map[string]string{"Origin": "https://evil.example"}, 403, ""},
		"no message":     {`{}`, nil, 200, `-32600`},
		"no JSON":        {`{`, nil, 200, `-32700`},
	} {
		r := post("/mcp", c.header)
		r.Body = io.NopCloser(strings.NewReader(c.body))
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %.200s", name, w.Code, w.Body)
		}
	}
}
