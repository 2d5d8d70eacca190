package server

import "net/http"

// gathered sends a message in one piece. The RPC library writes its length and its
// content one after the other, and HTTP/2 makes a frame of each, which costs a system call,
// several wake-ups, and the same once more at the caller.
type gathered struct {
	http.ResponseWriter
	flusher http.Flusher
	buf     []byte
}

// mostGathered is what is kept to be sent in one piece; the copy of more takes longer than another frame.
const mostGathered = 256 << 10

// gatherWrites does so for all that next writes.
func gatherWrites(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := w.(http.Flusher)
		if !ok || r.ProtoMajor < 2 {
			next.ServeHTTP(w, r)
			return
		}
		g := &gathered{ResponseWriter: w, flusher: f}
		next.ServeHTTP(g, r)
		_ = g.drain() // who is gone does not miss the farewell
	})
}

// Unwrap lets http.ResponseController reach what is below.
func (g *gathered) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// Write keeps p until Flush.
func (g *gathered) Write(p []byte) (int, error) {
	if len(g.buf)+len(p) <= mostGathered {
		g.buf = append(g.buf, p...)
		return len(p), nil
	}
	if err := g.drain(); err != nil {
		return 0, err
	}
	return g.ResponseWriter.Write(p)
}

// Flush sends what was kept. An error comes again with the next write: a broken connection
// stays broken.
func (g *gathered) Flush() {
	if g.drain() == nil {
		g.flusher.Flush()
	}
}

func (g *gathered) drain() error {
	if len(g.buf) == 0 {
		return nil
	}
	_, err := g.ResponseWriter.Write(g.buf)
	g.buf = g.buf[:0]
	return err
}
