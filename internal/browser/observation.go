package browser

import (
	"encoding/json"
	"time"

	"github.com/pommelgym/pommel/internal/action"
)

// Observation is what the agent sees after a step. Text and Elements describe the
// active tab; both use the same bids, which stay the same for as long as the
// element lives.
type Observation struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Tabs  []Tab  `json:"tabs"`
	// FocusedBid is the element with keyboard focus, or "".
	FocusedBid string  `json:"focused_bid"`
	Dialog     *Dialog `json:"dialog,omitempty"`
	// Text is the accessibility-style tree of the active tab, one node a line.
	Text     string    `json:"text"`
	Elements []Element `json:"elements,omitempty"`
	// Truncated says that Text or Elements was cut at its limit; the cut is marked in Text.
	Truncated       bool          `json:"truncated,omitempty"`
	LastAction      string        `json:"last_action"`
	LastActionError *action.Error `json:"last_action_error,omitempty"`
	// VirtualTimeMS is the page's time since the episode began.
	VirtualTimeMS float64 `json:"virtual_time_ms"`

	HTML       string          `json:"html,omitempty"`
	Screenshot *Image          `json:"screenshot,omitempty"`
	AXTree     json.RawMessage `json:"axtree,omitempty"`
}

// Tab is one open page; Index is what tab_focus takes.
type Tab struct {
	Index  int    `json:"index"`
	URL    string `json:"url"`
	Title  string `json:"title"`
	Active bool   `json:"active"`
}

// Dialog is an open JavaScript dialog: it must be answered before anything else works.
type Dialog struct {
	Type    string `json:"type"` // alert, confirm, prompt, beforeunload
	Message string `json:"message"`
	Default string `json:"default,omitempty"`
}

// Element is one visible, meaningful node. Box is in CSS pixels of the viewport.
type Element struct {
	Bid   string   `json:"bid"`
	Role  string   `json:"role"`
	Name  string   `json:"name,omitempty"`
	Value string   `json:"value,omitempty"`
	State []string `json:"state,omitempty"` // checked, mixed, disabled, focused, required, expanded, selected, readonly, invalid, hidden_from_ax ...
	Box   [4]int   `json:"box"`             // x, y, width, height
	// Tag is the lower-case HTML tag name.
	Tag string `json:"tag"`
	// Interactive says that a user could click it or type into it.
	Interactive bool `json:"interactive,omitempty"`
	// InViewport says that part of it is on the screen now.
	InViewport bool `json:"in_viewport,omitempty"`
}

// Image is a screenshot. Pixel (x, y) is CSS point (x/Scale, y/Scale) of the viewport.
type Image struct {
	Format string  `json:"format"` // png, jpeg
	Width  int     `json:"width"`
	Height int     `json:"height"`
	Scale  float64 `json:"scale"`
	Data   []byte  `json:"data"`
}

// View says which optional parts of an observation are wanted.
type View struct {
	Elements   bool   `json:"elements,omitempty"`
	HTML       bool   `json:"html,omitempty"`
	AXTree     bool   `json:"axtree,omitempty"`
	Screenshot string `json:"screenshot,omitempty"` // "", "png", "jpeg"
	// MaxText bounds Text in bytes; 0 is the default of 256 KiB.
	MaxText int `json:"max_text,omitempty"`

	proof bool  // see Config
	kept  *kept // the text before, or nil
}

// Outcome is what became of the calls of one step.
type Outcome struct {
	// Err is the failure of the first call that failed; the calls after it were not made.
	Err *action.Error
	// Finished is set when the step called finish; Answer is its argument (nil when it had none).
	Finished   bool
	Infeasible bool
	Answer     *string
	// Messages are what send_msg_to_user said.
	Messages []string
	Settle   Settle
	// Notes are facts about the calls that succeeded: how far a scroll moved, that a value was cut by maxlength.
	Notes []string
}

// Settle reports what the step waited for.
type Settle struct {
	VirtualMS float64       `json:"virtual_ms"`
	Wall      time.Duration `json:"-"`
	// Running names requests and streams that were left in flight.
	Running []string `json:"running,omitempty"`
	// Capped is set when the page had not settled within the real-time bound.
	Capped bool `json:"capped,omitempty"`
}
