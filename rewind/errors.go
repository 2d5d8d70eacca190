package rewind

import (
	"errors"
	"fmt"
)

// Reason names why something cannot be done. The values are stable.
type Reason string

// The reasons.
const (
	ReasonBusy        Reason = "busy"        // the tree did not become quiet in time
	ReasonStall       Reason = "stall"       // a thread does not stop
	ReasonTraced      Reason = "traced"      // a thread cannot be traced: another tracer, or no permission
	ReasonIOUring     Reason = "io_uring"    // rings are written by kernel threads that cannot be stopped
	ReasonRootGone    Reason = "root_gone"   // a root process has ended or replaced its program
	ReasonProcess     Reason = "process"     // a process that is gone cannot be made again
	ReasonThread      Reason = "thread"      // a thread that is gone cannot be made again
	ReasonMemory      Reason = "memory"      // memory of a kind that cannot be tracked, or could not be put back
	ReasonDescriptor  Reason = "descriptor"  // a descriptor of a kind that cannot be put back
	ReasonFile        Reason = "file"        // a file outside the tree's folders is written to, or could not be put back
	ReasonNamespace   Reason = "namespace"   // a process lives in a pid namespace of its own
	ReasonSeccomp     Reason = "seccomp"     // system call filters cannot be suspended with these rights
	ReasonSignal      Reason = "signal"      // a signal state that the tracer would destroy
	ReasonTimer       Reason = "timer"       // a timer that is gone cannot be made again
	ReasonArch        Reason = "arch"        // a program of another architecture
	ReasonKernel      Reason = "kernel"      // the kernel lacks an interface; see Probe
	ReasonEventsLost  Reason = "events_lost" // the kernel dropped file events
	ReasonStopped     Reason = "stopped"     // the process is stopped by job control
	ReasonUnexpected  Reason = "unexpected"  // a call failed that should not
	ReasonLost        Reason = "lost"        // the tree was ended by an earlier failure
	ReasonNotInTree   Reason = "not_in_tree" // the snapshot belongs to another tree or was released
	ReasonInterrupted Reason = "interrupted" // the context ended
)

// ErrNeedsRespawn is what every [NeedsRespawnError] answers to with errors.Is.
var ErrNeedsRespawn = errors.New("the tree cannot be rewound and must be started afresh")

// ErrRefused is what every [RefusedError] answers to with errors.Is.
var ErrRefused = errors.New("the tree cannot be put under a snapshot")

// NeedsRespawnError says that a rewind could not be done. A tree is never handed back
// half rewound: with Ended true all its processes were killed, with Ended false
// nothing was touched and the tree goes on as it was.
type NeedsRespawnError struct {
	Reason Reason
	Detail string
	Ended  bool
}

func (e *NeedsRespawnError) Error() string {
	state := "untouched"
	if e.Ended {
		state = "ended"
	}
	return fmt.Sprintf("rewind: %s: %s (tree %s)", e.Reason, e.Detail, state)
}

// Is makes errors.Is(err, ErrNeedsRespawn) true.
func (e *NeedsRespawnError) Is(target error) bool { return target == ErrNeedsRespawn }

// RefusedError says that a snapshot was not taken. The tree goes on as it was.
type RefusedError struct {
	Reason Reason
	Detail string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("snapshot: %s: %s", e.Reason, e.Detail) }

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// problem is how the parts of the package tell each other what is in the way; the
// public calls turn it into one of the types above.
type problem struct {
	reason Reason
	text   string
}

func (p *problem) Error() string { return string(p.reason) + ": " + p.text }

func fail(r Reason, format string, args ...any) error {
	return &problem{reason: r, text: fmt.Sprintf(format, args...)}
}

func asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	return &problem{reason: ReasonUnexpected, text: err.Error()}
}
