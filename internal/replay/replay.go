package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/trace"
)

// Report is what became of one record that was played again.
type Report struct {
	Trace string `json:"trace"`
	Task  string `json:"task"`
	Seed  int64  `json:"seed"`
	OK    bool   `json:"ok"`
	// Steps is how many were compared and equal, the reset included.
	Steps int `json:"steps"`
	// FirstDifference is the first step that was not the same.
	FirstDifference *StepDifference `json:"first_difference"`
	// Note says what a reader should know: that the world has changed, or why the record
	// could not be played.
	Note string `json:"note,omitempty"`
}

// StepDifference is a step that came out differently.
type StepDifference struct {
	Step        int          `json:"step"`
	Action      string       `json:"action"`
	Differences []Difference `json:"differences"`
}

// Request is what a record's episode was asked for.
func Request(t *trace.Trace) (gym.Request, error) {
	r := gym.Request{Task: t.Header.Task, Seed: t.Header.Seed}
	if len(t.Header.Request) > 0 {
		if err := json.Unmarshal(t.Header.Request, &r); err != nil {
			return r, fmt.Errorf("read the request: %w", err)
		}
		return r, nil
	}
	// Older records do not say what was asked for; what was seen tells most of it.
	if len(t.Steps) > 0 {
		r.View = viewOf(t.Steps[0])
	}
	if t.End != nil && t.End.Reason == "truncated" {
		r.MaxSteps = t.End.Steps
	}
	return r, nil
}

// viewOf guesses what was asked of an observation.
func viewOf(s trace.Step) gym.View {
	o := s.Observation
	if o == nil {
		return gym.View{}
	}
	v := gym.View{Elements: len(o.Elements) > 0, HTML: o.HTML != "", AXTree: len(o.AXTree) > 0}
	if o.Screenshot != nil {
		v.Screenshot = o.Screenshot.Format
	}
	return v
}

// Play runs a record's episode again in env and compares. dir is the episode's folder. The
// error is a fault of the infrastructure or of the record's files.
func Play(ctx context.Context, env *gym.Env, t *trace.Trace, dir string) (*Report, error) {
	r := &Report{Task: t.Header.Task, Seed: t.Header.Seed}
	if len(t.Steps) == 0 {
		r.Note = "the record holds no step"
		return r, nil
	}
	request, err := Request(t)
	if err != nil {
		return nil, err
	}
	defer env.End()
	p := player{env: env, trace: t, request: request, saved: map[string][]trace.Step{}}
	for i, st := range t.Steps {
		now, err := p.next(ctx, i)
		if k := gym.ErrorKind(err); k == gym.NotFound || k == gym.EpisodeOver || k == gym.InvalidArgument {
			r.Note = fmt.Sprintf("step %d: %v", st.Step, err)
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		found, err := compare(t, st, dir, now)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			r.FirstDifference = &StepDifference{Step: st.Step, Action: st.Action, Differences: found}
			return r, nil
		}
		r.Steps++
	}
	r.OK = true
	return r, nil
}

// player carries a record's steps out. A step after a restore is played in an episode that
// begins anew and goes the way to the checkpoint, so that it needs no checkpoints itself.
type player struct {
	env     *gym.Env
	trace   *trace.Trace
	request gym.Request
	path    []trace.Step            // the steps up to now
	saved   map[string][]trace.Step // those up to a checkpoint
	marks   int                     // how many have been passed
}

// next carries out step i of the record.
func (p *player) next(ctx context.Context, i int) (*gym.Result, error) {
	back := false
	for ; p.marks < len(p.trace.Marks) && p.trace.Marks[p.marks].After <= i; p.marks++ {
		switch m := p.trace.Marks[p.marks]; m.Kind {
		case trace.KindCheckpoint:
			p.saved[m.Checkpoint] = slices.Clone(p.path)
		case trace.KindRestore:
			p.path, back = slices.Clone(p.saved[m.Checkpoint]), true
		}
	}
	if back {
		for _, st := range p.path {
			if _, err := p.carry(ctx, st); err != nil {
				return nil, err
			}
		}
	}
	st := p.trace.Steps[i]
	p.path = append(p.path, st)
	return p.carry(ctx, st)
}

func (p *player) carry(ctx context.Context, st trace.Step) (*gym.Result, error) {
	if st.Step == 0 {
		return p.env.Reset(ctx, p.request)
	}
	view := st.View
	if p.trace.Header.Minor < 1 {
		view = viewOf(st)
	}
	return p.env.Step(ctx, st.Action, view)
}

func compare(t *trace.Trace, st trace.Step, dir string, now *gym.Result) ([]Difference, error) {
	was, err := recorded(t.Header, st, dir)
	if err != nil {
		return nil, err
	}
	is, err := SceneOf(st.Action, now)
	if err != nil {
		return nil, err
	}
	if t.Header.Minor < trace.MinorVersion {
		if is, err = is.keep(was); err != nil {
			return nil, err
		}
	}
	return Diff(was, is), nil
}

// keep drops what an older record does not have: it was not told then.
func (s Scene) keep(was Scene) (Scene, error) {
	is, err := decode(s.doc)
	if err != nil {
		return s, fmt.Errorf("decode step %d: %w", s.Step, err)
	}
	old, err := decode(was.doc)
	if err != nil {
		return s, fmt.Errorf("decode step %d of the record: %w", s.Step, err)
	}
	mine, ok1 := is["info"].(map[string]any)
	theirs, ok2 := old["info"].(map[string]any)
	if !ok1 || !ok2 {
		return s, nil
	}
	for name := range mine {
		if _, known := theirs[name]; !known {
			delete(mine, name)
		}
	}
	s.doc = encode(is)
	return s, nil
}
