package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/rewind"
)

// SnapshotOptions say how a snapshot is taken.
type SnapshotOptions struct {
	// Quiet is how long to wait for the processes to become quiet; 0 is the default of package rewind.
	Quiet time.Duration
	// Rearm is after how many rewinds writes are tracked afresh; see rewind.Options.
	Rearm int
}

// Snapshot saves the state of all processes and files inside, once they are quiet. From
// then on Rewind puts them back. A *rewind.RefusedError says why that is impossible; the
// processes go on in any case.
func (s *Sandbox) Snapshot(ctx context.Context, o SnapshotOptions) (Saved, error) {
	r, err := s.rewindCall(ctx, request{Snapshot: &snapshotRequest{Timeout: timeLeft(ctx), Quiet: o.Quiet, Rearm: o.Rearm}})
	if err != nil {
		return Saved{}, err
	}
	if r.Stats == nil {
		return Saved{}, errors.New("snapshot: the keeper's answer says nothing")
	}
	return Saved{Stats: *r.Stats, Kept: r.Kept}, nil
}

// Saved is a state that processes and files can be put back to.
type Saved struct {
	// Number names it in Rewind and Forget; the snapshot itself is 0.
	Number int
	Stats  rewind.SnapshotStats
	// Kept is what all saved states take together, in bytes.
	Kept int64
	// Crowded says that hardly more states can be saved, for want of open files.
	Crowded bool
}

// Checkpoint saves the state of now beside the snapshot, as what has changed since the
// state that the processes were last at. Like Snapshot it waits until they are quiet.
func (s *Sandbox) Checkpoint(ctx context.Context, o SnapshotOptions) (Saved, error) {
	r, err := s.rewindCall(ctx, request{Checkpoint: &snapshotRequest{Timeout: timeLeft(ctx), Quiet: o.Quiet}})
	if err != nil {
		return Saved{}, err
	}
	if r.Stats == nil || r.Number == 0 {
		return Saved{}, errors.New("checkpoint: the keeper's answer says nothing")
	}
	return Saved{Number: r.Number, Stats: *r.Stats, Kept: r.Kept, Crowded: r.Crowded}, nil
}

// Forget frees states that Checkpoint has saved and returns what the others take. States
// that it does not know are left out.
func (s *Sandbox) Forget(ctx context.Context, numbers ...int) (kept int64, err error) {
	r, err := s.rewindCall(ctx, request{Forget: &forgetRequest{Numbers: numbers}})
	if err != nil {
		return 0, err
	}
	return r.Kept, nil
}

// Rewind puts all processes and files back to a saved state; 0 is the snapshot. A
// *rewind.NeedsRespawnError says that they could not be; unless it says that they are
// untouched, they have ended.
func (s *Sandbox) Rewind(ctx context.Context, to int) (*rewind.Report, error) {
	r, err := s.rewindCall(ctx, request{Rewind: &rewindRequest{To: to, Timeout: timeLeft(ctx)}})
	if err != nil {
		return nil, err
	}
	if r.Report == nil {
		return nil, errors.New("rewind: the keeper's answer says nothing")
	}
	return r.Report, nil
}

// Verify is Rewind with a comparison of everything before the processes go on.
func (s *Sandbox) Verify(ctx context.Context, to int) (*rewind.Report, *rewind.Verification, error) {
	r, err := s.rewindCall(ctx, request{Rewind: &rewindRequest{To: to, Timeout: timeLeft(ctx), Verify: true}})
	if err != nil {
		return nil, nil, err
	}
	if r.Report == nil || r.Proof == nil {
		return nil, nil, errors.New("verify: the keeper's answer says nothing")
	}
	return r.Report, r.Proof, nil
}

func (s *Sandbox) rewindCall(ctx context.Context, req request) (*rewindReply, error) {
	a, err := s.call(ctx, req)
	if err != nil {
		return nil, err
	}
	closeAll(a.files)
	switch r := a.Rewind; {
	case r == nil:
		return nil, fmt.Errorf("the keeper's answer lacks what was asked for")
	case r.Needs != nil:
		return nil, r.Needs
	case r.Refused != nil:
		return nil, r.Refused
	default:
		return r, nil
	}
}

// unbounded stands for no deadline in requests.
const unbounded = time.Hour

func timeLeft(ctx context.Context) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return time.Until(at)
	}
	return unbounded
}
