package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
)

// nemoCaller sends what NeMo Gym's agents send, and keeps the cookies of the last answer.
type nemoCaller struct {
	t       *testing.T
	url     string
	token   string
	cookies []*http.Cookie
}

func (n *nemoCaller) call(path string, body any, want int) map[string]any {
	n.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		n.t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(n.t.Context(), http.MethodPost, n.url+path, strings.NewReader(string(data)))
	if n.token != "" {
		req.Header.Set("Authorization", "Bearer "+n.token)
	}
	for _, c := range n.cookies {
		req.AddCookie(c)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(res.Body).Decode(&out); res.StatusCode != want || err != nil && want != http.StatusUnauthorized {
		n.t.Errorf("%s %.200s: %d %v, %v; want %d", path, data, res.StatusCode, out, err, want)
	}
	n.cookies = res.Cookies()
	return out
}

func TestNemoEpisode(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	n := &nemoCaller{t: t, url: serve(t, sessions, Options{}, "127.0.0.1:0").url}
	n.call("/seed_session", nemoRow, 200)
	if o := n.call("/observe", map[string]any{}, 200); !strings.Contains(o["output"].(string), "Task: Do buy") || o["done"] != false {
		t.Errorf("observe = %v", o)
	}
	o := n.call("/click", map[string]any{"selector": `text="Buy"`, "modifiers": []string{"Shift"}}, 200)
	if !strings.Contains(o["output"].(string), "page 1") || o["done"] != false {
		t.Errorf("click = %v", o)
	}
	told, _ := json.Marshal(o)
	for _, secret := range []string{"reward", "success", "stage", "potential"} {
		if strings.Contains(string(told), secret) {
			t.Errorf("the model is told of %s: %s", secret, told)
		}
	}
	// A call that is wrong costs no step and no session.
	n.call("/click", map[string]any{`x") ; finish(`: "1"}, 422)
	end := n.call("/verify", nemoEnd, 200)
	if end["reward"] != 1.0 || end["_ng_task_index"] != 4.0 || end["response"].(map[string]any)["id"] != "r" {
		t.Errorf("verify = %v", end)
	}
	want := []string{`click(selector="text=\"Buy\"", modifiers=["Shift"])`, `finish(answer="42 dollars")`}
	if got := sessions.done("e1"); !slices.Equal(got, want) {
		t.Errorf("steps made = %q, want %q", got, want)
	}
	if result := end["pommel_result"].(map[string]any); result["seed"] != 3.0 || result["task"] != "buy" || result["steps"] != 2.0 {
		t.Errorf("result = %v", result)
	}
	if again := n.call("/verify", nemoEnd, 200); again["reward"] != 1.0 || len(sessions.done("e1")) != 2 {
		t.Errorf("a repeated verify = %v", again)
	}
	n.call("/noop", map[string]any{}, 409)
	n.call("/observe", map[string]any{}, 409)
}

// TestNemoCookies: a request that comes twice with its cookie is carried out once, and one with the
// cookie of an answer before the last is no new step.
func TestNemoCookies(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	n := &nemoCaller{t: t, url: serve(t, sessions, Options{}, "127.0.0.1:0").url}
	n.call("/seed_session", nemoRow, 200)
	before := n.cookies
	first := n.call("/noop", map[string]any{}, 200)
	after := n.cookies
	n.cookies = before
	if again := n.call("/noop", map[string]any{}, 200); !maps.Equal(first, again) {
		t.Errorf("repeated = %v, want %v", again, first)
	}
	n.cookies = before
	n.call("/go_back", map[string]any{}, 422)
	n.cookies = after
	n.call("/go_back", map[string]any{}, 200)
	n.cookies = before
	n.call("/noop", map[string]any{}, 409)
	if got := sessions.done("e1"); !slices.Equal(got, []string{"noop()", "go_back()"}) {
		t.Errorf("steps made = %q", got)
	}
	for _, value := range []string{"", "e1", "e1.0", "e1.x", ".1"} {
		n.cookies = []*http.Cookie{{Name: "pommel_session", Value: value}}
		n.call("/noop", map[string]any{}, 422)
	}
	n.cookies = []*http.Cookie{{Name: "pommel_session", Value: "20250310T090000.000-nobody.1"}}
	n.call("/verify", nemoEnd, 404)
}

// TestNemoEnvironmentServer: a session that the caller names is begun once, its agent reaches the
// tools through MCP, and closing frees the world.
func TestNemoEnvironmentServer(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	url := serve(t, sessions, Options{Token: "secret"}, "127.0.0.1:0").url
	seed := map[string]any{
		"resources_session_id": "s1", "episode_id": map[string]any{"id": "x"}, "task_id": "t",
		"task_data": map[string]any{"pommel": nemoRow["pommel"]},
	}
	var n *nemoCaller
	var access map[string]any
	for range 2 {
		n = &nemoCaller{t: t, url: url, token: "secret"}
		out := n.call("/seed_session", seed, 200)
		access = out["resources_tools"].(map[string]any)
		if out["resources_session_id"] != "s1" || len(out) != 2 || !strings.HasPrefix(n.cookies[0].Value, "e1.") {
			t.Errorf("seed = %v, cookies %v", out, n.cookies)
		}
	}
	header := http.Header{"Authorization": {access["headers"].(map[string]any)["Authorization"].(string)}}
	tool(t, mcpClient(t, url, header), "noop", nil, nil)
	if got := sessions.done("e1"); len(got) != 1 {
		t.Errorf("steps made = %q", got)
	}
	for range 2 {
		if out := n.call("/close_session", map[string]any{"resources_session_id": "s1", "episode_id": "x"}, 200); out["resources_session_id"] != "s1" {
			t.Errorf("close = %v", out)
		}
	}
	waitEnd(t, sessions, "e1")
	(&nemoCaller{t: t, url: url, token: "secret"}).call("/close_session", map[string]any{"resources_session_id": "s2"}, 200)
}

// TestNemoVerifyIsNeverAFalseZero: what the infrastructure has broken fails the rollout.
func TestNemoVerifyIsNeverAFalseZero(t *testing.T) {
	t.Parallel()
	for kind, status := range map[fault.Kind]int{fault.WorldLost: 500, fault.Internal: 500, fault.ResourceExhausted: 429} {
		sessions := newScripted(t, script{step: func(context.Context, string) error { return fault.New(kind, "what happened") }})
		n := &nemoCaller{t: t, url: serve(t, sessions, Options{}, "127.0.0.1:0").url}
		n.call("/seed_session", nemoRow, 200)
		n.call("/noop", map[string]any{}, status)
		for range 2 {
			out := n.call("/verify", nemoEnd, status)
			if _, ok := out["reward"]; ok || out["kind"] != string(kind) {
				t.Errorf("%s: verify = %v", kind, out)
			}
		}
	}
	sessions := newScripted(t, script{})
	sessions.lease = 30 * time.Millisecond
	n := &nemoCaller{t: t, url: serve(t, sessions, Options{}, "127.0.0.1:0").url}
	n.call("/seed_session", nemoRow, 200)
	waitEnd(t, sessions, "e1")
	if out := n.call("/verify", nemoEnd, 410); out["void"] != true || out["reward"] != nil {
		t.Errorf("verify after the lease = %v", out)
	}
}

func TestNemoBadRequests(t *testing.T) {
	t.Parallel()
	url := serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0").url
	n := &nemoCaller{t: t, url: url}
	for want, row := range map[string]any{
		"no member pommel":       map[string]any{"task": "buy"},
		"pommel.task is missing": map[string]any{"pommel": map[string]any{"seed": 1}},
		"pommel.seed is missing": map[string]any{"pommel": map[string]any{"task": "buy"}},
		`unknown field "sede"`:   map[string]any{"pommel": map[string]any{"task": "buy", "sede": 1}},
		"max_steps is negative":  map[string]any{"pommel": map[string]any{"task": "buy", "seed": 1, "max_steps": -1}},
		"lease_s is negative":    map[string]any{"pommel": map[string]any{"task": "buy", "seed": 1, "lease_s": -1}},
	} {
		if out := n.call("/seed_session", row, 422); !strings.Contains(out["detail"].(string), want) {
			t.Errorf("detail = %v, want %s", out["detail"], want)
		}
	}
	if out := n.call("/noop", map[string]any{}, 422); !strings.Contains(out["detail"].(string), "no session") {
		t.Errorf("without a session: %v", out)
	}
	n.call("/seed_session", nemoRow, 200)
	n.call("/verify", map[string]any{}, 422)
	n.call("/click", []int{1}, 422)
	_, body := get(t, url+"/tools")
	for _, want := range []string{`"type":"function"`, `"name":"observe"`, `"name":"click"`, `"parameters":{`} {
		if !strings.Contains(body, want) {
			t.Errorf("tools have no %s: %.300s", want, body)
		}
	}
}

func TestNemoGuard(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	url := serve(t, sessions, Options{Token: "secret"}, "127.0.0.1:0").url
	for token, status := range map[string]int{"": 401, "wrong": 401, "secret": 200} {
		n := &nemoCaller{t: t, url: url, token: token}
		n.call("/seed_session", nemoRow, status)
		if status == http.StatusUnauthorized {
			n.call("/verify", nemoEnd, status)
			n.call("/click", map[string]any{}, status)
		}
	}
	// The token of an agent opens its tools over MCP, and neither these nor the reward here.
	_, header := agentOf(t, url, "secret", nil)
	n := &nemoCaller{t: t, url: url, token: strings.TrimPrefix(header.Get("Authorization"), "Bearer ")}
	n.call("/verify", nemoEnd, 401)
}
