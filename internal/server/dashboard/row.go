package dashboard

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/trace"
)

// head says which episode it is and what became of it.
type head struct {
	ID          string    `json:"id"`
	World       string    `json:"world,omitempty"`
	Driver      string    `json:"driver,omitempty"`
	Task        string    `json:"task"`
	Seed        int64     `json:"seed"`
	Split       string    `json:"split,omitempty"`
	Instruction string    `json:"instruction"`
	Client      string    `json:"client,omitempty"`
	Profile     string    `json:"profile,omitempty"`
	Started     time.Time `json:"started"`
	// Live says that it is held by a caller. End is how it ended, "" while it runs, and
	// cut_off for a record without an end.
	Live    bool      `json:"live"`
	End     string    `json:"end"`
	Detail  string    `json:"detail,omitempty"`
	Ended   time.Time `json:"ended,omitzero"`
	Success bool      `json:"success"`
	Reward  float64   `json:"reward"`
	Steps   int       `json:"steps"`
	// Limit is how many steps it may take; 0 is not known.
	Limit int `json:"limit,omitempty"`
}

// row is one step, without what only the step itself is asked for.
type row struct {
	Index  int    `json:"index"`
	Step   int    `json:"step"`
	Action string `json:"action"`
	// Target is the element that the action was about, as the agent saw it.
	Target        string                  `json:"target,omitempty"`
	Error         *gym.ActionError        `json:"error,omitempty"`
	URL           string                  `json:"url"`
	Title         string                  `json:"title"`
	VirtualMS     float64                 `json:"virtual_ms"`
	Reward        float64                 `json:"reward"`
	Total         float64                 `json:"total"`
	Potential     float64                 `json:"potential"`
	Success       bool                    `json:"success"`
	Terminated    bool                    `json:"terminated"`
	Truncated     bool                    `json:"truncated"`
	Stages        []gym.Stage             `json:"stages"`
	Collateral    []string                `json:"collateral,omitempty"`
	Changes       int                     `json:"changes"`
	Perturbations []gym.PerturbationEvent `json:"perturbations,omitempty"`
	Timing        gym.Timing              `json:"timing"`
	Capped        bool                    `json:"capped,omitempty"`
	Hash          string                  `json:"hash"`
	// Screen names the picture, "" for none.
	Screen string    `json:"screen,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// detail is the rest of a step.
type detail struct {
	Index           int             `json:"index"`
	Text            string          `json:"text"`
	Truncated       bool            `json:"truncated,omitempty"`
	Tabs            []gym.Tab       `json:"tabs"`
	Dialog          *gym.Dialog     `json:"dialog,omitempty"`
	Focused         string          `json:"focused,omitempty"`
	Elements        []gym.Element   `json:"elements,omitempty"`
	Verdict         json.RawMessage `json:"verdict,omitempty"`
	Changes         []gym.Change    `json:"changes,omitempty"`
	Messages        []string        `json:"messages,omitempty"`
	Notes           []string        `json:"notes,omitempty"`
	StillRunning    []string        `json:"still_running,omitempty"`
	Reproducible    bool            `json:"reproducible"`
	NotReproducible string          `json:"not_reproducible,omitempty"`
	// Forgotten says that this server keeps it no longer.
	Forgotten bool `json:"forgotten,omitempty"`
}

// mark is a checkpoint or a restore, before row Before.
type mark struct {
	Kind       string `json:"kind"`
	Checkpoint string `json:"checkpoint"`
	Step       int    `json:"step"`
	Before     int    `json:"before"`
}

// film is an episode with its steps.
type film struct {
	Head  head   `json:"head"`
	Rows  []row  `json:"rows"`
	Marks []mark `json:"marks"`
}

// rowOf is a result as a row. total is what was earned before it.
func rowOf(index int, r *gym.Result, total float64) row {
	o, i := r.Observation, &r.Info
	out := row{
		Index: index, Step: r.Step, Reward: r.Reward, Total: total + r.Reward, Potential: i.Potential, Success: i.Success,
		Terminated: r.Terminated, Truncated: r.Truncated, Stages: i.Stages, Collateral: i.Collateral, Changes: len(i.Changes),
		Perturbations: i.Perturbations, Timing: i.Timing, Capped: i.Capped, Hash: i.ObservationHash,
	}
	if o != nil {
		out.Action, out.Error, out.URL, out.Title, out.VirtualMS = o.LastAction, o.LastActionError, o.URL, o.Title, o.VirtualTimeMS
		if o.Screenshot != nil {
			out.Screen = screenName(r.Step, o.Screenshot.Format)
		}
	}
	return out
}

// screenName is the name that a record gives the picture of a step.
func screenName(step int, format string) string { return fmt.Sprintf("%06d.%s", step, format) }

func detailOf(index int, r *gym.Result) detail {
	o, i := r.Observation, &r.Info
	d := detail{
		Index: index, Verdict: i.Verdict, Changes: i.Changes, Messages: i.Messages, Notes: i.Notes, StillRunning: i.StillRunning,
		Reproducible: i.Reproducible, NotReproducible: i.NotReproducible,
	}
	if o != nil {
		d.Text, d.Truncated, d.Tabs, d.Dialog, d.Focused, d.Elements = o.Text, o.Truncated, o.Tabs, o.Dialog, o.FocusedBid, o.Elements
	}
	return d
}

// resultOf is a recorded step as the result that it was.
func resultOf(st *trace.Step) (*gym.Result, error) {
	r := &gym.Result{Step: st.Step, Observation: st.Observation, Reward: st.Reward, Terminated: st.Terminated, Truncated: st.Truncated}
	if len(st.Info) > 0 {
		if err := json.Unmarshal(st.Info, &r.Info); err != nil {
			return nil, fmt.Errorf("step %d: info: %w", st.Step, err)
		}
	}
	return r, nil
}

// filmOf is a recorded episode.
func filmOf(t *trace.Trace) (*film, error) {
	f := &film{Head: headOf(&t.Header, t.End), Rows: []row{}, Marks: []mark{}}
	totals := map[string]float64{} // by checkpoint
	total, next, seen := 0.0, 0, ""
	marks := func(before int) {
		for ; next < len(t.Marks) && t.Marks[next].After <= before; next++ {
			m := t.Marks[next]
			f.Marks = append(f.Marks, mark{Kind: m.Kind, Checkpoint: m.Checkpoint, Step: m.Step, Before: before})
			if m.Kind == trace.KindCheckpoint {
				totals[m.Checkpoint] = total
			} else {
				total, seen = totals[m.Checkpoint], "" // what the agent saw then is further up
			}
		}
	}
	for n := range t.Steps {
		marks(n)
		r, err := resultOf(&t.Steps[n])
		if err != nil {
			return nil, err
		}
		line := rowOf(n, r, total)
		line.At, line.Screen = t.Steps[n].At, t.Steps[n].Screenshot
		if line.Action == "" {
			line.Action = t.Steps[n].Action
		}
		line.Target = target(line.Action, seen)
		total = line.Total
		if r.Observation != nil {
			seen = r.Observation.Text
		}
		f.Rows = append(f.Rows, line)
	}
	marks(len(t.Steps))
	if t.End == nil && len(f.Rows) > 0 {
		last := f.Rows[len(f.Rows)-1]
		f.Head.Steps, f.Head.Reward, f.Head.Success = last.Step, last.Total, last.Success
	}
	return f, nil
}

func headOf(h *trace.Header, end *trace.End) head {
	out := head{
		ID: h.EpisodeID, World: h.World, Driver: h.Driver, Task: h.Task, Seed: h.Seed, Split: h.Split, Instruction: h.Instruction,
		Client: h.Client, Started: h.Started, End: "cut_off",
	}
	var req gym.Request
	if json.Unmarshal(h.Request, &req) == nil { // old records have none
		out.Profile, out.Limit = req.Profile, req.MaxSteps
	}
	if end != nil {
		out.End, out.Detail, out.Ended = end.Reason, end.Detail, end.At
		out.Success, out.Reward, out.Steps = end.Success, end.Reward, end.Steps
	}
	return out
}
