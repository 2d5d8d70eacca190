package rewind

import (
	"io"
	"net/http"
	"testing"
)

// TestGoMemory: a Go program with its garbage collector, goroutines and threads.
func TestGoMemory(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startTarget(t, "memory")
	p.ask("mutate")
	want := p.ask("state")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	var f figures
	for i := range soak(rounds) {
		for range i%3 + 1 {
			p.ask("mutate")
		}
		f.rewind(t, tree, s, i)
		if got := p.ask("state"); got != want {
			t.Fatalf("round %d: state %q, was %q at the snapshot", i, got, want)
		}
	}
	f.print(t, "go memory")
}

// TestGoHTTP: a Go web server with a connection that is open at the snapshot and ones that come and go.
func TestGoHTTP(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startTarget(t, "http")
	url := "http://" + p.line()
	get := func(c *http.Client, path string) string {
		t.Helper()
		resp, err := c.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	kept := &http.Client{Transport: &http.Transport{}}
	for range 20 {
		get(kept, "/add")
	}
	want := get(kept, "/state")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	var f figures
	for i := range soak(rounds) {
		fresh := &http.Client{Transport: &http.Transport{}}
		get(kept, "/add")
		get(fresh, "/add")
		get(fresh, "/add")
		f.rewind(t, tree, s, i)
		fresh.CloseIdleConnections()
		if got := get(kept, "/state"); got != want {
			t.Fatalf("round %d: state %q, was %q at the snapshot", i, got, want)
		}
	}
	f.print(t, "go http")
}
