// Package trace records episodes and reads them back.
//
// One episode is one folder: trace.jsonl holds a header line, one line a step and
// an end line; pictures lie beside it as files that the lines name. The format is
// append-only: a reader must skip line kinds and fields that it does not know.
//
// # Concurrency
//
// Recording happens on one goroutine of the Store, so that an episode's step does
// not wait for the disk. Records are handed over by value; the observations in
// them must not change afterwards.
//
// # Failure
//
// A full disk must not end an episode. The first failure is kept, reported by
// Err and Close, and the episode that met it is marked incomplete.
package trace

import (
	"encoding/json"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
)

const (
	// FormatVersion is raised when a reader of the old format would misread a new trace.
	FormatVersion = 1
	// MinorVersion is raised when a trace holds more than before. 1 added the request, the
	// views, the clock and the changed rows, and chains them into observation_hash.
	MinorVersion = 1
)

// FileName is the name of the line file in an episode's folder.
const FileName = "trace.jsonl"

// Header says which episode this is: with it and the actions, the episode can be run again.
type Header struct {
	Kind        string         `json:"kind"` // header
	Format      int            `json:"format"`
	Minor       int            `json:"minor,omitempty"`
	Pommel      string         `json:"pommel"`
	EpisodeID   string         `json:"episode_id"`
	World       string         `json:"world"`
	Image       string         `json:"image"`
	Driver      string         `json:"driver"`
	Task        string         `json:"task"`
	Seed        int64          `json:"seed"`
	Split       string         `json:"split,omitempty"`
	Instruction string         `json:"instruction"`
	Params      map[string]any `json:"params,omitempty"`
	Client      string         `json:"client,omitempty"`
	// Request is what Reset was asked for, as JSON. Traces before minor version 1 have none.
	Request json.RawMessage `json:"request,omitempty"`
	// Epoch is the instant at which the episode's clock began.
	Epoch   time.Time `json:"epoch,omitzero"`
	Started time.Time `json:"started"`
}

// Step is one action and what came of it. Step 0 is the reset.
type Step struct {
	Kind        string               `json:"kind"` // step
	Step        int                  `json:"step"`
	Action      string               `json:"action"`
	View        browser.View         `json:"view,omitzero"`
	Observation *browser.Observation `json:"observation"`
	Screenshot  string               `json:"screenshot_file,omitempty"`
	Reward      float64              `json:"reward"`
	Terminated  bool                 `json:"terminated"`
	Truncated   bool                 `json:"truncated"`
	// Info is what the trainer was told, evidence included.
	Info json.RawMessage `json:"info,omitempty"`
	At   time.Time       `json:"at"`
}

// End closes an episode. Reason is terminated, truncated, closed, lease_expired or world_lost.
type End struct {
	Kind    string    `json:"kind"` // end
	Reason  string    `json:"reason"`
	Detail  string    `json:"detail,omitempty"`
	Success bool      `json:"success"`
	Reward  float64   `json:"reward"`
	Steps   int       `json:"steps"`
	At      time.Time `json:"at"`
}

// Trace is a whole episode read back.
type Trace struct {
	Header Header
	Steps  []Step
	Marks  []Mark // checkpoints and restores, in order
	// End is nil for an episode that was cut off.
	End *End
}
