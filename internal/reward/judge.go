package reward

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/task"
)

// PageProbe looks at the page that the agent is on, from outside the page.
type PageProbe interface {
	// URL is the address of the active tab.
	URL(ctx context.Context) (string, error)
	// Text is the text that a user can read on it.
	Text(ctx context.Context) (string, error)
	// Base is the world's start page, to which the URLs of tasks are relative.
	Base() string
}

// Judge decides about one episode. Calls run one after the other.
type Judge struct {
	inst *task.Instance
	db   postgres.Reader
	page PageProbe
	plan plan

	mu      sync.Mutex
	started bool
	// start is the potential at the start of the episode.
	start float64
	now   state
	facts *facts
}

// state is what the judge remembers from step to step.
type state struct {
	value float64
	// held are the stages that have counted at some time.
	held map[string]bool
	// foreign are the row changes that were not the agent's.
	foreign []span
}

// New makes the judge of an episode. page may be nil when no stage is about the page.
func New(inst *task.Instance, db postgres.Reader, page PageProbe) *Judge {
	return &Judge{inst: inst, db: db, page: page, plan: planOf(inst)}
}

// Start begins the episode: changes up to now are forgotten, and what holds already is
// not paid for. The verdict is that of the start.
func (j *Judge) Start(ctx context.Context) (*Verdict, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.facts, j.start, j.now = nil, 0, state{held: map[string]bool{}}
	if err := j.db.Mark(ctx); err != nil {
		return nil, lost(err, "mark the start of the episode")
	}
	j.started = true
	v, err := j.judge(ctx, Input{})
	if err != nil {
		j.started = false
		return nil, err
	}
	j.start = v.Potential
	v.Value, v.Reward = 0, 0
	j.now = v.next
	j.now.value = 0
	return v, nil
}

// State is what a judge remembers of an episode at one moment.
type State struct {
	start float64
	now   state
	facts *facts
}

// State notes what the judge remembers now.
func (j *Judge) State() *State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &State{start: j.start, now: state{value: j.now.value, held: maps.Clone(j.now.held), foreign: j.now.foreign}, facts: j.facts}
}

// Resume takes up an episode where State was asked for, in place of Start: rows and row
// changes are as they were then.
func (j *Judge) Resume(s *State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.start, j.now, j.facts, j.started = s.start, state{value: s.now.value, held: maps.Clone(s.now.held), foreign: s.now.foreign}, s.facts, true
}

// Peek judges without taking the step: asked any number of times it answers the same.
func (j *Judge) Peek(ctx context.Context, in Input) (*Verdict, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.started {
		return nil, fault.New(fault.Internal, "the judge was asked before the episode started")
	}
	return j.judge(ctx, in)
}

// Evaluate judges a step. Its Reward counts from the last step that was evaluated; all
// else is the same as Peek's.
func (j *Judge) Evaluate(ctx context.Context, in Input) (*Verdict, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.started {
		return nil, fault.New(fault.Internal, "the judge was asked before the episode started")
	}
	v, err := j.judge(ctx, in)
	if err != nil {
		return nil, err
	}
	j.now = v.next
	return v, nil
}

func (j *Judge) judge(ctx context.Context, in Input) (*Verdict, error) {
	if err := j.refresh(ctx); err != nil {
		return nil, err
	}
	looks := make([]look, len(j.plan.stages))
	for i := range j.plan.stages {
		var err error
		if looks[i], err = j.look(ctx, i, in); err != nil {
			return nil, err
		}
	}
	v := &Verdict{Collateral: j.facts.damage, Changes: j.facts.changes, next: state{held: maps.Clone(j.now.held), foreign: j.now.foreign}}
	j.weigh(v, looks)
	j.pay(v, in)
	return v, nil
}

// weigh decides which stages count and sums their weights.
func (j *Judge) weigh(v *Verdict, looks []look) {
	v.Stages = make([]StageResult, len(looks))
	all := true
	for _, i := range j.plan.order {
		m := &j.inst.Reward.Stages[i]
		r := &v.Stages[i]
		*r = StageResult{Name: m.Name, Kind: j.plan.stages[i].kind, Weight: m.Weight, Now: looks[i].holds,
			Seen: looks[i].seen, Expected: looks[i].expected, Diff: looks[i].diff}
		for _, a := range m.After {
			if !v.next.held[a] {
				r.Waiting = append(r.Waiting, a)
			}
		}
		r.Latched = m.Latch && j.now.held[m.Name]
		r.Holds = r.Latched || r.Now && len(r.Waiting) == 0
		if r.Holds {
			v.next.held[m.Name] = true
			v.Potential += m.Weight
		}
		all = all && r.Holds
	}
	if all {
		// The sum of the weights, without the rounding of the additions.
		v.Potential = 1
	}
	v.Complete = all && len(v.Collateral) == 0
}

// pay turns the potential into the reward of the step.
func (j *Judge) pay(v *Verdict, in Input) {
	ends := in.Final || j.inst.Reward.Until == task.UntilSuccess
	v.Success = v.Complete && ends
	v.Done = v.Success || in.Final
	switch {
	case j.inst.Reward.Mode == task.Sparse:
		if v.Success {
			v.Value = 1
		}
	case j.start < 1:
		v.Value = (v.Potential - j.start) / (1 - j.start)
		if len(v.Collateral) > 0 {
			v.Value = min(v.Value, 0)
		}
	}
	v.Reward = v.Value - j.now.value
	v.next.value = v.Value
}

// lost makes an infrastructure fault of an error, unless the caller gave up.
func lost(err error, doing string) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || fault.KindOf(err) == fault.Canceled {
		return fault.Wrap(fault.Canceled, err, "judge: %s", doing)
	}
	return &fault.Error{Kind: fault.WorldLost, Msg: "judge: " + doing, Err: err}
}
