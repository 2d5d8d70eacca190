package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/learn/candidate"
	"github.com/pommelgym/pommel/internal/learn/net"
	"github.com/pommelgym/pommel/internal/learn/policy"
	"github.com/pommelgym/pommel/internal/learn/ppo"
)

// ErrNoCandidate says that the oracle did what the policy cannot: its list has no such candidate.
var ErrNoCandidate = errors.New("the oracle's action is no candidate")

// Demonstrate has the task's oracle play and notes which candidates it took. The oracle
// names elements by selector; giving the keyboard focus to the element first tells its bid.
func Demonstrate(ctx context.Context, env Env, n *net.Net, j Job) Episode {
	e := Episode{Job: j}
	// The focus takes a step of its own, so the task's limit must be widened.
	wide := j
	wide.Limit = 4*j.Limit + 20
	r, err := env.Reset(ctx, wide.Request())
	if err != nil {
		e.Lost = fmt.Errorf("reset: %w", err)
		return e
	}
	f := &follower{env: env, e: &e, p: policy.NewPlayer(n, r.Instruction, nil)}
	f.list = f.p.See(r.Observation)
	f.seen = r.Observation
	if err := env.Oracle(ctx, f.step); err != nil && e.Lost == nil {
		e.Lost = fmt.Errorf("oracle: %w", err)
	}
	return e
}

// follower turns an oracle's actions into choices.
type follower struct {
	env  Env
	e    *Episode
	p    *policy.Player
	list []candidate.Candidate
	seen *gym.Observation
	// typed is the field that was typed into by the action before, and what: a search is
	// two actions of an oracle, one of the policy.
	typed, value string
}

func (f *follower) step(ctx context.Context, text string) (*gym.Result, error) {
	calls, perr := action.Parse(text)
	if perr != nil || len(calls) != 1 {
		return nil, fmt.Errorf("%w: %s", ErrNoCandidate, text)
	}
	c := calls[0]
	bid, err := f.target(ctx, c)
	if err != nil {
		return nil, err
	}
	pick := f.match(c, bid)
	if pick == waits {
		f.typed, f.value = bid, fmt.Sprint(c.Args["value"])
		r, err := f.env.Step(ctx, text)
		return r, err
	}
	if pick < 0 && (f.stands(c, bid) || bid == "" && c.Name != "finish") {
		// Set already, or tried in case that it is there, and it is not.
		return f.env.Step(ctx, text)
	}
	if pick < 0 {
		return nil, fmt.Errorf("%w: %s (bid %s) on %s", ErrNoCandidate, text, bid, f.seen.URL)
	}
	choice := f.p.Take(pick)
	r, err := f.env.Step(ctx, text)
	if err != nil {
		return nil, err
	}
	f.e.Steps = append(f.e.Steps, ppo.Step{In: choice.In, Choice: choice.Index, LogP: choice.LogP, Value: choice.Value, Reward: r.Reward})
	f.e.Spots = append(f.e.Spots, "")
	f.e.Looks = append(f.e.Looks, uint64(len(f.e.Looks))) // an oracle makes no detours
	f.e.Reward += r.Reward
	f.e.Success = r.Done() && r.Info.Success
	f.list, f.seen = f.p.See(r.Observation), r.Observation
	return r, nil
}

// target is the bid of the element that a call names.
func (f *follower) target(ctx context.Context, c action.Call) (string, error) {
	selector, ok := c.Args["selector"].(string)
	if !ok {
		bid, _ := c.Args["bid"].(string)
		return bid, nil
	}
	r, err := f.env.Step(ctx, "focus(selector="+action.Quote(selector)+")")
	if err != nil {
		return "", err
	}
	return r.Observation.FocusedBid, nil
}

// stands says that a call would set what is set already: the policy has no use for it.
func (f *follower) stands(c action.Call, bid string) bool {
	for i := range f.seen.Elements {
		if e := &f.seen.Elements[i]; e.Bid == bid {
			return e.Value != "" && (e.Value == c.Args["value"] || e.Value == c.Args["options"])
		}
	}
	return false
}

// waits is match's answer for an action that is the first half of a candidate.
const waits = -2

// match is the index of the candidate that does what the call does.
func (f *follower) match(c action.Call, bid string) int {
	value := ""
	switch c.Name {
	case "fill":
		value, _ = c.Args["value"].(string)
	case "select_option":
		value, _ = c.Args["options"].(string)
	case "finish":
		value = fmt.Sprint(c.Args["answer"])
	}
	for i := range f.list {
		k := &f.list[i]
		switch {
		case k.Op == candidate.Answer:
			if c.Name == "finish" && sameAnswer(k.Value, value) {
				return i
			}
		case k.Node < 0:
			continue
		case f.p.Bid(i) != bid:
			continue
		case c.Name == "click" && k.Op == candidate.Click,
			c.Name == "fill" && k.Op == candidate.Fill && k.Value == value,
			c.Name == "select_option" && k.Op == candidate.Select && k.Value == value:
			return i
		case c.Name == "fill" && k.Op == candidate.Search && k.Value == value:
			return waits
		case c.Name == "press" && k.Op == candidate.Search && f.typed == bid && k.Value == f.value:
			return i
		}
	}
	return -1
}

// sameAnswer compares answers as a judge would: money without its sign, dates as days.
func sameAnswer(a, b string) bool {
	clean := func(s string) string {
		if t, err := time.Parse("2 January 2006", s); err == nil {
			return t.Format(time.DateOnly)
		}
		return strings.NewReplacer("$", "", ",", "").Replace(strings.TrimSpace(s))
	}
	return clean(a) == clean(b)
}
