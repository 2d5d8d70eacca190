package episode

import (
	"encoding/json"
	"net/url"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/perturb"
	"github.com/pommelgym/pommel/internal/reward"
	"github.com/pommelgym/pommel/internal/trace"
)

// result puts an observation, a verdict and what has struck together and extends the chain
// of hashes.
// Preconditions: e.mu is held.
func (e *Episode) result(o *browser.Observation, v *reward.Verdict, struck []perturb.Event) *Result {
	changes := changesFrom(v.Changes[min(e.seen, len(v.Changes)):])
	e.seen = len(v.Changes)
	e.chain.add(o, v.Reward, changes, struck)
	info := Info{
		Task: e.inst.ID, Seed: e.inst.Seed, Split: e.inst.SeedSplit,
		Success: v.Success, Potential: v.Potential, Reproducible: e.drift == "", NotReproducible: e.drift, ObservationHash: e.chain.String(), Changes: changes,
	}
	for _, s := range v.Stages {
		info.Stages = append(info.Stages, Stage{Name: s.Name, Weight: s.Weight, Holds: s.Holds})
	}
	for _, c := range v.Collateral {
		info.Collateral = append(info.Collateral, c.Table)
	}
	// A verdict holds nothing that cannot be encoded; if it did, the trainer would miss the evidence only.
	info.Verdict, _ = json.Marshal(v)
	r := &Result{EpisodeID: e.id, Step: e.step, Observation: o, Reward: v.Reward, Info: info}
	e.tell(r, struck)
	return r
}

func resolveURL(base, ref string) (string, error) {
	b, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	u, err := b.Parse(ref)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// record begins the episode's record. Preconditions: e.mu is held.
func (e *Episode) record(d Deps, r Request, first *Result) {
	if d.Traces == nil {
		return
	}
	h := d.Header
	h.EpisodeID, h.Task, h.Seed, h.Split = e.id, e.inst.ID, e.inst.Seed, e.inst.SeedSplit
	h.Instruction, h.Client, h.Started = first.Instruction, r.Client, trace.Now()
	h.Epoch = e.world.Epoch()
	h.Request, _ = json.Marshal(r) // plain fields: it cannot fail
	h.Params = map[string]any{}
	for _, p := range e.inst.Params {
		for _, f := range p.Fields {
			name := p.Name
			if p.Row {
				name += "." + f.Name
			}
			h.Params[name] = f.Value.JSON()
		}
	}
	e.rec = d.Traces.Begin(h)
	e.rec.Step(traceStep(first, "", r.View))
}

func traceStep(r *Result, action string, view browser.View) trace.Step {
	info := r.Info
	raw, _ := json.Marshal(info)
	return trace.Step{
		Step: r.Step, Action: action, View: view, Observation: r.Observation, Reward: r.Reward,
		Terminated: r.Terminated, Truncated: r.Truncated, Info: raw, At: trace.Now(),
	}
}
