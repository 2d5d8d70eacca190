package server

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/pommelgym/pommel/client"
	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gym"
)

// The round trip of a step that takes no time, with a text of 15 kB: what the wire costs.
func BenchmarkStepOverStream(b *testing.B) { benchmarkStep(b, true) }
func BenchmarkStepStreamGRPC(b *testing.B) { benchmarkStep(b, true, connect.WithGRPC()) }
func BenchmarkStepUnary(b *testing.B)      { benchmarkStep(b, false) }
func BenchmarkStepUnaryJSON(b *testing.B)  { benchmarkStep(b, false, connect.WithProtoJSON()) }

// longPage answers at once with a text of 15 kB.
var longPage = script{observation: func(int) *gym.Observation {
	return &gym.Observation{URL: "http://shop/", Title: "Shop", Text: longText, Tabs: []gym.Tab{{URL: "http://shop/"}}}
}}

var longText = strings.Repeat("[12] button 'Add to basket', focused\n", 15<<10/37)

func benchmarkStep(b *testing.B, stream bool, opts ...connect.ClientOption) {
	srv := serve(b, newScripted(b, longPage), Options{}, "127.0.0.1:0")
	c := gymClient(b, srv.url, append(opts, connect.WithAcceptCompression("gzip", nil, nil))...)
	id := mustReset(b, c, &pommelv1.ResetRequest{}).GetEpisodeId()
	step := func() error {
		_, err := c.Step(context.Background(), &pommelv1.StepRequest{EpisodeId: id, Action: "noop()"})
		return err
	}
	if stream {
		st, err := c.Session(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		step = func() error {
			if err := st.Send(&pommelv1.SessionRequest{Call: stepOf(id, 0, "noop()")}); err != nil {
				return err
			}
			_, err := st.Receive()
			return err
		}
	}
	timed(b, 0, step)
}

// The same through the client package, as trainers in Go use it.
func BenchmarkStepOverClient(b *testing.B) {
	timed(b, 0, stepOverClient(b))
}

// As above, and the same bytes over a bare TCP connection, with the pause between two calls that a step
// of a world is: processors sleep in it, and waking them is a part of what an answer takes.
func BenchmarkRested(b *testing.B) {
	const pause = 10 * time.Millisecond
	b.Run("step", func(b *testing.B) { timed(b, pause, stepOverClient(b)) })
	b.Run("tcp", func(b *testing.B) { timed(b, pause, bareEcho(b, len(longText))) })
}

// bareEcho asks with a few bytes and gets n.
func bareEcho(b *testing.B, n int) func() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		ask, answer := make([]byte, 64), make([]byte, n)
		for {
			if _, err := io.ReadFull(c, ask); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	ask, answer := make([]byte, 64), make([]byte, n)
	return func() error {
		if _, err := c.Write(ask); err != nil {
			return err
		}
		_, err := io.ReadFull(c, answer)
		return err
	}
}

func stepOverClient(b *testing.B) func() error {
	srv := serve(b, newScripted(b, longPage), Options{}, "127.0.0.1:0")
	c, err := client.Dial(srv.url, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	sess, err := c.Session(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { sess.Close() })
	if _, err := sess.Reset(b.Context(), client.Request{Task: "buy-item"}); err != nil {
		b.Fatal(err)
	}
	return func() error { _, err := sess.Step(context.Background(), "noop()"); return err }
}

func timed(b *testing.B, pause time.Duration, step func() error) {
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		time.Sleep(pause)
		start := time.Now()
		if err := step(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
