package rewind

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestCThreads: threads end and are made again under their numbers, timers are armed, areas are torn apart.
func TestCThreads(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startProgram(t, exec.Command(compileC(t, "threads")))
	p.line()
	p.ask("w")
	want := p.ask("q")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	var f, made figures
	next := ""
	for i := range soak(rounds) {
		first := p.ask("w")
		if next == "" {
			next = first
		}
		if first != next {
			t.Fatalf("round %d: the threads answered %q, in the first round %q", i, first, next)
		}
		if i%2 == 1 {
			p.ask("k%d", i%8+1)
		}
		if i%5 == 0 {
			p.ask("a")
			for strings.Contains(p.ask("q"), "alarms 0") {
			}
		}
		if i%3 == 0 {
			p.ask("c")
			p.ask("u")
		}
		if i%2 == 0 && i%5 != 0 && i%3 != 0 {
			f.add(mustRewind(t, tree, s))
		} else {
			r := mustVerify(t, tree, s)
			if r.ThreadsCreated > 0 {
				made.add(r)
			}
		}
		if got := p.ask("q"); got != want {
			t.Fatalf("round %d: state %q, was %q at the snapshot", i, got, want)
		}
		if i%2 == 1 {
			if got := p.ask("k8"); got != "joined 828" {
				t.Fatalf("round %d: threads made again do not join: %s", i, got)
			}
			mustVerify(t, tree, s)
		}
	}
	f.print(t, "c threads")
	made.print(t, "c threads made again")
}

// TestPython: an interpreter with a garbage collector, threads that come, large allocations.
func TestPython(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startProgram(t, exec.Command(tool(t, "/usr/bin/python3", "python3"), "testdata/mutate.py"))
	if got := p.line(); got != "ready" {
		t.Fatal(got)
	}
	p.ask("query")
	want := p.ask("query")
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	var f figures
	for i := range soak(rounds) {
		more := ""
		if i%3 == 0 {
			more = " more"
		}
		p.ask("mutate 4%s", more)
		f.rewind(t, tree, s, i)
		if got := p.ask("query"); got != want {
			t.Fatalf("round %d: state %q, was %q", i, got, want)
		}
	}
	f.print(t, "python")
}

// TestNode: an event loop with an epoll set, a thread pool, a just-in-time compiler.
func TestNode(t *testing.T) {
	if !inside(t) {
		return
	}
	p := startProgram(t, exec.Command(tool(t, "node"), "testdata/server.js"))
	p.line()
	url := "http://" + p.line()
	do := func(c *http.Client, path, body string) string {
		t.Helper()
		resp, err := c.Post(url+path, "text/plain", strings.NewReader(body))
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
	fresh := func() *http.Client { return &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second} }
	c := fresh()
	for range 30 {
		do(c, "/state", "")
		do(c, "/hash", "")
	}
	c.CloseIdleConnections()
	want := do(c, "/state", "")
	c.CloseIdleConnections()
	tree := attach(t, Options{Roots: []int{p.pid()}})
	s := snapshot(t, tree)
	var f figures
	for i := range soak(rounds) {
		c := fresh()
		for range 3 {
			do(c, "/add", strings.Repeat("x", 100_000))
		}
		if i%4 == 0 {
			do(c, "/hash", "")
		}
		if i%2 == 0 {
			c.CloseIdleConnections()
		}
		f.rewind(t, tree, s, i)
		c.CloseIdleConnections()
		if got := do(c, "/state", ""); got != want {
			t.Fatalf("round %d: state %q, was %q", i, got, want)
		}
		c.CloseIdleConnections()
	}
	f.print(t, "node")
}
