package server

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gen/pommel/v1/pommelv1connect"
	"github.com/pommelgym/pommel/internal/fault"
)

const getServer = "/pommel.v1.GymService/GetServer"

func post(path string, header map[string]string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:1"+path, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		if k == "Host" {
			r.Host = v
			continue
		}
		r.Header.Set(k, v)
	}
	return r
}

// TestWhoGetsIn: web pages stay out of a server without a token, and without the
// token everybody stays out of one that has it.
func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	open := New(newScripted(t, script{}), Options{Hosts: []string{"gym.internal"}})
	locked := New(newScripted(t, script{}), Options{Token: "secret"})
	for name, c := range map[string]struct {
		s      *Server
		header map[string]string
		status int
	}{
		"loopback":             {open, nil, 200},
		"localhost":            {open, map[string]string{"Host": "localhost:7777"}, 200},
		"ipv6 loopback":        {open, map[string]string{"Host": "[::1]:7777"}, 200},
		"allowed name":         {open, map[string]string{"Host": "gym.internal:7777"}, 200},
		"rebound name":         {open, map[string]string{"Host": "evil.example:7777"}, 403},
		"name like loopback":   {open, map[string]string{"Host": "127.0.0.1.evil.example"}, 403},
		"no host":              {open, map[string]string{"Host": ""}, 403},
		"page elsewhere":       {open, map[string]string{"Origin": "https://evil.example"}, 403},
		"marked by browser":    {open, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"no token":             {locked, nil, 401},
		"wrong token":          {locked, map[string]string{"Authorization": "Bearer secre"}, 401},
		"other scheme":         {locked, map[string]string{"Authorization": "Basic secret"}, 401},
		"token as password":    {locked, map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("any:secret"))}, 200},
		"wrong password":       {locked, map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("secret:any"))}, 401},
		"bare token":           {locked, map[string]string{"Authorization": "secret"}, 401},
		"agent's token":        {locked, map[string]string{"Authorization": "Bearer " + locked.agents.token("e1")}, 401},
		"token":                {locked, map[string]string{"Authorization": "Bearer secret", "Host": "gym.example"}, 200},
		"token from elsewhere": {locked, map[string]string{"Authorization": "Bearer secret", "Origin": "https://evil.example"}, 403},
	} {
		w := httptest.NewRecorder()
		c.s.ServeHTTP(w, post(getServer, c.header))
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, c.status, w.Body)
		}
	}
}

func TestTokenOverRPC(t *testing.T) {
	t.Parallel()
	srv := serve(t, newScripted(t, script{}), Options{Token: "secret"}, "127.0.0.1:0")
	for _, opt := range [][]connect.ClientOption{nil, {connect.WithGRPC()}} {
		_, err := gymClient(t, srv.url, opt...).GetServer(t.Context(), &pommelv1.GetServerRequest{})
		if connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("without the token: %v", err)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/nothing": 401} {
		if got, _ := get(t, srv.url+path); got != want {
			t.Errorf("%s without the token: %d, want %d", path, got, want)
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for addr, token := range map[string]string{"127.0.0.1:0": "", "[::1]:7": "", "localhost:0": "", "unix:/x": "", "0.0.0.0:7": "t", ":7": "t", "host.example:7": "t"} {
		if err := CheckAddr(addr, token); err != nil {
			t.Errorf("%s with token %q: %v", addr, token, err)
		}
	}
	for _, addr := range []string{"0.0.0.0:0", ":7777", "192.168.0.1:1", "host.example:7", "[::]:1", "7777", "unix:", ""} {
		err := New(newScripted(t, script{}), Options{}).ListenAndServe(t.Context(), addr, nil)
		if fault.KindOf(err) != fault.InvalidArgument {
			t.Errorf("%q without a token: %v", addr, err)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.sock")
	// A server that was killed leaves its socket behind.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	srv := serve(t, newScripted(t, script{}), Options{}, "unix:"+path)
	if srv.url != "unix:"+path {
		t.Errorf("url = %s", srv.url)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
	http := h2c(t, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	})
	if _, err := pommelv1connect.NewGymServiceClient(http, "http://any.name").GetServer(t.Context(), &pommelv1.GetServerRequest{}); err != nil {
		t.Error(err)
	}
	if err := New(newScripted(t, script{}), Options{}).ListenAndServe(t.Context(), "unix:"+path, nil); fault.KindOf(err) != fault.InvalidArgument {
		t.Errorf("second server on the socket: %v", err)
	}
	srv.stop()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(newScripted(t, script{}), Options{}).ListenAndServe(t.Context(), "unix:"+file, nil); fault.KindOf(err) != fault.InvalidArgument {
		t.Errorf("server on a file: %v", err)
	}
}

func TestProbesAndMetrics(t *testing.T) {
	t.Parallel()
	srv := serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0")
	c := gymClient(t, srv.url)
	mustReset(t, c, &pommelv1.ResetRequest{})
	if _, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: "nope"}); err == nil {
		t.Error("no error for an unknown episode")
	}
	if code, body := get(t, srv.url+"/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("readyz = %d %q", code, body)
	}
	_, body := get(t, srv.url+"/metrics")
	for _, want := range []string{"pommel_worlds 2\n", "pommel_worlds_free 1\n", `pommel_call_seconds_count{call="Reset",kind="",surface="rpc"} 1`, `pommel_call_seconds_count{call="Step",kind="not_found",surface="rpc"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics hold no %q:\n%s", want, body)
		}
	}
}
