package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server/mcp"
	"github.com/pommelgym/pommel/internal/version"
)

type mcpCmd struct {
	worldFlags
	Task       string `required:"" help:"Task of the episode."`
	Seed       int64  `default:"0" help:"Seed of the episode."`
	MaxSteps   int    `default:"0" help:"Step limit in place of the task's own."`
	Screenshot string `enum:",png,jpeg" default:"png" help:"Picture in each answer: png, jpeg, or nothing."`
	Result     string `type:"path" help:"File for the result (JSON) once the agent has left; it is not told to the agent."`
}

// mcpLease is longer than any agent thinks: here the episode ends with the agent's process.
const mcpLease = 24 * time.Hour

// mcpResult is what the judge says of the episode.
type mcpResult struct {
	Episode    string      `json:"episode_id"`
	Task       string      `json:"task"`
	Seed       int64       `json:"seed"`
	Steps      int         `json:"steps"`
	Reward     float64     `json:"reward"`
	Success    bool        `json:"success"`
	Terminated bool        `json:"terminated"`
	Truncated  bool        `json:"truncated"`
	Stages     []gym.Stage `json:"stages"`
	// Error is why the episode is void, if it is.
	Error string `json:"error,omitempty"`
}

func (c *mcpCmd) Run(ctx context.Context, s *State) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e := &mcpEpisode{begun: make(chan struct{})}
	go func() {
		defer close(e.begun)
		if e.err = c.begin(ctx, s, e); e.err != nil {
			stop(e.err) // there is nothing that an agent could do
		}
	}()
	defer e.close()
	// Agents' programs wait a few seconds for an answer to their first words, and longer
	// for a tool: the protocol is spoken from the start, and the tools wait for the world.
	agent := mcp.New(mcp.Config{Episode: e.await, Log: s.logger(c.Log), Version: version.String()})
	served := agent.Serve(ctx, io.NopCloser(s.Stdin), keepOpen{s.Stdout})
	stop(errors.New("the agent has left"))
	<-e.begun
	if e.err != nil {
		return errors.Join(served, e.err)
	}
	return errors.Join(served, c.report(ctx, s, e.sessions, e.id))
}

// mcpEpisode is the one episode, which begins while the agent is already being heard.
type mcpEpisode struct {
	begun chan struct{}
	// Set before begun is closed.
	gym      *gym.Gym
	sessions *gym.Table
	id       string
	err      error
}

func (c *mcpCmd) begin(ctx context.Context, s *State, e *mcpEpisode) (err error) {
	if e.gym, err = c.open(ctx, s, 1); err != nil {
		return err
	}
	e.sessions = e.gym.Sessions(gym.SessionLimits{Lease: mcpLease, MaxLease: mcpLease})
	first, err := e.sessions.Reset(ctx, gym.SessionRequest{Request: gym.Request{
		Task: c.Task, Seed: c.Seed, MaxSteps: c.MaxSteps, Client: "mcp", View: gym.View{Screenshot: c.Screenshot},
	}})
	if err != nil {
		return err
	}
	e.id = first.EpisodeID
	s.say("pommel mcp: task %s, seed %d; an agent may speak on standard input", c.Task, c.Seed)
	return nil
}

// await waits until the episode has begun.
func (e *mcpEpisode) await(ctx context.Context, _ http.Header) (gym.Sessions, string, error) {
	select {
	case <-e.begun:
		return e.sessions, e.id, e.err
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
}

func (e *mcpEpisode) close() {
	<-e.begun
	if e.sessions != nil {
		e.sessions.Close()
	}
	if e.gym != nil {
		_ = e.gym.Close()
	}
}

// report writes what came of the episode where the agent does not read it.
func (c *mcpCmd) report(ctx context.Context, s *State, sessions gym.Sessions, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	out := mcpResult{Episode: id, Task: c.Task, Seed: c.Seed}
	st, err := sessions.Status(ctx, id)
	if err != nil {
		out.Error = err.Error()
	} else {
		out.Steps, out.Reward, out.Success = st.Steps, st.Reward, st.Last.Info.Success
		out.Terminated, out.Truncated, out.Stages = st.Last.Terminated, st.Last.Truncated, st.Last.Info.Stages
	}
	if c.Result != "" {
		data, err := json.MarshalIndent(out, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.Result, append(data, '\n'), 0o600); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	s.say("pommel mcp: %d steps, reward %g, success %v", out.Steps, out.Reward, out.Success)
	return err
}

// keepOpen is standard output, which is not the protocol's to close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
