package episode

import (
	"encoding/json"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/perturb"
)

// Request asks for an episode.
//
// A record of the episode holds it as JSON, so that a replay asks for the same.
type Request struct {
	Task string       `json:"task"`
	Seed int64        `json:"seed"`
	View browser.View `json:"view"`
	// MaxSteps, if above 0, takes the place of the task's own step limit.
	MaxSteps int `json:"max_steps,omitempty"`
	// Profile names the perturbations of the episode; "" is none.
	Profile string `json:"profile,omitempty"`
	// Client is the caller's name, for logs and traces.
	Client string `json:"client,omitempty"`
}

// Result is the answer to Reset (step 0) and Step. It does not change after it was
// handed out and may be kept.
type Result struct {
	EpisodeID   string               `json:"episode_id"`
	Step        int                  `json:"step"`
	Instruction string               `json:"instruction,omitempty"` // at step 0
	Observation *browser.Observation `json:"observation"`
	Reward      float64              `json:"reward"`
	Terminated  bool                 `json:"terminated"`
	Truncated   bool                 `json:"truncated"`
	Info        Info                 `json:"info"`
}

// Done says that the episode is over.
func (r *Result) Done() bool { return r.Terminated || r.Truncated }

// Info is for the trainer, never for the agent.
type Info struct {
	Task    string `json:"task"`
	Seed    int64  `json:"seed"`
	Split   string `json:"split"`
	Success bool   `json:"success"`
	// Potential is the weighted sum of the stages that hold, 0..1.
	Potential float64 `json:"potential"`
	Stages    []Stage `json:"stages"`
	// Collateral names the tables with changes that the task does not allow.
	Collateral []string `json:"collateral,omitempty"`
	// Verdict is the judge's whole verdict with its evidence.
	Verdict json.RawMessage `json:"verdict,omitempty"`
	// ObservationHash chains over the episode so far: what the agent saw, what it was paid
	// and which rows were changed (SHA-256, hex). Two episodes with equal hashes were equal.
	ObservationHash string `json:"observation_hash"`
	// Changes are the rows that were changed since the last step, in commit order.
	Changes    []Change `json:"changes,omitempty"`
	Messages   []string `json:"messages,omitempty"`
	Notes      []string `json:"notes,omitempty"`
	Infeasible bool     `json:"infeasible,omitempty"`
	// StillRunning names the requests that were left in flight after settling.
	StillRunning []string `json:"still_running,omitempty"`
	// Capped says that a request was slower, in real time, than a step waits for: what came
	// of it depends on the speed of the machine.
	Capped bool `json:"capped,omitempty"`
	// Reproducible says that an episode with the same task, seed and actions is the same
	// again, and NotReproducible why it need not be.
	Reproducible    bool   `json:"reproducible"`
	NotReproducible string `json:"not_reproducible,omitempty"`
	Timing          Timing `json:"timing"`
	// Perturbed says that something may be in the agent's way, of the profile Profile;
	// Perturbations is what struck since the last step.
	Perturbed     bool            `json:"perturbed,omitempty"`
	Profile       string          `json:"profile,omitempty"`
	Perturbations []perturb.Event `json:"perturbations,omitempty"`
}

// Stage is one milestone of the task and whether it holds now.
type Stage struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
	Holds  bool    `json:"holds"`
}

// Timing says where a call's wall time went, in milliseconds.
type Timing struct {
	TotalMS   float64 `json:"total_ms"`
	ActMS     float64 `json:"act_ms,omitempty"`
	ObserveMS float64 `json:"observe_ms,omitempty"`
	JudgeMS   float64 `json:"judge_ms,omitempty"`
	ResetMS   float64 `json:"reset_ms,omitempty"`
}

// Change is one row that a step has changed. Cells are written as PostgreSQL writes them.
type Change struct {
	Table string             `json:"table"`
	Op    string             `json:"op"` // insert, update, delete, truncate
	Old   map[string]*string `json:"old,omitempty"`
	New   map[string]*string `json:"new,omitempty"`
}
