// Package action holds the agent's action grammar: one or more Python-like calls
// with literal arguments, in the names and signatures that BrowserGym uses, with
// two additions: any element may be named by selector= (CSS, "text=...",
// "role=...") instead of a bid, and finish(answer) ends the episode.
package action

// Call is one parsed and validated call. Args holds every argument of the
// signature by name, defaults filled in; optional ones without a default are absent.
// Values are string, float64, bool, nil, []any or map[string]any.
type Call struct {
	Name string
	Args map[string]any
	// Source is the text of this call as it was written.
	Source string
}

// Target names an element: exactly one of the two is set.
type Target struct {
	Bid      string
	Selector string
}

// ErrorKind is a stable name for why an action did not take effect. It is part of
// the observation (last_action_error.kind), never a Go error.
type ErrorKind string

// The kinds of failed actions. Stable, append only.
const (
	NotFound        ErrorKind = "not_found"
	Ambiguous       ErrorKind = "ambiguous"
	Obscured        ErrorKind = "obscured"
	Disabled        ErrorKind = "disabled"
	NotVisible      ErrorKind = "not_visible"
	NotEditable     ErrorKind = "not_editable"
	NoSuchOption    ErrorKind = "no_such_option"
	InvalidValue    ErrorKind = "invalid_value"
	Stale           ErrorKind = "stale"
	DialogOpen      ErrorKind = "dialog_open"
	NoDialog        ErrorKind = "no_dialog"
	BlockedURL      ErrorKind = "blocked_url"
	InvalidSelector ErrorKind = "invalid_selector"
	InvalidAction   ErrorKind = "invalid_action"
	NavigationError ErrorKind = "navigation_error"
	PageCrashed     ErrorKind = "page_crashed"
	Timeout         ErrorKind = "timeout"
)

// Error is the failure of one call as the agent sees it: what happened and what to do.
type Error struct {
	Kind    ErrorKind `json:"kind"`
	Message string    `json:"message"`
	// Call is the index of the failed call among the calls of the step.
	Call int `json:"call"`
}

func (e *Error) Error() string { return string(e.Kind) + ": " + e.Message }
