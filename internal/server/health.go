package server

import "net/http"

// healthz says that the process answers.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	text(w, http.StatusOK, "ok\n")
}

// readyz says that new episodes may be asked for here. Taken worlds are no reason to
// send callers elsewhere: they wait their turn.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case s.draining.Load():
		text(w, http.StatusServiceUnavailable, "shutting down\n")
	case s.sessions.Describe().Worlds == 0:
		text(w, http.StatusServiceUnavailable, "no worlds\n")
	default:
		text(w, http.StatusOK, "ready\n")
	}
}

func text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // a prober that has gone needs no answer
}
