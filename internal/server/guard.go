package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"github.com/pommelgym/pommel/internal/server/dashboard"
)

// guard lets through only requests that may reach the gym.
//
// A server with a token asks for the token. A server without one relies on being
// out of reach, and a web page in a browser on the same machine is the one
// stranger that can reach loopback: directly, which the browser marks as
// cross-site, or by a name of its own that it makes point to 127.0.0.1 (DNS
// rebinding), which shows in the Host header.
func (s *Server) guard(next http.Handler) http.Handler {
	writer := connect.NewErrorWriter()
	refuse := func(w http.ResponseWriter, r *http.Request, status int, code connect.Code, reason string) {
		s.log.Warn("request refused", "reason", reason, "remote", r.RemoteAddr, "host", r.Host, "path", r.URL.Path)
		if writer.IsSupported(r) {
			_ = writer.Write(w, r, connect.NewError(code, errors.New(reason))) // the caller has gone if this fails
			return
		}
		http.Error(w, reason, status)
	}
	origin := http.NewCrossOriginProtection()
	want := sha256.Sum256([]byte(s.opts.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.opts.Token == "" && !s.ownHost(r):
			refuse(w, r, http.StatusForbidden, connect.CodePermissionDenied,
				"this server answers only to names of loopback; give it a token to serve under another name")
		case origin.Check(r) != nil || foreignOrigin(r):
			refuse(w, r, http.StatusForbidden, connect.CodePermissionDenied, "cross-origin requests from web pages are refused")
		case s.opts.Token != "" && !probe(r.URL.Path) && !sameToken(r, want) && !s.agentCall(r):
			w.Header().Set("WWW-Authenticate", challenge(r.URL.Path))
			refuse(w, r, http.StatusUnauthorized, connect.CodeUnauthenticated, "the token is missing or wrong; send Authorization: Bearer <token>")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// mcpPath is where agents act.
const mcpPath = "/mcp"

// probe says that a path tells nothing secret and is asked by machines that hold no token.
func probe(path string) bool { return path == "/healthz" || path == "/readyz" }

// challenge says how to send the token. A person's browser asks for a password.
func challenge(path string) string {
	if path == "/" || strings.HasPrefix(path, dashboard.Path) {
		return `Basic realm="pommel: any name, and the token as the password", charset="UTF-8"`
	}
	return "Bearer"
}

// sameToken compares digests, so that time tells neither content nor length. Callers
// whose library takes a URL and no headers send the token as the password of Basic
// authentication.
func sameToken(r *http.Request, want [sha256.Size]byte) bool {
	token := bearer(r)
	if _, password, ok := r.BasicAuth(); ok {
		token = password
	}
	got := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func bearer(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return token
}

// agentCall says that an agent acts on its own episode: its token opens MCP alone.
func (s *Server) agentCall(r *http.Request) bool {
	_, ok := s.agents.episode(bearer(r))
	return ok && r.URL.Path == mcpPath
}

// foreignOrigin says that a page from elsewhere opens a connection: browsers let any page
// open a WebSocket, and the check for changing requests does not look at it.
func foreignOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}

// ownHost says that the request was addressed to loopback by an honest name, or came
// through a unix socket, which no web page can open.
func (s *Server) ownHost(r *http.Request) bool {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && addr.Network() == "unix" {
		return true
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") || isLoopback(host) {
		return true
	}
	for _, h := range s.opts.Hosts {
		if strings.EqualFold(host, h) {
			return true
		}
	}
	return false
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
