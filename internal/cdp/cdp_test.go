package cdp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// peer is a scripted browser at the other ends of the pipes.
type peer struct {
	t   *testing.T
	in  *bufio.Reader
	out io.WriteCloser
}

type command struct {
	ID        int64           `json:"id"`
	SessionID string          `json:"sessionId"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
}

func newPeer(t *testing.T) (*peer, *Conn) {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := New(inW, outR)
	t.Cleanup(func() { c.Close(); outW.Close(); inR.Close() })
	return &peer{t: t, in: bufio.NewReader(inR), out: outW}, c
}

func (p *peer) recv() command {
	p.t.Helper()
	b, err := p.in.ReadBytes(0)
	if err != nil {
		p.t.Errorf("peer reads: %v", err)
		return command{}
	}
	var c command
	if err := json.Unmarshal(b[:len(b)-1], &c); err != nil {
		p.t.Errorf("peer decodes %q: %v", b, err)
	}
	return c
}

func (p *peer) send(frames ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.out, strings.Join(frames, "\x00")+"\x00"); err != nil {
		p.t.Errorf("peer writes: %v", err)
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestCallReachesItsSessionAndBack(t *testing.T) {
	t.Parallel()
	p, c := newPeer(t)
	go func() {
		cmd := p.recv()
		if cmd.Method != "Page.navigate" || cmd.SessionID != "S1" || string(cmd.Params) != `{"url":"x"}` {
			t.Errorf("got %+v", cmd)
		}
		p.send(`{"id":` + strconv.FormatInt(cmd.ID, 10) + `,"result":{"frameId":"F","text":"a,\"sessionId\":\"no\""},"sessionId":"S1"}`)
	}()
	var out struct{ FrameID, Text string }
	err := c.Session("S1").Call(testContext(t), "Page.navigate", map[string]string{"url": "x"}, &out)
	if err != nil || out.FrameID != "F" || out.Text != `a,"sessionId":"no"` {
		t.Fatalf("out %+v, err %v", out, err)
	}
}

func TestAnswersInAnyOrder(t *testing.T) {
	t.Parallel()
	p, c := newPeer(t)
	s := c.Session("")
	go func() {
		a, b := p.recv(), p.recv()
		p.send(`{"id":`+strconv.FormatInt(b.ID, 10)+`,"result":{"n":2}}`, `{"id":`+strconv.FormatInt(a.ID, 10)+`,"result":{"n":1}}`)
	}()
	first, second := s.Send("A.a", nil), s.Send("A.b", nil)
	r1, err1 := first.Wait(testContext(t))
	r2, err2 := second.Wait(testContext(t))
	if err1 != nil || err2 != nil || string(r1) != `{"n":1}` || string(r2) != `{"n":2}` {
		t.Fatalf("%s %v, %s %v", r1, err1, r2, err2)
	}
}

func TestRefusalIsTyped(t *testing.T) {
	t.Parallel()
	p, c := newPeer(t)
	go func() {
		cmd := p.recv()
		p.send(`{"id":` + strconv.FormatInt(cmd.ID, 10) + `,"error":{"code":-32000,"message":"No such target","data":"t1"}}`)
	}()
	err := c.Session("").Call(testContext(t), "Target.closeTarget", nil, nil)
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != -32000 || refused.Method != "Target.closeTarget" {
		t.Fatalf("err %v", err)
	}
	if got, want := err.Error(), "Target.closeTarget: No such target (t1)"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestEventsGoToTheirSessionInOrder(t *testing.T) {
	t.Parallel()
	p, c := newPeer(t)
	var mu sync.Mutex
	var got []string
	done := make(chan struct{})
	c.Session("S").Handle(func(ev Event) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, ev.Method+string(ev.Params))
		if ev.Method == "E.last" {
			close(done)
		}
	})
	c.Session("other").Handle(func(ev Event) { t.Errorf("other session got %s", ev.Method) })
	p.send(
		`{"method":"E.one","params":{"i":1},"sessionId":"S"}`,
		`{"method":"E.one","params":{"i":2}}`, // the browser's own: nobody listens
		`{"method":"E.two","params":{"sessionId":"other"},"sessionId":"S"}`,
		`{"method":"E.last","params":{},"sessionId":"S"}`,
	)
	<-done
	want := `E.one{"i":1} E.two{"sessionId":"other"} E.last{}`
	mu.Lock()
	defer mu.Unlock()
	if s := strings.Join(got, " "); s != want {
		t.Fatalf("got %s, want %s", s, want)
	}
}

func TestEndOfPipeFailsPendingAndLaterCalls(t *testing.T) {
	t.Parallel()
	p, c := newPeer(t)
	pending := c.Session("S").Send("Runtime.evaluate", nil)
	p.recv()
	p.out.Close()
	if _, err := pending.Wait(testContext(t)); !errors.Is(err, ErrClosed) {
		t.Fatalf("pending call: %v", err)
	}
	<-c.Done()
	if err := c.Session("S").Call(testContext(t), "Runtime.evaluate", nil, nil); !errors.Is(err, ErrClosed) {
		t.Fatalf("later call: %v", err)
	}
	if !errors.Is(c.Err(), ErrClosed) || !errors.Is(c.Err(), io.EOF) {
		t.Fatalf("Err: %v", c.Err())
	}
}

func TestGarbageEndsTheConnection(t *testing.T) {
	t.Parallel()
	p, c := newPeer(t)
	p.send(`{"id":`)
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "parse message") {
		t.Fatalf("Err: %v", err)
	}
}

func TestWaitEndsWithItsContextAndLeavesNothing(t *testing.T) {
	t.Parallel()
	p, c := newPeer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Session("").Call(ctx, "A.slow", nil, nil)
	p.recv()
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("err %v", err)
	}
	if n := c.Stats().Pending; n != 0 {
		t.Fatalf("%d calls are still pending", n)
	}
	p.send(`{"id":1,"result":{}}`) // a late answer is dropped
	go func() {
		cmd := p.recv()
		p.send(`{"id":` + strconv.FormatInt(cmd.ID, 10) + `,"result":{}}`)
	}()
	if err := c.Session("").Call(testContext(t), "A.next", nil, nil); err != nil {
		t.Fatalf("next call: %v", err)
	}
}

// The browser blocks on writing when nobody reads; then it reads no more either.
// A reader that stopped for a slow waiter would end in a deadlock.
func TestReaderDrainsWhileNobodyWaits(t *testing.T) {
	t.Parallel()
	p, c := newPeer(t)
	var pendings []*Pending
	for range 100 {
		pendings = append(pendings, c.Session("").Send("A.a", nil))
		cmd := p.recv()
		p.send(`{"method":"E.noise","params":{"x":"`+strings.Repeat("y", 100_000)+`"}}`,
			`{"id":`+strconv.FormatInt(cmd.ID, 10)+`,"result":{"big":"`+strings.Repeat("z", 100_000)+`"}}`)
	}
	for _, q := range pendings {
		r, err := q.Wait(testContext(t))
		if err != nil || len(r) != 100_000+len(`{"big":""}`) {
			t.Fatalf("%d bytes, err %v", len(r), err)
		}
	}
}

func TestCloseIsIdempotent(t *testing.T) {
	t.Parallel()
	_, c := newPeer(t)
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if err := c.Session("").Call(testContext(t), "A.a", nil, nil); !errors.Is(err, ErrClosed) {
		t.Fatalf("err %v", err)
	}
}

func TestFramesOfEverySizeInEveryPiece(t *testing.T) {
	t.Parallel()
	var sizes = []int{2, 10, readBuffer - 1, readBuffer, readBuffer + 1, 3 * readBuffer, 40 * readBuffer, 5, 7}
	var all strings.Builder
	for _, n := range sizes {
		all.WriteString(strings.Repeat("x", n) + "\x00")
	}
	f := frames{r: &chunks{s: all.String(), n: 9973}, buf: make([]byte, readBuffer)}
	for i, n := range sizes {
		b, err := f.next()
		if err != nil || len(b) != n {
			t.Fatalf("frame %d: %d bytes, want %d, err %v", i, len(b), n, err)
		}
	}
	if _, err := f.next(); err != io.EOF {
		t.Fatalf("after the end: %v", err)
	}
}

type chunks struct {
	s string
	n int
}

func (c *chunks) Read(b []byte) (int, error) {
	if c.s == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), c.n)], c.s)
	c.s = c.s[n:]
	return n, nil
}

func FuzzParse(f *testing.F) {
	f.Add(int64(7), "S1", "Page.loadEventFired", []byte(`{"a":"x,\"sessionId\":\"y\""}`))
	f.Add(int64(0), "", "", []byte(`{}`))
	f.Add(int64(1<<60), "AB", `we"ird`, []byte(`{"sessionId":"q"}`))
	f.Fuzz(func(t *testing.T, id int64, session, method string, payload []byte) {
		// Whatever arrives, parsing must not panic.
		var m message
		_ = parse(payload, &m)

		var object map[string]json.RawMessage
		if json.Unmarshal(payload, &object) != nil || object == nil {
			t.Skip("the payload is no object")
		}
		payload = []byte(strings.TrimSpace(string(payload)))
		frame := map[string]any{}
		order := []string{}
		add := func(k string, v any) { frame[k] = v; order = append(order, k) }
		if id > 0 {
			add("id", id)
			add("result", json.RawMessage(payload))
		} else {
			add("method", method)
			add("params", json.RawMessage(payload))
		}
		if session != "" {
			add("sessionId", session)
		}
		b := []byte("{")
		for i, k := range order {
			if i > 0 {
				b = append(b, ',')
			}
			v := payload
			if k != "result" && k != "params" {
				v, _ = json.Marshal(frame[k])
			}
			b = append(append(append(b, `"`+k+`":`...), v...), []byte(nil)...)
		}
		b = append(b, '}')
		var want message
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("the test built a bad frame %q: %v", b, err)
		}
		if want.ID == 0 && want.Method == "" {
			return
		}
		if err := parse(b, &m); err != nil {
			t.Fatalf("parse %q: %v", b, err)
		}
		if m.ID != want.ID || m.Method != want.Method || m.SessionID != want.SessionID ||
			string(m.Result) != string(want.Result) || string(m.Params) != string(want.Params) {
			t.Fatalf("parse %q\n got %+v\nwant %+v", b, m, want)
		}
	})
}
