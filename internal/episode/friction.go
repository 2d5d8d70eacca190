package episode

import (
	"context"
	"fmt"
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
	for _, r := range f.director.BeforeStep(e.step + 1) {
		if r.Of.SQL == nil {
			if err := e.browse.ClearCookies(ctx); err != nil {
				return err
			}
			f.director.Struck(r, e.virtual(), "cookies")
			continue
		}
		if err := e.disturbRows(ctx, r); err != nil {
			return fault.Wrap(fault.InvalidArgument, err, "perturbation %s", r.ID)
		}
	}
	return nil
}

// disturbRows runs a world's own SQL, if its moment has come.
func (e *Episode) disturbRows(ctx context.Context, r *plan.Rule) error {
	v, sql := e.friction.values[r.ID], r.Of.SQL
	if sql.When != "" {
		s, err := v.Bind(sql.When)
		if err != nil {
			return err
		}
		rows, err := e.world.Reader().Query(ctx, s.SQL, s.Args...)
		if err != nil {
			return fmt.Errorf("when: %w", err)
		}
		if !v.Add(rows) {
			return nil // it stays due
		}
	}
	var run []postgres.Statement
	for _, text := range sql.Run {
		s, err := v.Bind(text)
		if err != nil {
			return err
		}
		run = append(run, s)
	}
	if err := e.judge.Disturb(ctx, func() error { return e.world.Setup(ctx, run) }); err != nil {
		return fmt.Errorf("sql: %w", err)
	}
	e.friction.director.Struck(r, e.virtual(), "rows")
	return nil
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

func (f *friction) save() any {
	if f == nil {
		return nil
	}
	return f.director.Save()
}

func (f *friction) resume(saved any) {
	if f != nil {
		f.director.Resume(saved)
	}
}
