package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
)

// socket is an OpenEnv client as a test drives it.
type socket struct {
	t *testing.T
	c *websocket.Conn
}

func dialSocket(t *testing.T, base, query string, o *websocket.DialOptions) socket {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), strings.Replace(base, "http", "ws", 1)+"/ws"+query, o)
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(100 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return socket{t, c}
}

// answer is every frame that a server sends.
type wsAnswer struct {
	Type string `json:"type"`
	Data struct {
		Observation map[string]any `json:"observation"`
		Reward      *float64       `json:"reward"`
		Done        bool           `json:"done"`
		Metadata    map[string]any `json:"metadata"`

		Message string           `json:"message"`
		Code    string           `json:"code"`
		Kind    string           `json:"kind"`
		Void    bool             `json:"void"`
		Errors  []map[string]any `json:"errors"`
		Active  int              `json:"active_sessions"`
		Max     int              `json:"max_sessions"`

		EpisodeID *string `json:"episode_id"`
		StepCount int     `json:"step_count"`
		CumReward float64 `json:"cum_reward"`
	} `json:"data"`
}

func (s socket) ask(text string) wsAnswer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	if err := s.c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
	return s.next()
}

func (s socket) next() (a wsAnswer) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	_, data, err := s.c.Read(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		s.t.Fatalf("frame %.200s: %v", data, err)
	}
	return a
}

const (
	wsReset  = `{"type":"reset","data":{"task":"buy","seed":3}}`
	wsNoop   = `{"type":"step","data":{"action_str":"noop()"}}`
	wsFinish = `{"type":"step","data":{"action_str":"finish()"}}`
)

func TestSocketEpisode(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	s := dialSocket(t, serve(t, sessions, Options{}, "127.0.0.1:0").url, "", nil)
	if a := s.ask(`{"type":"state"}`); a.Type != "state" || a.Data.EpisodeID != nil || a.Data.StepCount != 0 {
		t.Errorf("state before reset = %+v", a)
	}
	a := s.ask(`{"type":"reset","data":{"task":"buy","seed":3,"episode_id":"mine"}}`)
	if a.Type != "observation" || a.Data.Reward != nil || a.Data.Done || a.Data.Observation["goal"] != "Do buy" || a.Data.Metadata["seed"] != 3.0 {
		t.Fatalf("reset = %+v", a)
	}
	for _, secret := range []string{"metadata", "success", "stages", "reward", "done", "info"} {
		if _, ok := a.Data.Observation[secret]; ok {
			t.Errorf("the observation holds %s, which harnesses show to the model", secret)
		}
	}
	if a := s.ask(`{"type":"state","data":{}}`); *a.Data.EpisodeID != "mine" || a.Data.StepCount != 0 {
		t.Errorf("state = %+v", a)
	}
	a = s.ask(wsNoop)
	if *a.Data.Reward != 0.5 || a.Data.Done || a.Data.Observation["last_action"] != "noop()" || a.Data.Observation["text"] != "page 1" {
		t.Errorf("step = %+v", a)
	}
	first := s.ask(`{"type":"step","data":{"action_str":"click('1')","step":2,"metadata":{}}}`)
	again := s.ask(`{"type":"step","data":{"action_str":"click('1')","step":2}}`)
	if first.Data.Metadata["step"] != again.Data.Metadata["step"] {
		t.Errorf("a repeated step: %+v, then %+v", first, again)
	}
	if a := s.ask(wsFinish); !a.Data.Done || a.Data.Metadata["success"] != true {
		t.Errorf("end = %+v", a)
	}
	if a := s.ask(wsNoop); a.Type != "error" || a.Data.Code != "EXECUTION_ERROR" || a.Data.Kind != "episode_over" || a.Data.Void {
		t.Errorf("step after the end = %+v", a)
	}
	if a := s.ask(`{"type":"state"}`); a.Data.StepCount != 3 || a.Data.CumReward != 1.5 {
		t.Errorf("state at the end = %+v", a)
	}
	if a := s.ask(wsReset); a.Data.Metadata["episode_id"] != "e2" {
		t.Errorf("next = %+v", a)
	}
	waitEnd(t, sessions, "e1")
	if err := s.c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"close"}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := s.c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("after close: %v", err)
	}
	waitEnd(t, sessions, "e2")
	if got := sessions.done("e1"); !slices.Equal(got, []string{"noop()", "click('1')", "finish()"}) {
		t.Errorf("steps made = %q", got)
	}
}

func TestSocketErrors(t *testing.T) {
	t.Parallel()
	s := dialSocket(t, serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0").url, "", nil)
	for _, c := range []struct{ send, code, loc string }{
		{`{nonsense`, "INVALID_JSON", ""},
		{`[1]`, "VALIDATION_ERROR", ""},
		{`{}`, "UNKNOWN_TYPE", ""},
		{`{"type":"dance"}`, "UNKNOWN_TYPE", ""},
		{wsNoop, "EXECUTION_ERROR", ""},
		{`{"type":"reset","data":[]}`, "VALIDATION_ERROR", ""},
		{`{"type":"reset","data":{"taks":"buy"}}`, "VALIDATION_ERROR", "taks"},
		{`{"type":"reset","data":{"seed":"x"}}`, "VALIDATION_ERROR", "seed"},
		{`{"type":"reset","data":{"seed":-1}}`, "VALIDATION_ERROR", "seed"},
		{`{"type":"reset","data":{"screenshot":"bmp"}}`, "VALIDATION_ERROR", "screenshot"},
		{`{"type":"reset","data":{"episode_id":"` + strings.Repeat("x", 300) + `"}}`, "VALIDATION_ERROR", "episode_id"},
		{`{"type":"step","data":{}}`, "VALIDATION_ERROR", "action_str"},
		{`{"type":"step"}`, "VALIDATION_ERROR", "action_str"},
		{`{"type":"step","data":{"action_str":7}}`, "VALIDATION_ERROR", "action_str"},
		{`{"type":"step","data":{"action_str":"noop()","x":1}}`, "VALIDATION_ERROR", "x"},
	} {
		a := s.ask(c.send)
		if a.Type != "error" || a.Data.Code != c.code || a.Data.Message == "" {
			t.Errorf("%s: %+v", c.send, a)
		}
		if c.loc != "" && (len(a.Data.Errors) != 1 || fmt.Sprint(a.Data.Errors[0]["loc"]) != "["+c.loc+"]") {
			t.Errorf("%s: errors = %v", c.send, a.Data.Errors)
		}
	}
	if a := s.ask(wsReset); a.Type != "observation" {
		t.Errorf("after errors the session goes on: %+v", a)
	}
}

// TestSocketChoosesATask: a caller that knows nothing of tasks gets one, the same for the same seed.
func TestSocketChoosesATask(t *testing.T) {
	t.Parallel()
	s := dialSocket(t, serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0").url, "", nil)
	a := s.ask(`{"type":"reset"}`)
	if seed, _ := a.Data.Metadata["seed"].(float64); a.Data.Metadata["task"] != "buy" || int64(seed)%10 > 6 {
		t.Errorf("reset = %+v", a)
	}
}

// TestSocketsAreLimited: the one that is too many is told so, and the place of one that leaves is free at once.
func TestSocketsAreLimited(t *testing.T) {
	t.Parallel()
	url := serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0").url // two worlds
	// A connection takes its place after the handshake: the answer says that it has.
	a := dialSocket(t, url, "", nil)
	a.ask(wsReset)
	dialSocket(t, url, "", nil).ask(wsReset)
	late := dialSocket(t, url, "", nil)
	if r := late.ask(wsReset); r.Type != "error" || r.Data.Code != "CAPACITY_REACHED" || r.Data.Active != 2 || r.Data.Max != 2 {
		t.Errorf("one too many: %+v", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := late.c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Errorf("after the refusal: %v", err)
	}
	waiting := dialSocket(t, url, "", nil)
	_ = a.c.CloseNow()
	if r := waiting.ask(wsReset); r.Type != "observation" {
		t.Errorf("after one left: %+v", r)
	}
}

func TestSocketVoidEpisode(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.WorldLost, fault.LeaseExpired, fault.ResourceExhausted, fault.Internal} {
		sessions := newScripted(t, script{step: func(context.Context, string) error { return fault.New(kind, "what happened") }})
		s := dialSocket(t, serve(t, sessions, Options{}, "127.0.0.1:0").url, "", nil)
		s.ask(wsReset)
		a := s.ask(wsNoop)
		if a.Type != "error" || a.Data.Kind != string(kind) || a.Data.Void != (kind != fault.ResourceExhausted) || a.Data.Reward != nil {
			t.Errorf("%s: %+v", kind, a)
		}
	}
}

// TestSocketVanishes: cut connections give their worlds back at once, also in the middle of a step.
func TestSocketVanishes(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	sessions := newScripted(t, script{step: func(context.Context, string) error {
		close(started)
		<-release
		return nil
	}})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	proxy := newProxy(t, srv.url[len("http://"):])
	s := dialSocket(t, "http://"+proxy.l.Addr().String(), "", nil)
	s.ask(wsReset)
	if err := s.c.Write(t.Context(), websocket.MessageText, []byte(wsNoop)); err != nil {
		t.Fatal(err)
	}
	<-started
	proxy.cut()
	close(release)
	waitEnd(t, sessions, "e1")
}

// TestSocketHalfOpen: a caller whose packets go nowhere, without a farewell, loses its world within the lease.
func TestSocketHalfOpen(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	sessions.lease = 600 * time.Millisecond
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	proxy := newProxy(t, srv.url[len("http://"):])
	s := dialSocket(t, "http://"+proxy.l.Addr().String(), "", nil)
	s.ask(wsReset)
	ctx := s.c.CloseRead(t.Context()) // answers pings
	select {
	case id := <-sessions.ended:
		t.Fatalf("episode %s of a living caller ended", id)
	case <-ctx.Done():
		t.Fatal("the server closed a living session")
	case <-time.After(3 * sessions.lease): // thinking is what is tested: no event ends it
	}
	proxy.freeze()
	waitEnd(t, sessions, "e1")
}

// TestIdleSocket: a program that hangs while its host answers pings does not hold a world for ever.
func TestIdleSocket(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	sessions.lease = 300 * time.Millisecond
	s := dialSocket(t, serve(t, sessions, Options{Idle: 500 * time.Millisecond}, "127.0.0.1:0").url, "", nil)
	s.ask(wsReset)
	if a := s.next(); a.Data.Code != "SESSION_ERROR" || a.Data.Kind != "lease_expired" {
		t.Errorf("idle = %+v", a)
	}
	waitEnd(t, sessions, "e1")
}

// TestSocketAttaches: an episode that was begun elsewhere is driven, and lives on when the socket breaks.
func TestSocketAttaches(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	res, err := sessions.Reset(t.Context(), gym.SessionRequest{Request: gym.Request{Task: "buy"}})
	if err != nil {
		t.Fatal(err)
	}
	query := "?session_id=" + res.EpisodeID
	first := dialSocket(t, srv.url, query, nil)
	first.ask(wsNoop)
	refused := dialSocket(t, srv.url, query, nil)
	if a := refused.next(); a.Data.Code != "SESSION_ERROR" {
		t.Errorf("second socket = %+v", a)
	}
	// It keeps its place until it has said farewell or is gone.
	_ = refused.c.CloseNow()
	_ = first.c.Close(websocket.StatusNormalClosure, "")
	waitSockets(t, srv.url, 0)
	second := dialSocket(t, srv.url, query, nil)
	if a := second.ask(`{"type":"step","data":{"action_str":"noop()","step":1}}`); a.Data.Metadata["step"] != 1.0 {
		t.Errorf("repeated over another socket: %+v", a)
	}
	if got := sessions.done(res.EpisodeID); len(got) != 1 {
		t.Errorf("steps made = %q", got)
	}
	if a := dialSocket(t, srv.url, "?session_id=nobody", nil).next(); a.Data.Code != "SESSION_ERROR" || a.Data.Kind != "not_found" {
		t.Errorf("unknown session = %+v", a)
	}
}

// waitSockets waits until the server holds n sockets: it sees a farewell a moment later.
func waitSockets(t *testing.T, url string, n int) {
	t.Helper()
	for began := time.Now(); ; {
		_, body := get(t, url+"/metrics")
		if strings.Contains(body, fmt.Sprintf("\npommel_sockets %d\n", n)) {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("the server does not come down to %d sockets:\n%s", n, body)
		}
	}
}

// TestSocketGuard: pages from elsewhere and callers without the token stay out.
func TestSocketGuard(t *testing.T) {
	t.Parallel()
	open := serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0").url
	locked := serve(t, newScripted(t, script{}), Options{Token: "secret"}, "127.0.0.1:0").url
	for name, c := range map[string]struct {
		url    string
		header http.Header
		host   string
		status int
	}{
		"page elsewhere": {open, http.Header{"Origin": {"https://evil.example"}}, "", 403},
		"rebound name":   {open, nil, "evil.example", 403},
		"no token":       {locked, nil, "", 401},
		"wrong token":    {locked, http.Header{"Authorization": {"Bearer nope"}}, "", 401},
		"token in URL":   {locked + "/ws?token=secret#", nil, "", 401},
		"token":          {locked, http.Header{"Authorization": {"Bearer secret"}}, "", 101},
	} {
		_, res, err := websocket.Dial(t.Context(), strings.Replace(c.url, "http", "ws", 1)+"/ws", &websocket.DialOptions{HTTPHeader: c.header, Host: c.host})
		if res == nil || res.StatusCode != c.status {
			t.Errorf("%s: %v, %v, want %d", name, res, err, c.status)
		}
	}
}

// TestSocketAtShutdown: an idle session does not hold the server up.
func TestSocketAtShutdown(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	s := dialSocket(t, srv.url, "", nil)
	s.ask(wsReset)
	srv.stop()
	if a := s.next(); a.Type != "error" || !strings.Contains(a.Data.Message, "shutting down") {
		t.Errorf("farewell = %+v", a)
	}
	waitEnd(t, sessions, "e1")
}

// TestSocketForeignText: what a page writes never makes a frame that the client refuses.
func TestSocketForeignText(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{observation: func(int) *gym.Observation {
		return &gym.Observation{
			Title: "half \xed\xa0\xbd smile", Text: "nul\x00 and \uffff <b>", HTML: strings.Repeat("\u6f22", 5<<20),
			AXTree: []byte("\"\xff\""), Screenshot: &gym.Image{Format: "png", Data: make([]byte, 40<<20)},
		}
	}})
	s := dialSocket(t, serve(t, sessions, Options{}, "127.0.0.1:0").url, "", nil)
	a := s.ask(wsReset)
	o := a.Data.Observation
	if o["text"] != "nul\x00 and \uffff <b>" || o["truncated"] != true || o["screenshot"] != nil || o["axtree"] != "\uFFFD" {
		t.Errorf("observation = %.300v", o)
	}
}

// TestHTTPEpisode: over plain HTTP each request may come over another connection.
func TestHTTPEpisode(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	url := serve(t, sessions, Options{}, "127.0.0.1:0").url
	call := func(method, path, body string, want int) map[string]any {
		t.Helper()
		tr := &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}
		req, _ := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		res, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var out map[string]any
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != want {
			t.Errorf("%s %s: %d %v, %v; want %d", method, body, res.StatusCode, out, err, want)
		}
		return out
	}
	first := call("POST", "/reset", `{"task":"buy","request_id":"r1"}`, 200)
	if again := call("POST", "/reset", `{"task":"buy","request_id":"r1"}`, 200); again["metadata"].(map[string]any)["episode_id"] != "e1" {
		t.Errorf("a repeated reset: %v, then %v", first, again)
	}
	for range 2 {
		if a := call("POST", "/step", `{"episode_id":"e1","action":{"action_str":"noop()","step":1}}`, 200); a["reward"] != 0.5 {
			t.Errorf("step = %v", a)
		}
	}
	call("POST", "/step", `{"episode_id":"e1","action":{"action_str":"other()","step":1}}`, 422)
	if a := call("GET", "/state?episode_id=e1", "", 200); a["step_count"] != 1.0 || a["cum_reward"] != 0.5 {
		t.Errorf("state = %v", a)
	}
	call("POST", "/step", `{"action":{"action_str":"noop()"}}`, 422)
	call("POST", "/step", `{"episode_id":"e1"}`, 422)
	call("POST", "/reset", `{"episode_id":"mine"}`, 422)
	call("POST", "/reset", `{`, 422)
	call("POST", "/step", `{"episode_id":"nobody","action":{"action_str":"noop()"}}`, 404)
	call("POST", "/close", `{"episode_id":"e1"}`, 200)
	waitEnd(t, sessions, "e1")
	call("POST", "/step", `{"episode_id":"e1","action":{"action_str":"noop()","step":2}}`, 409)
	if a := call("POST", "/shop/tasks", `{"split":"train"}`, 200); len(a["tasks"].([]any)) != 1 {
		t.Errorf("tasks = %v", a)
	}
	call("POST", "/shop/task", `{"split":"train","index":9}`, 422)
	if a := call("GET", "/schema", "", 200); len(a["action"].(map[string]any)["required"].([]any)) != 1 {
		t.Errorf("schema = %v", a)
	}
	call("GET", "/metadata", "", 200)
	call("GET", "/health", "", 200)
	call("GET", "/openapi.json", "", 200)
}
