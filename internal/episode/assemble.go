package episode

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/url"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/reward"
	"github.com/pommelgym/pommel/internal/trace"
)

// result puts an observation and a verdict together and extends the chain of hashes.
// Preconditions: e.mu is held.
func (e *Episode) result(o *browser.Observation, v *reward.Verdict) *Result {
	e.chain = extend(e.chain, o)
	info := Info{
		Task: e.inst.ID, Seed: e.inst.Seed, Split: e.inst.SeedSplit,
		Success: v.Success, Potential: v.Potential, ObservationHash: hex.EncodeToString(e.chain[:]),
	}
	for _, s := range v.Stages {
		info.Stages = append(info.Stages, Stage{Name: s.Name, Weight: s.Weight, Holds: s.Holds})
	}
	for _, c := range v.Collateral {
		info.Collateral = append(info.Collateral, c.Table)
	}
	// A verdict holds nothing that cannot be encoded; if it did, the trainer would miss the evidence only.
	info.Verdict, _ = json.Marshal(v)
	return &Result{EpisodeID: e.id, Step: e.step, Observation: o, Reward: v.Reward, Info: info}
}

// extend hashes what the agent can see of an observation into the chain. Screenshots
// stay out: how Chromium rasterises is not part of the guarantee.
func extend(chain [32]byte, o *browser.Observation) [32]byte {
	h := sha256.New()
	h.Write(chain[:])
	field := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	field(o.URL)
	field(o.Title)
	field(o.FocusedBid)
	field(o.Text)
	for _, t := range o.Tabs {
		field(t.URL)
		field(t.Title)
	}
	if o.Dialog != nil {
		field(o.Dialog.Type)
		field(o.Dialog.Message)
	}
	if o.LastActionError != nil {
		field(string(o.LastActionError.Kind))
	}
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], math.Float64bits(o.VirtualTimeMS))
	h.Write(at[:])
	var out [32]byte
	h.Sum(out[:0])
	return out
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
	h.Instruction, h.Client, h.Started = e.inst.Instruction, r.Client, trace.Now()
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
	e.rec.Step(traceStep(first, ""))
}

func traceStep(r *Result, action string) trace.Step {
	info := r.Info
	raw, _ := json.Marshal(info)
	return trace.Step{
		Step: r.Step, Action: action, Observation: r.Observation, Reward: r.Reward,
		Terminated: r.Terminated, Truncated: r.Truncated, Info: raw, At: trace.Now(),
	}
}
