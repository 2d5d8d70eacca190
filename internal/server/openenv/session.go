package openenv

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
)

// session is what one socket drives: one episode at a time.
type session struct {
	h    *Handler
	conn *websocket.Conn
	// id is the running episode's; the watcher reads it.
	id atomic.Pointer[string]
	// asked is when the last request came, in Unix nanoseconds.
	asked atomic.Int64

	// name is what the caller calls the episode.
	name string
	goal string
	view gym.View
	// borrowed: the episode was begun elsewhere and goes on without this socket.
	borrowed bool
}

// attach takes over an episode that was begun over HTTP or RPC. One socket at a time may
// drive it, and its end is not the episode's.
func (s *session) attach(ctx context.Context, id string) (release func(), err error) {
	st, err := s.h.cfg.Sessions.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, taken := s.h.attached.LoadOrStore(id, true); taken {
		return nil, fault.New(fault.InvalidArgument, "session %q has a socket already", id).WithHint("close the other socket first")
	}
	s.take(st.EpisodeID, st.EpisodeID, st.Instruction, st.View)
	s.borrowed = true
	return func() { s.h.attached.Delete(id) }, nil
}

func (s *session) take(id, name, goal string, view gym.View) {
	if name == "" {
		name = id
	}
	s.name, s.goal, s.view, s.borrowed = name, goal, view, false
	s.id.Store(&id)
}

// reset starts an episode in place of the one before it. The episode has to die with the
// socket even when that breaks now, so it is none that a second request would find.
func (s *session) reset(ctx context.Context, data json.RawMessage) (any, error) {
	a, err := s.h.readReset(data)
	if err != nil {
		return nil, err
	}
	a.RequestID = ""
	if id := s.id.Load(); id != nil && !s.borrowed {
		a.Previous = *id
	}
	res, err := s.h.cfg.Sessions.Reset(ctx, a.SessionRequest)
	if err != nil {
		return nil, err
	}
	s.take(res.EpisodeID, a.name, res.Instruction, a.View)
	return fromResult(res, s.goal), nil
}

func (s *session) step(ctx context.Context, data json.RawMessage) (any, error) {
	a, err := readAction("", data)
	if err != nil {
		return nil, err
	}
	id := s.id.Load()
	if id == nil {
		return nil, errNoEpisode()
	}
	res, err := s.h.cfg.Sessions.Step(ctx, *id, a.n, a.action, s.view)
	if err != nil {
		return nil, err
	}
	return fromResult(res, s.goal), nil
}

func (s *session) state(ctx context.Context) (any, error) {
	id := s.id.Load()
	if id == nil {
		return emptyState(s.h.cfg.Sessions.Describe()), nil
	}
	st, err := s.h.cfg.Sessions.Status(ctx, *id)
	if err != nil {
		return nil, err
	}
	return fromStatus(st, s.name, s.h.cfg.Sessions.Describe()), nil
}

// end gives back the world of a socket that has closed.
func (s *session) end() {
	id := s.id.Load()
	if id == nil || s.borrowed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := s.h.cfg.Sessions.CloseEpisode(ctx, *id); err != nil {
		s.h.cfg.Log.Warn("the episode of a closed socket goes on until its lease ends", "episode", *id, "error", err)
	}
}

func errNoEpisode() error {
	return fault.New(fault.EpisodeOver, "no episode is running in this session").WithHint("send reset first; a socket that was closed has lost its episode")
}

// state is what state returns.
type state struct {
	EpisodeID  *string `json:"episode_id"`
	StepCount  int     `json:"step_count"`
	Benchmark  string  `json:"benchmark"`
	TaskName   string  `json:"task_name"`
	Seed       int64   `json:"seed"`
	Goal       string  `json:"goal"`
	CurrentURL string  `json:"current_url"`
	CumReward  float64 `json:"cum_reward"`
	Done       bool    `json:"done"`
}

func emptyState(d gym.Description) state { return state{Benchmark: d.World} }

func fromStatus(st *gym.Status, name string, d gym.Description) state {
	return state{
		EpisodeID: &name, StepCount: st.Steps, Benchmark: d.World, TaskName: st.Task, Seed: st.Seed, Goal: st.Instruction,
		CurrentURL: st.Last.Observation.URL, CumReward: st.Reward, Done: st.Last.Done(),
	}
}
