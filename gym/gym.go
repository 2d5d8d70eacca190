// Package gym is Pommel for use inside a Go program: open a world, reset an
// environment to a task and a seed, step it with actions, read rewards.
//
//	g, err := gym.Open(ctx, gym.Options{World: "shop", Worlds: 2})
//	...
//	defer g.Close()
//	env := g.NewEnv()
//	defer env.Close()
//	first, err := env.Reset(ctx, gym.Request{Task: "buy-item", Seed: 7})
//	for !done {
//		r, err := env.Step(ctx, `click(selector="#submit-order")`)
//		...
//	}
//
// # Failure
//
// Errors carry a Kind. ErrorKind(err) == gym.WorldLost means that a fault of the
// infrastructure ended the episode: mask it, and Reset again.
package gym

import (
	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/episode"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/perturb"
)

// The types of the API, by the names that Gymnasium uses for them.
type (
	// Request asks for an episode: a task, a seed and what observations should hold.
	Request = episode.Request
	// Result is the answer to Reset and Step.
	Result = episode.Result
	// Info is the trainer's part of a Result.
	Info = episode.Info
	// Stage is one milestone of a task.
	Stage = episode.Stage
	// Change is one row that a step has changed.
	Change = episode.Change
	// Timing says where a call's wall time went.
	Timing = episode.Timing
	// Status tells how far an episode is.
	Status = episode.Status
	// Held is an episode that a server holds for a caller.
	Held = episode.Held
	// Observation is what the agent sees.
	Observation = browser.Observation
	// Element is one meaningful node of the page.
	Element = browser.Element
	// PerturbationEvent is one strike of a perturbation, for the trainer.
	PerturbationEvent = perturb.Event
	// Tab is one open page.
	Tab = browser.Tab
	// Dialog is an open JavaScript dialog.
	Dialog = browser.Dialog
	// Image is a screenshot.
	Image = browser.Image
	// View says which optional parts of an observation are wanted.
	View = browser.View
	// ActionError says why an action did not take effect.
	ActionError = action.Error
	// Error is a typed failure.
	Error = fault.Error
	// Kind says what a caller should do about an Error.
	Kind = fault.Kind
)

// The kinds of errors. See package fault's constants for what each means.
const (
	InvalidArgument   = fault.InvalidArgument
	NotFound          = fault.NotFound
	EpisodeOver       = fault.EpisodeOver
	StaleEpisode      = fault.StaleEpisode
	LeaseExpired      = fault.LeaseExpired
	ResourceExhausted = fault.ResourceExhausted
	WorldLost         = fault.WorldLost
	Unsupported       = fault.Unsupported
	Canceled          = fault.Canceled
	Internal          = fault.Internal
)

// ErrorKind is the kind of err; Internal for an error without one, "" for nil.
func ErrorKind(err error) Kind { return fault.KindOf(err) }

// ErrorHint says what to do about err, or "".
func ErrorHint(err error) string { return fault.HintOf(err) }

// TaskInfo describes one task template.
type TaskInfo struct {
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Difficulty string   `json:"difficulty"`
	Split      string   `json:"split"`
	MaxSteps   int      `json:"max_steps"`
	Stages     []string `json:"stages"`
}
