package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
)

// ListenAndServe serves at addr until ctx ends, then stops gently: it refuses new
// episodes, waits for Options.Drain, and ends streams after the call they are in.
//
// addr is "host:port" (port 0 takes a free one) or "unix:/path". ready, if not nil,
// is called once with the bound address as a URL, such as "http://127.0.0.1:43121"
// or "unix:/run/pommel.sock". It returns nil after a stop by ctx.
func (s *Server) ListenAndServe(ctx context.Context, addr string, ready func(url string)) error {
	l, err := s.listen(ctx, addr)
	if err != nil {
		return err
	}
	return s.Serve(ctx, l, ready)
}

// Serve is ListenAndServe on a listener that is open already. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener, ready func(url string)) error {
	srv := s.httpServer()
	served := make(chan error, 1)
	go func() {
		if s.opts.TLS != nil {
			served <- srv.ServeTLS(l, "", "")
			return
		}
		served <- srv.Serve(l)
	}()
	if ready != nil {
		ready(s.url(l.Addr()))
	}
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serve %s: %w", l.Addr(), err), srv.Close())
	case <-ctx.Done():
	}
	s.shutdown(context.WithoutCancel(ctx), srv)
	_ = <-served // it says only that the server was closed
	return nil
}

// shutdown drains, then lets calls end, then cuts what is left.
func (s *Server) shutdown(ctx context.Context, srv *http.Server) {
	s.draining.Store(true)
	if s.opts.Drain != nil {
		if err := s.opts.Drain(ctx); err != nil {
			s.log.Warn("episodes were still running when the server stopped", "error", err)
		}
	}
	s.stop.Do(func() { close(s.stopping) })
	ctx, cancel := context.WithTimeout(ctx, cutTimeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	if s.wait != nil {
		err = errors.Join(err, s.wait(ctx))
	}
	if err != nil {
		s.log.Warn("calls were still running when the server stopped", "waited", cutTimeout, "error", err)
		_ = srv.Close() // the listener is closed already; only connections are left to cut
	}
}

func (s *Server) httpServer() *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	if s.opts.TLS != nil {
		protocols.SetHTTP2(true)
	} else {
		protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Server{
		Handler:           s,
		Protocols:         &protocols,
		TLSConfig:         s.opts.TLS,
		ReadHeaderTimeout: 10 * time.Second,
		// An agent may think for minutes between two steps on one connection.
		IdleTimeout:    30 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			// One connection may carry the streams of a whole trainer.
			MaxConcurrentStreams: 4096,
			MaxReadFrameSize:     1 << 20,
			// A caller whose host vanished sends no farewell: ask, and cut when nothing comes back.
			SendPingTimeout:  15 * time.Second,
			PingTimeout:      15 * time.Second,
			WriteByteTimeout: time.Minute,
		},
	}
}

func (s *Server) url(a net.Addr) string {
	switch {
	case a.Network() == "unix":
		return "unix:" + a.String()
	case s.opts.TLS != nil:
		return "https://" + a.String()
	}
	return "http://" + a.String()
}

// CheckAddr says what is wrong with addr as an address to listen on, before anything
// costly is started. Strangers could reach one beyond loopback, so that needs a token.
func CheckAddr(addr, token string) error {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if path == "" {
			return fault.New(fault.InvalidArgument, "listen address \"unix:\" holds no path; want unix:/path")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fault.Wrap(fault.InvalidArgument, err, "listen address %q; want host:port or unix:/path", addr)
	}
	if token == "" && !isLoopback(host) && host != "localhost" {
		return fault.New(fault.InvalidArgument, "refused to listen on %q without a token: anybody who can reach it could use the gym", addr).
			WithHint("set a token, or listen on 127.0.0.1 or a unix socket")
	}
	return nil
}

// listen opens addr, and refuses one that strangers could reach without a token.
func (s *Server) listen(ctx context.Context, addr string) (net.Listener, error) {
	if err := CheckAddr(addr, s.opts.Token); err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	// "localhost" is whatever the resolver says; trust only what was bound.
	if t, ok := l.Addr().(*net.TCPAddr); s.opts.Token == "" && (!ok || !t.IP.IsLoopback()) {
		return nil, errors.Join(fault.New(fault.InvalidArgument, "%s is %s, which is not loopback, and there is no token", addr, l.Addr()), l.Close())
	}
	return l, nil
}

// listenUnix opens a socket for this user alone. A socket that a dead server left
// behind is replaced; one that answers is not.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fault.New(fault.InvalidArgument, "%s exists and is no socket", path)
		}
		if c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(fault.New(fault.InvalidArgument, "another server listens on %s", path), c.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the socket of a dead server: %w", err)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("keep %s for this user: %w", path, err), l.Close())
	}
	return l, nil
}
