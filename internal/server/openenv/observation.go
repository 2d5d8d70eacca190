package openenv

import (
	"encoding/json"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// answer is what reset and step return. Metadata is for the trainer: the published
// client hands it over beside the observation.
type answer struct {
	Observation observation `json:"observation"`
	Reward      *float64    `json:"reward"`
	Done        bool        `json:"done"`
	Metadata    metadata    `json:"metadata"`
}

// observation is what the agent sees. Text, url, goal, error and last_action_error are
// where agents made for OpenEnv's browser environments look for them.
type observation struct {
	Goal            string          `json:"goal"`
	URL             string          `json:"url"`
	Title           string          `json:"title"`
	Text            string          `json:"text"`
	LastAction      string          `json:"last_action"`
	Error           string          `json:"error"`
	LastActionError bool            `json:"last_action_error"`
	FocusedBid      string          `json:"focused_bid"`
	Tabs            []gym.Tab       `json:"tabs"`
	Dialog          *gym.Dialog     `json:"dialog"`
	Messages        []string        `json:"messages"`
	Truncated       bool            `json:"truncated"`
	Elements        []gym.Element   `json:"elements,omitempty"`
	HTML            string          `json:"html,omitempty"`
	AXTree          json.RawMessage `json:"axtree,omitempty"`
	Screenshot      *gym.Image      `json:"screenshot,omitempty"`
}

// metadata is for the trainer and must not be shown to the agent.
type metadata struct {
	EpisodeID       string          `json:"episode_id"`
	Task            string          `json:"task"`
	Seed            int64           `json:"seed"`
	Split           string          `json:"split"`
	Step            int             `json:"step"`
	Terminated      bool            `json:"terminated"`
	Truncated       bool            `json:"truncated"`
	Success         bool            `json:"success"`
	Potential       float64         `json:"potential"`
	Stages          []gym.Stage     `json:"stages"`
	Collateral      []string        `json:"collateral,omitempty"`
	Infeasible      bool            `json:"infeasible,omitempty"`
	Notes           []string        `json:"notes,omitempty"`
	ObservationHash string          `json:"observation_hash"`
	Verdict         json.RawMessage `json:"verdict,omitempty"`
	Timing          gym.Timing      `json:"timing"`
}

func fromResult(r *gym.Result, goal string) answer {
	i := &r.Info
	a := answer{
		Observation: fromObservation(r.Observation, goal),
		Done:        r.Done(),
		Metadata: metadata{
			EpisodeID: r.EpisodeID, Task: i.Task, Seed: i.Seed, Split: i.Split, Step: r.Step,
			Terminated: r.Terminated, Truncated: r.Truncated, Success: i.Success, Potential: i.Potential, Stages: i.Stages,
			Collateral: i.Collateral, Infeasible: i.Infeasible, Notes: i.Notes, ObservationHash: i.ObservationHash,
			Verdict: json.RawMessage(wire.Valid(string(i.Verdict))), Timing: i.Timing,
		},
	}
	a.Observation.Messages = i.Messages
	if a.Observation.Messages == nil {
		a.Observation.Messages = []string{}
	}
	if r.Step > 0 {
		a.Reward = &r.Reward
	}
	return a
}

// fromObservation bounds the big parts; JSON makes the text valid by itself.
func fromObservation(o *gym.Observation, goal string) observation {
	out := observation{
		Goal: goal, URL: o.URL, Title: o.Title, LastAction: o.LastAction, FocusedBid: o.FocusedBid,
		Tabs: o.Tabs, Dialog: o.Dialog, Truncated: o.Truncated,
	}
	out.Text = wire.Cut(o.Text, maxPart, &out.Truncated)
	out.HTML = wire.Cut(o.HTML, maxPart, &out.Truncated)
	if e := o.LastActionError; e != nil {
		out.Error, out.LastActionError = e.Error(), true
	}
	switch {
	case len(o.AXTree) > maxPart:
		out.Truncated = true
	case len(o.AXTree) > 0:
		out.AXTree = json.RawMessage(wire.Valid(string(o.AXTree))) // json does not look into it
	}
	if o.Screenshot != nil && len(o.Screenshot.Data) > maxPart {
		out.Truncated = true
	} else {
		out.Screenshot = o.Screenshot
	}
	out.Elements = o.Elements
	size := 0
	for n, e := range o.Elements {
		if size += len(e.Name) + len(e.Value) + 64; size > maxPart {
			out.Elements, out.Truncated = o.Elements[:n], true
			break
		}
	}
	return out
}
