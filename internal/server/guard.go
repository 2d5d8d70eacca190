package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"connectrpc.com/connect"
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
	want := sha256.Sum256([]byte("Bearer " + s.opts.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.opts.Token == "" && !s.ownHost(r):
			refuse(w, r, http.StatusForbidden, connect.CodePermissionDenied,
				"this server answers only to names of loopback; give it a token to serve under another name")
		case origin.Check(r) != nil:
			refuse(w, r, http.StatusForbidden, connect.CodePermissionDenied, "cross-origin requests from web pages are refused")
		case s.opts.Token != "" && !probe(r.URL.Path) && !sameToken(r, want):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, connect.CodeUnauthenticated, "the token is missing or wrong; send Authorization: Bearer <token>")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// probe says that a path tells nothing secret and is asked by machines that hold no token.
func probe(path string) bool { return path == "/healthz" || path == "/readyz" }

// sameToken compares digests, so that time tells neither content nor length.
func sameToken(r *http.Request, want [sha256.Size]byte) bool {
	got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
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
