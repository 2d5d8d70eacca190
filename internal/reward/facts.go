package reward

import (
	"context"
	"errors"
	"fmt"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/task"
)

// The kinds of stages.
const (
	kindQuery   = "query"
	kindAnswer  = "answer"
	kindChanges = "changes"
	kindPage    = "page"
)

// plan is what can be worked out about an instance once.
type plan struct {
	stages []planned
	// order lists the stages so that each comes after those it waits for.
	order   []int
	queries []postgres.Statement
	// feed is set when the verdict depends on the row changes.
	feed bool
}

type planned struct {
	kind string
	// query is the index of the stage's statement.
	query int
}

func planOf(inst *task.Instance) plan {
	p := plan{feed: inst.Reward.HasOnly, order: task.Order(inst.Reward.Stages)}
	for _, m := range inst.Reward.Stages {
		one := planned{}
		switch {
		case m.Query != "":
			one.kind, one.query = kindQuery, len(p.queries)
			p.queries = append(p.queries, m.Statement)
		case m.Answer != nil:
			one.kind = kindAnswer
		case m.Changes != nil:
			one.kind, p.feed = kindChanges, true
		default:
			one.kind = kindPage
		}
		p.stages = append(p.stages, one)
	}
	return p
}

// facts are what the database says about one state of the rows.
type facts struct {
	rows    []*postgres.Rows
	changes []postgres.Change
	damage  []Damage
}

// refresh reads the facts, unless nothing was written since they were read.
func (j *Judge) refresh(ctx context.Context) error {
	if !j.plan.feed {
		// Asking whether anything changed costs as much as asking for the rows.
		changes, err := j.db.Changes(ctx)
		if err != nil {
			return lost(err, "read the row changes")
		}
		return j.readRows(ctx, &facts{changes: changes})
	}
	// What the application writes while the judge reads is read again, so that rows and
	// changes tell of the same state; an application that never rests is taken as it is.
	const tries = 3
	for try := range tries {
		if j.facts != nil {
			dirty, err := j.db.Dirty(ctx)
			if err != nil {
				return lost(err, "ask whether rows changed")
			}
			if !dirty {
				return nil
			}
		}
		// First the changes, then the rows: what is written in between is seen by Dirty.
		changes, err := j.db.Changes(ctx)
		if err != nil {
			return lost(err, "read the row changes")
		}
		if try > 0 && len(changes) == len(j.facts.changes) {
			// No row: reading itself makes the server tidy pages up, which its log shows.
			return nil
		}
		f := &facts{changes: changes}
		if f.damage, err = j.damage(ctx, j.own(changes)); err != nil {
			return err
		}
		if err := j.readRows(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (j *Judge) readRows(ctx context.Context, f *facts) error {
	if len(j.plan.queries) > 0 {
		var err error
		if f.rows, err = j.db.QueryAll(ctx, j.plan.queries); err != nil {
			return lost(err, "run the query of "+j.failedStage(err))
		}
	}
	j.facts = f
	return nil
}

// failedStage names the stage whose query failed.
func (j *Judge) failedStage(err error) string {
	var se *postgres.StatementError
	if errors.As(err, &se) {
		for i, p := range j.plan.stages {
			if p.kind == kindQuery && p.query == se.Index {
				return fmt.Sprintf("task %s, stage %s", j.inst.ID, j.inst.Reward.Stages[i].Name)
			}
		}
	}
	return "task " + j.inst.ID
}
