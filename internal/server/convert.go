package server

import (
	"math"
	"time"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// Bounds of the big parts of an observation. Together they stay below maxMessage, so
// that no page can make an answer which the transport refuses.
const (
	maxPart  = 12 << 20
	maxImage = 24 << 20
)

func validAll(in []string) []string {
	if len(in) == 0 {
		return nil
	}
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = wire.Valid(s)
	}
	return out
}

// cut bounds a part and sets truncated when it had to.
func cut(s string, truncated *bool) string { return wire.Cut(s, maxPart, truncated) }

func toView(v *pommelv1.View) (gym.View, error) {
	switch v.GetScreenshot() {
	case "", "png", "jpeg":
	default:
		return gym.View{}, badRequest("view.screenshot is %q; want \"\", \"png\" or \"jpeg\"", v.GetScreenshot())
	}
	if v.GetMaxText() < 0 {
		return gym.View{}, badRequest("view.max_text is %d; want bytes, or 0 for the default", v.GetMaxText())
	}
	return gym.View{
		Elements:   v.GetElements(),
		HTML:       v.GetHtml(),
		AXTree:     v.GetAxtree(),
		Screenshot: v.GetScreenshot(),
		MaxText:    int(v.GetMaxText()),
	}, nil
}

func toSessionRequest(r *pommelv1.ResetRequest) (gym.SessionRequest, error) {
	view, err := toView(r.GetView())
	if err != nil {
		return gym.SessionRequest{}, err
	}
	switch {
	case r.GetTask() == "":
		return gym.SessionRequest{}, badRequest("task is empty; want the id of a task, see ListTasks")
	case r.GetMaxSteps() < 0:
		return gym.SessionRequest{}, badRequest("max_steps is %d; want a number of steps, or 0 for the task's own", r.GetMaxSteps())
	case r.GetLeaseMs() < 0:
		return gym.SessionRequest{}, badRequest("lease_ms is %d; want milliseconds, or 0 for the default", r.GetLeaseMs())
	}
	return gym.SessionRequest{
		Request: gym.Request{
			Task: r.GetTask(), Seed: r.GetSeed(), View: view, Client: r.GetClient(), MaxSteps: int(r.GetMaxSteps()), Profile: r.GetProfile(),
		},
		RequestID: r.GetRequestId(),
		Previous:  r.GetPreviousEpisodeId(),
		Wait:      milliseconds(r.GetWaitMs()),
		Lease:     milliseconds(r.GetLeaseMs()),
	}, nil
}

// milliseconds converts without overflow.
func milliseconds(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(-most, min(ms, most))) * time.Millisecond
}

func fromReset(r *gym.Result) *pommelv1.ResetResponse {
	return &pommelv1.ResetResponse{
		EpisodeId:   r.EpisodeID,
		Instruction: wire.Valid(r.Instruction),
		Observation: fromObservation(r.Observation),
		Info:        fromInfo(&r.Info),
	}
}

func fromStatus(st *gym.Status, token string) *pommelv1.GetEpisodeResponse {
	return &pommelv1.GetEpisodeResponse{
		EpisodeId: st.EpisodeID, Instruction: wire.Valid(st.Instruction), Reward: st.Reward, Last: fromStep(st.Last), AgentToken: token,
		Calls: int32(st.Calls),
	}
}

func fromStep(r *gym.Result) *pommelv1.StepResponse {
	return &pommelv1.StepResponse{
		Step:        int32(r.Step),
		Observation: fromObservation(r.Observation),
		Reward:      r.Reward,
		Terminated:  r.Terminated,
		Truncated:   r.Truncated,
		Info:        fromInfo(&r.Info),
	}
}

func fromObservation(o *gym.Observation) *pommelv1.Observation {
	if o == nil {
		return nil
	}
	truncated := o.Truncated
	out := &pommelv1.Observation{
		Url:           wire.Valid(o.URL),
		Title:         wire.Valid(o.Title),
		FocusedBid:    o.FocusedBid,
		Text:          cut(o.Text, &truncated),
		Html:          cut(o.HTML, &truncated),
		LastAction:    wire.Valid(o.LastAction),
		VirtualTimeMs: o.VirtualTimeMS,
		Screenshot:    fromImage(o.Screenshot, &truncated),
		Elements:      fromElements(o.Elements, &truncated),
	}
	for _, t := range o.Tabs {
		out.Tabs = append(out.Tabs, &pommelv1.Tab{Index: int32(t.Index), Url: wire.Valid(t.URL), Title: wire.Valid(t.Title), Active: t.Active})
	}
	if d := o.Dialog; d != nil {
		out.Dialog = &pommelv1.Dialog{Type: d.Type, Message: cut(d.Message, &truncated), DefaultText: wire.Valid(d.Default)}
	}
	if e := o.LastActionError; e != nil {
		out.LastActionError = &pommelv1.ActionError{Kind: string(e.Kind), Message: wire.Valid(e.Message), Call: int32(e.Call)}
	}
	// JSON cut in the middle is no JSON, so a tree that is too big is left out.
	if len(o.AXTree) <= maxPart {
		out.AxtreeJson = wire.Valid(string(o.AXTree))
	} else {
		truncated = true
	}
	out.Truncated = truncated
	return out
}

func fromImage(i *gym.Image, truncated *bool) *pommelv1.Image {
	if i == nil {
		return nil
	}
	if len(i.Data) > maxImage {
		*truncated = true
		return nil
	}
	return &pommelv1.Image{Format: i.Format, Width: int32(i.Width), Height: int32(i.Height), Scale: i.Scale, Data: i.Data}
}

func fromElements(in []gym.Element, truncated *bool) []*pommelv1.Element {
	if len(in) == 0 {
		return nil
	}
	out := make([]*pommelv1.Element, 0, len(in))
	store := make([]pommelv1.Element, len(in)) // one allocation instead of thousands
	size := 0
	for n := range in {
		e, p := &in[n], &store[n]
		if size += len(e.Name) + len(e.Value) + 64; size > maxPart {
			*truncated = true
			return out
		}
		p.Bid, p.Role, p.Name, p.Value = e.Bid, e.Role, wire.Valid(e.Name), wire.Valid(e.Value)
		p.State, p.Tag, p.Interactive, p.InViewport = e.State, e.Tag, e.Interactive, e.InViewport
		p.Box = []int32{int32(e.Box[0]), int32(e.Box[1]), int32(e.Box[2]), int32(e.Box[3])}
		out = append(out, p)
	}
	return out
}

func fromInfo(i *gym.Info) *pommelv1.Info {
	out := &pommelv1.Info{
		Task:            i.Task,
		Seed:            i.Seed,
		Split:           i.Split,
		Success:         i.Success,
		Potential:       i.Potential,
		Collateral:      validAll(i.Collateral),
		ObservationHash: i.ObservationHash,
		Messages:        validAll(i.Messages),
		Notes:           validAll(i.Notes),
		StillRunning:    validAll(i.StillRunning),
		Infeasible:      i.Infeasible,
		Capped:          i.Capped,
		Reproducible:    i.Reproducible,
		NotReproducible: wire.Valid(i.NotReproducible),
		VerdictJson:     wire.Valid(string(i.Verdict)),
		Perturbed:       i.Perturbed,
		Profile:         i.Profile,
		Perturbations:   fromPerturbations(i.Perturbations),
		Timing: &pommelv1.Timing{
			TotalMs: i.Timing.TotalMS, ActMs: i.Timing.ActMS, ObserveMs: i.Timing.ObserveMS,
			JudgeMs: i.Timing.JudgeMS, ResetMs: i.Timing.ResetMS,
		},
	}
	for _, st := range i.Stages {
		out.Stages = append(out.Stages, &pommelv1.Stage{Name: st.Name, Weight: st.Weight, Holds: st.Holds})
	}
	return out
}

func fromPerturbations(in []gym.PerturbationEvent) []*pommelv1.Perturbation {
	var out []*pommelv1.Perturbation
	for _, e := range in {
		p := &pommelv1.Perturbation{
			VirtualMs: e.VirtualMS, Step: int32(e.Step), Rule: e.Rule, Kind: e.Kind, At: int32(e.At),
			Target: wire.Valid(e.Target), Seen: wire.Valid(e.Seen), Cost: int32(e.Cost),
		}
		for name, n := range e.Numbers {
			if p.Numbers == nil {
				p.Numbers = map[string]int64{}
			}
			p.Numbers[name] = int64(n)
		}
		for name, text := range e.Texts {
			if p.Texts == nil {
				p.Texts = map[string]string{}
			}
			p.Texts[name] = wire.Valid(text)
		}
		out = append(out, p)
	}
	return out
}

func fromTasks(in []gym.TaskInfo) []*pommelv1.Task {
	out := make([]*pommelv1.Task, 0, len(in))
	for _, t := range in {
		out = append(out, &pommelv1.Task{
			Id: t.ID, Title: wire.Valid(t.Title), Difficulty: t.Difficulty, Split: t.Split,
			MaxSteps: int32(t.MaxSteps), Stages: validAll(t.Stages),
		})
	}
	return out
}

func fromDescription(d gym.Description) *pommelv1.GetServerResponse {
	return &pommelv1.GetServerResponse{
		Version: d.Version, World: d.World, WorldTitle: wire.Valid(d.WorldTitle), Driver: d.Driver,
		Worlds: int32(d.Worlds), FreeWorlds: int32(d.Free), LeaseMs: d.Lease.Milliseconds(),
		Viewport: &pommelv1.Viewport{Width: int32(d.Viewport.Width), Height: int32(d.Viewport.Height), Scale: d.Viewport.Scale},
	}
}
