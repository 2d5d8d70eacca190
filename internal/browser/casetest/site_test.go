package casetest

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

//go:embed testdata
var testdata embed.FS

// site serves the pages and the routes that they call.
type site struct {
	*httptest.Server
	// other is the same site under another origin.
	other string
	// secret is a server that no page may reach; hits counts who did.
	secret *httptest.Server
	hits   atomic.Int64
	posts  atomic.Int64
	over   chan struct{} // closed when the test ends
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{over: make(chan struct{})}
	mux := http.NewServeMux()
	s.Server = httptest.NewServer(mux)
	s.other = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	s.secret = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.hits.Add(1)
		fmt.Fprint(w, "<title>secret</title>the answer is 42")
	}))
	t.Cleanup(func() {
		close(s.over)
		s.CloseClientConnections()
		s.Close()
		s.secret.CloseClientConnections()
		s.secret.Close()
	})
	pages, err := fs.Sub(testdata, "testdata")
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/", http.FileServerFS(pages))
	s.routes(mux)
	s.texts(mux)
	return s
}

func html(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, text)
}

// pause is a slow server: it ends early when the browser has gone.
func (s *site) pause(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	case <-s.over:
	}
}

func millis(r *http.Request) time.Duration {
	n, err := strconv.Atoi(r.URL.Query().Get("ms"))
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

func (s *site) routes(mux *http.ServeMux) {
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		s.pause(r, millis(r))
		html(w, "<title>slow</title><script>location='/a'</script>")
	})
	mux.HandleFunc("/a", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/next", http.StatusFound) })
	mux.HandleFunc("/next", func(w http.ResponseWriter, _ *http.Request) { html(w, "<title>next</title><h1>the next page</h1>") })
	mux.HandleFunc("POST /count", func(w http.ResponseWriter, r *http.Request) {
		n := s.posts.Add(1)
		s.pause(r, millis(r))
		html(w, fmt.Sprintf("<title>count</title><h1>posts: %d</h1>", n))
	})
	mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: x\n\n")
		w.(http.Flusher).Flush()
		s.pause(r, time.Hour)
	})
	mux.HandleFunc("/poll", func(w http.ResponseWriter, r *http.Request) { s.pause(r, 25*time.Second) })
	mux.HandleFunc("/apology", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not now", http.StatusServiceUnavailable) })
	mux.HandleFunc("/tick", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/save", func(w http.ResponseWriter, r *http.Request) { s.pause(r, millis(r)) })
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
}

// texts serves pages whose encoding has to be found out.
func (s *site) texts(mux *http.ServeMux) {
	word := "\xcf\xf0\xe8\xe2\xe5\xf2" // a greeting in windows-1251
	mux.HandleFunc("/text/header", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=windows-1251")
		fmt.Fprint(w, "<title>t</title><p>"+word+"</p>")
	})
	mux.HandleFunc("/text/meta", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<meta charset=windows-1251><title>t</title><p>"+word+"</p>")
	})
	mux.HandleFunc("/text/bare", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>t</title><p>Привет</p>")
	})
}
