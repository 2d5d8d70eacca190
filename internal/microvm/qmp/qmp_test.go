package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// peer plays QEMU: it answers each command with the lines that say returns.
type peer struct {
	client *net.UnixConn
	asked  chan string
}

const greeting = `{"QMP": {"version": {}, "capabilities": []}}`

func newPeer(t *testing.T, first string, say func(command string) []string) *peer {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "qmp"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &peer{asked: make(chan string, 100)}
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		defer close(p.asked)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := c.Write([]byte(first + "\n")); err != nil {
			return
		}
		for sc := bufio.NewScanner(c); sc.Scan(); {
			var m struct{ Execute string }
			if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
				t.Errorf("not a command: %s", sc.Bytes())
				return
			}
			p.asked <- m.Execute
			lines := say(m.Execute)
			if lines == nil {
				return
			}
			for _, line := range lines {
				if _, err := c.Write([]byte(line + "\n")); err != nil {
					return
				}
			}
		}
	}()
	if p.client, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.client.Close() })
	return p
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

const done = `{"return": {}}`

func TestStopBetweenEvents(t *testing.T) {
	t.Parallel()
	p := newPeer(t, greeting, func(command string) []string {
		switch command {
		case "stop":
			return []string{`{"event": "STOP", "timestamp": {}}`, done}
		case "query-status":
			return []string{`{"return": {"status": "paused"}}`, `{"event": "LATE", "data": {"n": 1}}`}
		}
		return []string{done}
	})
	events := make(chan Event, 10)
	c, err := New(testContext(t), p.client, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if a, b := <-events, <-events; a.Name != "STOP" || b.Name != "LATE" || string(b.Data) != `{"n": 1}` {
		t.Errorf("events %v %s", a, b.Data)
	}
	c.Close()
	var asked []string
	for command := range p.asked {
		asked = append(asked, command)
	}
	if got := strings.Join(asked, " "); got != "qmp_capabilities stop query-status" {
		t.Errorf("asked %s", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ command, answer, want string }{
		"an error":          {"cont", `{"error": {"class": "GenericError", "desc": "no such thing"}}`, "qemu cont: no such thing"},
		"nonsense":          {"cont", `{nonsense`, "no JSON"},
		"not stopped":       {"query-status", `{"return": {"status": "running"}}`, "the machine is running"},
		"a save that fails": {"query-migrate", `{"return": {"status": "failed", "error-desc": "full"}}`, "qemu migrate: failed full"},
		"the end":           {"cont", "", "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, greeting, func(command string) []string {
				switch {
				case command != c.command:
					return []string{done}
				case c.answer == "":
					return nil
				}
				return []string{c.answer}
			})
			q, err := New(testContext(t), p.client, nil)
			if err != nil {
				t.Fatal(err)
			}
			switch c.command {
			case "query-status":
				err = q.Stop(testContext(t))
			case "query-migrate":
				err = q.Save(testContext(t), 0)
			default:
				err = q.Continue(testContext(t))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
			var refused *Error
			if name == "an error" && (!errors.As(err, &refused) || refused.Class != "GenericError") {
				t.Errorf("%v is no refusal", err)
			}
		})
	}
}

func TestNoGreeting(t *testing.T) {
	t.Parallel()
	p := newPeer(t, done, func(string) []string { return []string{done} })
	if _, err := New(testContext(t), p.client, nil); err == nil || !strings.Contains(err.Error(), "greet") {
		t.Errorf("got %v", err)
	}
}

// After a context's end no answer is taken for that of another command.
func TestNoAnswerInTime(t *testing.T) {
	t.Parallel()
	p := newPeer(t, greeting, func(command string) []string {
		if command == "cont" {
			return []string{}
		}
		return []string{done}
	})
	c, err := New(testContext(t), p.client, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	<-p.asked
	go func() {
		<-p.asked
		cancel()
	}()
	if err := c.Continue(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := c.Continue(testContext(t)); err == nil {
		t.Error("the connection is still used")
	}
}

func TestLoadWaits(t *testing.T) {
	t.Parallel()
	left := 3
	p := newPeer(t, greeting, func(command string) []string {
		if command != "query-status" {
			return []string{done}
		}
		if left--; left > 0 {
			return []string{`{"return": {"status": "inmigrate"}}`}
		}
		return []string{`{"return": {"status": "paused"}}`}
	})
	c, err := New(testContext(t), p.client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(testContext(t), 0); err != nil {
		t.Fatal(err)
	}
	if left != 0 {
		t.Errorf("it was asked %d times too few", left)
	}
}
