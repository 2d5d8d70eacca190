package episode

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/perturb"
	"github.com/pommelgym/pommel/internal/perturb/own"
	"github.com/pommelgym/pommel/internal/perturb/plan"
	"github.com/pommelgym/pommel/internal/postgres"
)

// friction is an episode's perturbations. Without a plan it is nil and does nothing.
type friction struct {
	director *perturb.Director
	// values are what the queries of a world's own kinds gave, by rule.
	values map[string]own.Values
}

// planFriction makes the plan of the episode, before the page is opened. What a world's
// own kinds need to know is asked of the database as the task's setup has left it.
func (e *Episode) planFriction(ctx context.Context, d Deps) error {
	p := plan.Make(d.Profile, e.inst.ID, e.inst.Seed)
	if p == nil {
		return nil
	}
	f := &friction{values: map[string]own.Values{}}
	var kept []plan.Rule
	for _, r := range p.Rules {
		ok, err := f.ready(ctx, e.world.Reader(), r)
		if err != nil {
			return fault.Wrap(fault.InvalidArgument, err, "perturbation %s", r.ID)
		}
		if ok {
			kept = append(kept, r)
		}
	}
	p.Rules = kept
	var told []string
	if p.Tell != "" {
		told = append(told, p.Tell)
	}
	for _, r := range kept {
		if r.Of.SQL == nil || r.Of.SQL.Tell == "" {
			continue
		}
		text, err := f.values[r.ID].Fill(r.Of.SQL.Tell)
		if err != nil {
			return fault.Wrap(fault.InvalidArgument, err, "perturbation %s: tell", r.ID)
		}
		told = append(told, text)
	}
	e.told = strings.Join(told, " ")
	f.director = perturb.New(p)
	e.friction = f
	return nil
}

// ready asks what a kind needs. A kind that does not find it has nothing to do in this
// episode.
func (f *friction) ready(ctx context.Context, db postgres.Reader, r plan.Rule) (bool, error) {
	v := own.Values{}
	f.values[r.ID] = v
	if r.Of.SQL == nil || r.Of.SQL.Needs == "" {
		return true, nil
	}
	rows, err := db.Query(ctx, r.Of.SQL.Needs)
	if err != nil {
		return false, fmt.Errorf("needs: %w", err)
	}
	return v.Add(rows), nil
}

// startFriction lets it begin with the page that is open.
func (e *Episode) startFriction(ctx context.Context) error {
	if e.friction == nil {
		return nil
	}
	if err := e.browse.SetFriction(ctx, e.friction.director); err != nil {
		return fmt.Errorf("start perturbations: %w", err)
	}
	return nil
}

// disturb makes what the plan has for the moment before the next step. Preconditions: e.mu
// is held.
func (e *Episode) disturb(ctx context.Context) error {
	if e.friction == nil {
		return nil
	}
	f := e.friction
	for _, t := range f.director.BeforeStep(e.step + 1) {
		if t.Rule.Of.SQL == nil {
			if err := e.browse.ClearCookies(ctx); err != nil {
				return err
			}
			f.director.Struck(t.Rule, e.virtual(), "cookies", "the next page does not know the user")
			continue
		}
		if err := e.disturbRows(ctx, t); err != nil {
			return fault.Wrap(fault.InvalidArgument, err, "perturbation %s", t.Rule.ID)
		}
	}
	return nil
}

// disturbRows runs a world's own SQL, if its moment has come, or takes back what it did.
func (e *Episode) disturbRows(ctx context.Context, t perturb.Turn) error {
	v, sql := e.friction.values[t.Rule.ID], t.Rule.Of.SQL
	if t.Undo {
		if err := e.changeRows(ctx, v, sql.Undo); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
		e.friction.director.Undone(t.Rule)
		return nil
	}
	if sql.When != "" {
		s, err := v.Bind(sql.When)
		if err != nil {
			return fmt.Errorf("when: %w", err)
		}
		rows, err := e.world.Reader().Query(ctx, s.SQL, s.Args...)
		if err != nil {
			return fmt.Errorf("when: %w", err)
		}
		if !v.Add(rows) {
			return nil // it stays due
		}
	}
	if err := e.changeRows(ctx, v, sql.Run); err != nil {
		return fmt.Errorf("sql: %w", err)
	}
	seen, err := v.Fill(sql.Seen)
	if err != nil {
		return fmt.Errorf("seen: %w", err)
	}
	e.friction.director.Struck(t.Rule, e.virtual(), "rows", seen)
	return nil
}

// changeRows runs statements as the application's role; what they change is not the agent's doing.
func (e *Episode) changeRows(ctx context.Context, v own.Values, texts []string) error {
	var run []postgres.Statement
	for _, text := range texts {
		s, err := v.Bind(text)
		if err != nil {
			return err
		}
		run = append(run, s)
	}
	return e.judge.Disturb(ctx, func() error { return e.world.Setup(ctx, run) })
}

// virtual is the page's time as the agent last saw it.
func (e *Episode) virtual() float64 {
	if e.last == nil {
		return 0
	}
	return e.last.Observation.VirtualTimeMS
}

// collect takes what has struck since it was last asked, and gives the agent the steps
// that it takes to get over it. Preconditions: e.mu is held.
func (e *Episode) collect() []perturb.Event {
	if e.friction == nil {
		return nil
	}
	events := e.friction.director.Take()
	for _, ev := range events {
		e.extra += ev.Cost
	}
	return events
}

// tell puts it into the trainer's part of a result.
func (e *Episode) tell(r *Result, events []perturb.Event) {
	if e.friction != nil {
		r.Info.Perturbed, r.Info.Profile, r.Info.Perturbations = true, e.friction.director.Plan().Profile, events
	}
}

// frictionState is what a checkpoint holds of it.
type frictionState struct {
	director any
	values   map[string]own.Values
}

func (f *friction) save() frictionState {
	if f == nil {
		return frictionState{}
	}
	return frictionState{f.director.Save(), cloneValues(f.values)}
}

func (f *friction) resume(saved frictionState) {
	if f != nil {
		f.director.Resume(saved.director)
		f.values = cloneValues(saved.values)
	}
}

func cloneValues(of map[string]own.Values) map[string]own.Values {
	out := make(map[string]own.Values, len(of))
	for rule, v := range of {
		out[rule] = maps.Clone(v)
	}
	return out
}
