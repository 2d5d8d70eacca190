package gym

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/episode"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/oracle"
)

// Env is one environment as Gymnasium knows it: Reset, then Step until done. An Env
// holds one world while an episode runs, and none before and after. It is for one
// caller; the calls of an Env must not overlap.
type Env struct {
	g  *Gym
	ep *episode.Episode
}

// waitForWorld bounds how long Env.Reset waits for a free world.
const waitForWorld = 5 * time.Minute

// NewEnv makes an environment. It costs nothing until it is reset.
func (g *Gym) NewEnv() *Env { return &Env{g: g} }

// Reset ends the running episode, if any, and starts another.
func (e *Env) Reset(ctx context.Context, r Request) (*Result, error) {
	if err := e.End(); err != nil {
		return nil, err
	}
	ep, res, err := e.g.begin(ctx, r, waitForWorld)
	if err != nil {
		return nil, err
	}
	e.ep = ep
	return res, nil
}

func (e *Env) running() (*episode.Episode, error) {
	if e.ep == nil {
		return nil, fault.New(fault.EpisodeOver, "no episode is running").WithHint("call Reset")
	}
	return e.ep, nil
}

// Step performs one action string: see docs/actions.md for the grammar. The
// observation has what Reset's View asked for.
func (e *Env) Step(ctx context.Context, action string, view ...View) (*Result, error) {
	ep, err := e.running()
	if err != nil {
		return nil, err
	}
	return ep.Step(ctx, action, e.view(view))
}

func (e *Env) view(v []View) View {
	if len(v) > 0 {
		return v[0]
	}
	return e.ep.View()
}

// Checkpoint saves the whole state of the episode: browser, application, database, page
// clock, what was earned. Restore goes back to it any number of times, also after the
// episode has ended; the answer is what the agent saw then, with a reward of 0. Checkpoints
// make a tree: one may be taken above another. They end with the episode, which while it
// holds any keeps its world until End, Reset or Forget of the last one.
//
// An error of kind Unsupported says that the driver has no checkpoints or that this state
// cannot be saved, ResourceExhausted that the checkpoints of the world would take more
// memory than they may; the episode goes on after both.
func (e *Env) Checkpoint(ctx context.Context) (string, error) {
	ep, err := e.running()
	if err != nil {
		return "", err
	}
	return ep.Checkpoint(ctx)
}

// Restore puts the episode back to a checkpoint.
func (e *Env) Restore(ctx context.Context, checkpoint string) (*Result, error) {
	ep, err := e.running()
	if err != nil {
		return nil, err
	}
	return ep.Restore(ctx, checkpoint)
}

// Forget frees a checkpoint. One that is not held is no error.
func (e *Env) Forget(ctx context.Context, checkpoint string) error {
	ep, err := e.running()
	if err != nil {
		return err
	}
	return ep.Forget(ctx, checkpoint)
}

// Observe looks again without acting.
func (e *Env) Observe(ctx context.Context, view View) (*Observation, error) {
	ep, err := e.running()
	if err != nil {
		return nil, err
	}
	return ep.Observe(ctx, view)
}

// Judge asks the judge about the present state. It changes nothing.
func (e *Env) Judge(ctx context.Context) (json.RawMessage, error) {
	ep, err := e.running()
	if err != nil {
		return nil, err
	}
	return ep.Judge(ctx)
}

// HasParams says whether the running task has seeded parameters.
func (e *Env) HasParams() bool { return e.ep != nil && len(e.ep.Instance().Params) > 0 }

// Oracle plays the task's scripted solution on the running episode; every action goes through step.
func (e *Env) Oracle(ctx context.Context, step func(ctx context.Context, action string) (*Result, error)) error {
	ep, err := e.running()
	if err != nil {
		return err
	}
	first, err := ep.Observe(ctx, ep.View())
	if err != nil {
		return err
	}
	_, err = oracle.Run(ctx, ep.Instance(), oracleView(first, false), func(ctx context.Context, action string) (oracle.Obs, error) {
		r, err := step(ctx, action)
		if err != nil {
			return oracle.Obs{}, err
		}
		return oracleView(r.Observation, r.Done()), nil
	})
	return err
}

// oracleView is an observation as scripts see it.
func oracleView(o *Observation, done bool) oracle.Obs {
	out := oracle.Obs{URL: o.URL, Title: o.Title, Text: o.Text, Done: done}
	if o.LastActionError != nil {
		out.Error = o.LastActionError.Error()
	}
	for _, e := range o.Elements {
		out.Elements = append(out.Elements, oracle.Element{Bid: e.Bid, Role: e.Role, Name: e.Name, Value: e.Value, Tag: e.Tag, State: e.State})
	}
	return out
}

// About is an element as an observation names it.
type About = browser.About

// Describe tells about the element that an action's selector names now; nil when there is none.
func (e *Env) Describe(ctx context.Context, selector string) (*About, error) {
	ep, err := e.running()
	if err != nil {
		return nil, err
	}
	return ep.World().Browser().Describe(ctx, action.Target{Selector: selector})
}

// Query reads the world's database as the judge: for authors at work, not for agents.
func (e *Env) Query(ctx context.Context, sql string) (json.RawMessage, error) {
	ep, err := e.running()
	if err != nil {
		return nil, err
	}
	rows, err := ep.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return json.Marshal(rows)
}

// End ends the running episode and frees its world. Without one it does nothing.
func (e *Env) End() error {
	if e.ep != nil {
		e.ep.End("closed")
		e.ep = nil
	}
	return nil
}

// Close is End.
func (e *Env) Close() error { return e.End() }
