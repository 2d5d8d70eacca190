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
	frictionFlags
	jsonFlag
	N        int  `default:"1000" help:"How many steps of the first action; the others are made a tenth as often."`
	Warm     int  `default:"50" help:"Steps before the measurement."`
	Elements bool `help:"Ask for elements too, not for text alone."`
	Every    int  `default:"20" help:"With a profile: how many steps an episode has before the next seed's begins."`

	seed int64
}

// Validate refuses what cannot be meant.
func (c *benchStepCmd) Validate() error {
	if c.N < 1 || c.Warm < 0 || c.Every < 1 {
		return fmt.Errorf("--n and --every take 1 or more, --warm 0 or more")
	}
	return nil
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
	frictionBench
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
	fmt.Fprintf(s.Stdout, "\nover the stream RPC, text observation of %d bytes, judge included; %d failures%s\n", res.TextSize, res.Failures, res.line())
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

// measure makes every action of the plan many times, on one page.
func (c *benchStepCmd) measure(ctx context.Context, s *State, sess *client.Session, plan gym.BenchPlan) (*stepBench, error) {
	res := &stepBench{Action: plan.Actions[0].Name, N: c.N, ByAction: map[string]spread{}, ServerMS: map[string]spread{}, Counts: map[string]int{}}
	res.Profile = c.Profile
	if err := c.begin(ctx, sess, plan, res); err != nil {
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
		took, err := c.repeat(ctx, sess, plan, a, n, res, func(r *client.Result, tookMS float64) {
			bar.step(a.Name)
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

// begin starts an episode: the only one without a profile, and with one that of the next seed.
func (c *benchStepCmd) begin(ctx context.Context, sess *client.Session, plan gym.BenchPlan, res *stepBench) error {
	req := client.Request{Task: plan.Task, Seed: c.seed, Profile: c.Profile, MaxSteps: 1 << 30}
	if c.Elements {
		req.View = &client.View{Elements: true}
	}
	c.seed++
	r, err := sess.Reset(ctx, req)
	if err == nil {
		res.count(r)
	}
	return err
}

// count adds up what struck.
func (b *stepBench) count(r *client.Result) {
	for _, p := range r.Info.GetPerturbations() {
		b.add(p.GetKind(), int(p.GetNumbers()["delay"]))
	}
}

// repeat makes an action n times and times it. With a profile, one that fails takes no part
// in the times: the page is opened again, as something else stands in its place or over it.
func (c *benchStepCmd) repeat(ctx context.Context, sess *client.Session, plan gym.BenchPlan, a gym.BenchAction, n int, res *stepBench, each func(r *client.Result, tookMS float64)) ([]float64, error) {
	open := fmt.Sprintf("goto(%q)", plan.URL)
	if _, err := sess.Step(ctx, open); err != nil {
		return nil, err
	}
	for range min(c.Warm, n) {
		r, err := sess.Step(ctx, a.Do)
		if err != nil {
			return nil, err
		}
		res.count(r)
		if e := r.Observation.GetLastActionError(); e != nil && c.Profile == "" {
			return nil, errors.New("bench action " + a.Name + " fails: " + e.GetMessage())
		}
	}
	took := make([]float64, 0, n)
	for i := range n {
		if c.Profile != "" && i%c.Every == 0 {
			if err := c.begin(ctx, sess, plan, res); err != nil {
				return nil, err
			}
			if err := c.goTo(ctx, sess, open, res); err != nil {
				return nil, err
			}
		}
		start := time.Now()
		r, err := sess.Step(ctx, a.Do)
		if err != nil {
			return nil, err
		}
		ms := since(start)
		res.count(r)
		if r.Observation.GetLastActionError() == nil {
			took = append(took, ms)
			each(r, ms)
			continue
		}
		res.Failures++
		if err := c.goTo(ctx, sess, open, res); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// goTo opens the page of the plan.
func (c *benchStepCmd) goTo(ctx context.Context, sess *client.Session, text string, res *stepBench) error {
	r, err := sess.Step(ctx, text)
	if err == nil {
		res.count(r)
	}
	return err
}
