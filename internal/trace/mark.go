package trace

import "time"

// The kinds of marks.
const (
	KindCheckpoint = "checkpoint"
	KindRestore    = "restore"
)

// Mark stands between the steps where the episode's state was saved under a name, or was
// put back to a saved one. Step is how many steps had been made in that state: after a
// restore, steps are counted from there again.
type Mark struct {
	Kind       string    `json:"kind"` // checkpoint or restore
	Checkpoint string    `json:"checkpoint"`
	Step       int       `json:"step"`
	At         time.Time `json:"at"`
	// After is how many steps of the trace stand before the mark.
	After int `json:"-"`
}

// Mark records a checkpoint or a restore.
func (r *Recorder) Mark(m Mark) {
	if r == nil {
		return
	}
	r.s.send(func() { r.check(r.line(m)) })
}
