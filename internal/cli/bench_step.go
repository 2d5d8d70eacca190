package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/client"
	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server"
)

type benchStepCmd struct {
	worldFlags
	jsonFlag
	N        int  `default:"1000" help:"How many steps of the first action; the others are made a tenth as often."`
	Warm     int  `default:"50" help:"Steps before the measurement."`
	Elements bool `help:"Ask for elements too, not for text alone."`
}

// stepBench is the result of bench step.
type stepBench struct {
	World    string            `json:"world"`
	Action   string            `json:"action"`
	N        int               `json:"n"`
	Failures int               `json:"failures"`
	MS       spread            `json:"ms"`
	ServerMS map[string]spread `json:"server_ms"`
	ByAction map[string]spread `json:"by_action"`
	Counts   map[string]int    `json:"counts"`
	TextSize int               `json:"observation_bytes"`
}

func (c *benchStepCmd) Run(ctx context.Context, s *State) error {
	c.Traces = "off"
	g, err := c.open(ctx, s, 1)
	if err != nil {
		return err
	}
	defer g.Close()
	plan, err := g.Bench()
	if err != nil {
		return err
	}
	session, stop, err := serveFor(ctx, g)
	if err != nil {
		return err
	}
	defer stop()
	// The spare world that comes up behind the first one would take half the machine.
	if err := g.Settled(ctx); err != nil {
		return err
	}
	res, err := c.measure(ctx, s, session, plan)
	if err != nil {
		return err
	}
	res.World = g.Describe().World
	if c.JSON {
		return s.printJSON(res)
	}
	rows := [][]string{res.MS.row(res.Action, res.N)}
	for _, a := range plan.Actions[1:] {
		rows = append(rows, res.ByAction[a.Name].row(a.Name, res.Counts[a.Name]))
	}
	for _, part := range []string{"act", "observe", "judge", "total", "rpc"} {
		rows = append(rows, res.ServerMS[part].row("  of "+res.Action+": "+part, res.N))
	}
	table(s.Stdout, spreadHeader, rows...)
	fmt.Fprintf(s.Stdout, "\nover the stream RPC, text observation of %d bytes, judge included; %d failures\n", res.TextSize, res.Failures)
	return nil
}

// serveFor serves a gym on loopback and opens one session to it.
func serveFor(ctx context.Context, g *gym.Gym) (*client.Session, func(), error) {
	sessions := g.Sessions(gym.SessionLimits{Lease: 10 * time.Minute})
	ctx, cancel := context.WithCancel(ctx)
	address, served := make(chan string, 1), make(chan error, 1)
	go func() {
		served <- server.New(sessions, server.Options{}).ListenAndServe(ctx, "127.0.0.1:0", func(a string) { address <- a })
	}()
	stop := func() { sessions.Close(); cancel(); _ = <-served }
	var addr string
	select {
	case addr = <-address:
	case err := <-served:
		cancel()
		return nil, nil, err
	}
	c, err := client.Dial(addr, client.Options{Name: "bench"})
	if err != nil {
		stop()
		return nil, nil, err
	}
	sess, err := c.Session(ctx)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return sess, func() { _ = sess.Close(); c.Close(); stop() }, nil
}

// measure makes every action of the plan many times, on one page of one episode.
func (c *benchStepCmd) measure(ctx context.Context, s *State, sess *client.Session, plan gym.BenchPlan) (*stepBench, error) {
	var view *client.View
	if c.Elements {
		view = &client.View{Elements: true}
	}
	res := &stepBench{Action: plan.Actions[0].Name, N: c.N, ByAction: map[string]spread{}, ServerMS: map[string]spread{}, Counts: map[string]int{}}
	if _, err := sess.Reset(ctx, client.Request{Task: plan.Task, View: view, MaxSteps: 1 << 30}); err != nil {
		return nil, err
	}
	bar := s.progress("bench step", c.N+len(plan.Actions)*max(1, c.N/10))
	defer bar.end()
	parts := map[string][]float64{}
	for i, a := range plan.Actions {
		n := c.N
		if i > 0 {
			n = max(1, c.N/10)
		}
		took, err := c.repeat(ctx, sess, plan.URL, a, n, func(r *client.Result, tookMS float64) {
			bar.step(a.Name)
			if r.Observation.GetLastActionError() != nil {
				res.Failures++
			}
			if i == 0 {
				res.TextSize = len(r.Observation.GetText())
				t := r.Info.GetTiming()
				parts["act"] = append(parts["act"], t.GetActMs())
				parts["observe"] = append(parts["observe"], t.GetObserveMs())
				parts["judge"] = append(parts["judge"], t.GetJudgeMs())
				parts["total"] = append(parts["total"], t.GetTotalMs())
				// What the RPC adds: from the client's call to its answer, without the server's work.
				parts["rpc"] = append(parts["rpc"], tookMS-t.GetTotalMs())
			}
		})
		if err != nil {
			return nil, err
		}
		res.ByAction[a.Name], res.Counts[a.Name] = spreadOf(took), n
	}
	res.MS = res.ByAction[res.Action]
	for k, v := range parts {
		res.ServerMS[k] = spreadOf(v)
	}
	return res, nil
}

func (c *benchStepCmd) repeat(ctx context.Context, sess *client.Session, url string, a gym.BenchAction, n int, each func(r *client.Result, tookMS float64)) ([]float64, error) {
	if _, err := sess.Step(ctx, fmt.Sprintf("goto(%q)", url)); err != nil {
		return nil, err
	}
	for range min(c.Warm, n) {
		r, err := sess.Step(ctx, a.Do)
		if err != nil {
			return nil, err
		}
		if e := r.Observation.GetLastActionError(); e != nil {
			return nil, errors.New("bench action " + a.Name + " fails: " + e.GetMessage())
		}
	}
	took := make([]float64, 0, n)
	for range n {
		start := time.Now()
		r, err := sess.Step(ctx, a.Do)
		if err != nil {
			return nil, err
		}
		took = append(took, since(start))
		each(r, took[len(took)-1])
	}
	return took, nil
}
