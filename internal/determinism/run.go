package determinism

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/agent"
	"github.com/pommelgym/pommel/internal/crew"
	"github.com/pommelgym/pommel/internal/replay"
)

// Config says what to play.
type Config struct {
	Tasks    []gym.TaskInfo
	Agents   []string
	Episodes int
	// Repeat is how many episodes a group has.
	Repeat   int
	Parallel int
	Seed     int64
	// Profile names the perturbations; "" is none.
	Profile string
	// Driver is written to the examples.
	Driver string
	// ShotEvery asks for a screenshot at the reset and after each such number of steps; 0: never.
	ShotEvery int
	// MaxSteps bounds the episodes of agents that do not come to an end by themselves.
	MaxSteps int
	// OnEpisode, if set, is called after each episode.
	OnEpisode func()
}

// Groups is how many groups there are. All repeats of a group are played, so the number
// of episodes is rounded up.
func (c Config) Groups() int { return max(1, (c.Episodes+c.Repeat-1)/c.Repeat) }

// keys are the groups: tasks take turns, agents and seeds change with each round.
func (c Config) keys() []key {
	out := make([]key, c.Groups())
	for i := range out {
		round := i / len(c.Tasks)
		out[i] = key{
			task: c.Tasks[i%len(c.Tasks)].ID, agent: c.Agents[(i+round)%len(c.Agents)],
			seed: c.Seed + int64(round/len(c.Agents)),
		}
	}
	return out
}

// Run plays the episodes and adds them to t. The error is an interruption, or that nothing
// could be played at all; single faults of the infrastructure are counted.
func Run(ctx context.Context, g *gym.Gym, c Config, t *Tally) error {
	if len(c.Tasks) == 0 || len(c.Agents) == 0 {
		return fmt.Errorf("no task or no agent to play")
	}
	keys := c.keys()
	return crew.Run(ctx, max(1, c.Parallel), c.Repeat*len(keys), func(ctx context.Context, _ int, next iter.Seq[int]) error {
		return work(ctx, g, c, keys, next, t)
	})
}

func work(ctx context.Context, g *gym.Gym, c Config, keys []key, next iter.Seq[int], t *Tally) error {
	env := g.NewEnv()
	defer env.Close()
	for i := range next {
		// Each round starts elsewhere, so that a group meets another world and other neighbours.
		k := keys[(i+i/len(keys))%len(keys)]
		e, err := play(ctx, env, c, k)
		switch {
		case ctx.Err() != nil:
			return nil
		case gym.ErrorKind(err) == gym.InvalidArgument:
			return err
		case err != nil:
			t.fail(fmt.Errorf("%s seed %d (%s): %w", k.task, k.seed, k.agent, err))
		default:
			t.add(k, e)
		}
		if c.OnEpisode != nil {
			c.OnEpisode()
		}
	}
	return nil
}

func play(ctx context.Context, env *gym.Env, c Config, k key) (*take, error) {
	a, err := agent.New(k.agent, c.Seed)
	if err != nil {
		return nil, gym.NewError(gym.InvalidArgument, "%v", err)
	}
	defer a.Close()
	l := &live{env: env, c: c, view: a.View(), take: take{driver: c.Driver}}
	r := gym.Request{Task: k.task, Seed: k.seed, View: l.viewAt(0), Profile: c.Profile}
	if h, ok := a.(agent.Rehearser); ok && c.Profile != "" {
		if err := h.Rehearse(ctx, env, k.task, k.seed); err != nil {
			return nil, err
		}
	}
	if k.agent != "oracle" {
		r.MaxSteps = c.MaxSteps
	}
	if l.first, err = env.Reset(ctx, r); err != nil {
		return nil, err
	}
	defer env.End()
	if err := l.note("", l.first); err != nil {
		return nil, err
	}
	if err := a.Play(ctx, l); err != nil && l.lost != nil {
		return nil, l.lost
	}
	return l.done(), nil
}

// live is an episode that is noted down while an agent plays it.
type live struct {
	env   *gym.Env
	c     Config
	view  gym.View
	first *gym.Result
	take  take
	lost  error
}

func (l *live) viewAt(step int) gym.View {
	v := l.view
	if l.c.ShotEvery > 0 && step%l.c.ShotEvery == 0 {
		v.Screenshot = "png"
	}
	return v
}

func (l *live) First() *gym.Result { return l.first }

func (l *live) Step(ctx context.Context, action string) (*gym.Result, error) {
	r, err := l.env.Step(ctx, action, l.viewAt(len(l.take.scenes)))
	if err == nil {
		err = l.note(action, r)
	}
	if err != nil && gym.ErrorKind(err) != gym.EpisodeOver {
		l.lost = err
	}
	return r, err
}

func (l *live) Oracle(ctx context.Context, step agent.Step) error {
	if step == nil {
		step = l.Step
	}
	return l.env.Oracle(ctx, step)
}

func (l *live) note(action string, r *gym.Result) error {
	s, err := replay.SceneOf(action, r)
	if err != nil {
		return err
	}
	l.take.scenes = append(l.take.scenes, s)
	l.take.chain = r.Info.ObservationHash
	return nil
}

func (l *live) done() *take {
	records, shots := sha256.New(), sha256.New()
	for _, s := range l.take.scenes {
		fmt.Fprintln(records, s.Sum())
		fmt.Fprintln(shots, s.Picture)
	}
	l.take.records = hex.EncodeToString(records.Sum(nil))
	l.take.shots = hex.EncodeToString(shots.Sum(nil))
	return &l.take
}
