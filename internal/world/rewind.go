package world

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/rewind"
)

// Rewind resets a world in place: memory, files, descriptors and threads of all its
// processes go back to the moment before the first episode, within milliseconds. Where that
// fails, the world is respawned.
type Rewind struct {
	// VerifyEvery, if positive, has each Nth reset of a world compared with the snapshot,
	// byte for byte, before the world goes on.
	VerifyEvery int
	// CheckpointBytes bounds the memory that the checkpoints of one world take; 0 is 1 GiB.
	CheckpointBytes int64
	// Starts is how many starts of episodes a world keeps, to begin them again in one
	// rewind; 0 is 16, negative none.
	Starts int

	// Rehearse, if given, does in a world what its episodes will do. It is asked where that is
	// much slower at the first time: by an emulator, which translates programs as they run.
	// Afterwards the services are started again, so that nothing of it is left but the speed.
	Rehearse func(ctx context.Context, w *World) error

	machine bool // services run in a machine of their own
}

const (
	// rewindTimeout bounds a reset in place; beyond it a new world is the faster way.
	rewindTimeout = 10 * time.Second
	// restTimeout bounds the wait for calls that are still under way when a world comes back.
	restTimeout = 3 * time.Second
	// rearm is after how many rewinds writes are tracked afresh: pages that most episodes
	// write cost no page fault in between.
	rearm = 20

	defaultCheckpointBytes = 1 << 30
	// snapshotRoom is for the first snapshot and for what the keeper itself takes.
	snapshotRoom = 384 << 20
)

// saved is what a world needs to be put back.
type saved struct {
	first *Checkpoint
	stats rewind.SnapshotStats
	// refused is why no snapshot could be taken; then every reset is a respawn.
	refused     error
	driver      string
	verifyEvery int
	resets      int
	taken       map[int]bool // checkpoints of the episode
	starts      *starts
	at          string // the key of the start that the world stands at; "" in its first state and in an episode
	limit       int64  // of the memory that checkpoints take
	// base and kept are what the first snapshot and all saved states take, in bytes.
	base, kept int64
}

// Name is "rewind", or "microvm" where services run in a machine.
func (d Rewind) Name() string {
	if d.machine {
		return machineName
	}
	return "rewind"
}

// Available tries what the kernel must be able to do.
func (d Rewind) Available(ctx context.Context) error {
	if err := (Respawn{}).Available(ctx); err != nil {
		return err
	}
	if runtime.GOARCH != "amd64" {
		return fault.New(fault.Unsupported, "the driver rewind does not exist for %s", runtime.GOARCH).WithHint("use --driver respawn")
	}
	var lacks []string
	for _, f := range rewind.Probe() {
		if f.State == rewind.No && (f.Required || f.Name == "ptrace_suspend_seccomp" || f.Name == "fanotify_dfid_name") {
			lacks = append(lacks, f.Name+": "+f.Reason)
		}
	}
	if len(lacks) > 0 {
		return fault.New(fault.Unsupported, "this host cannot rewind worlds: %s", strings.Join(lacks, "; ")).
			WithHint("Linux 6.7 or later and CAP_SYS_ADMIN are needed; --driver respawn works without")
	}
	if d.machine {
		return machineAvailable(microvm.Emulated)
	}
	return nil
}

// Start brings up a world as Respawn does, lets it do once what episodes will do, and
// saves it. A world that cannot be saved is handed out all the same: its resets are respawns.
func (d Rewind) Start(ctx context.Context, img *Image, progress func(string)) (_ *World, err error) {
	o := startOptions{background: true, warm: true, room: snapshotRoom + d.checkpointBytes()}
	if d.machine {
		if o.template, err = img.machine(ctx, microvm.Emulated, progress); err != nil {
			return nil, err
		}
		o.rehearse = d.Rehearse
	}
	w, err := start(ctx, img, progress, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = w.Close()
		}
	}()
	if progress != nil {
		progress("taking the snapshot")
	}
	if err := w.save(ctx, d); err != nil {
		return nil, fmt.Errorf("save world %s: %w", img.Spec.Name, err)
	}
	return w, nil
}

func (d Rewind) checkpointBytes() int64 {
	if d.CheckpointBytes <= 0 {
		return defaultCheckpointBytes
	}
	return d.CheckpointBytes
}

// save takes the snapshot with every connection open and at rest.
func (w *World) save(ctx context.Context, d Rewind) (err error) {
	if err := w.judge.Mark(ctx); err != nil {
		return err
	}
	held, err := w.hold(ctx)
	if err != nil {
		return err
	}
	defer held.release()
	feed, err := w.judge.State()
	if err != nil {
		return err
	}
	thaw, err := w.freeze(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, thaw()) }()
	w.saved = &saved{first: &Checkpoint{browser: held.browser.Save(), feed: feed, guestNow: w.guestNow()}, driver: d.Name(), verifyEvery: d.VerifyEvery, taken: map[int]bool{}, limit: d.checkpointBytes()}
	w.saved.starts = newStarts(d.Starts)
	s, err := w.box.Snapshot(ctx, sandbox.SnapshotOptions{Rearm: rearm})
	if errors.Is(err, rewind.ErrRefused) {
		w.saved.refused = err
		return nil
	}
	if err != nil {
		return err
	}
	w.saved.stats, w.saved.base, w.saved.kept = s.Stats, s.Kept, s.Kept
	if err := w.judge.Confirm(feed); err != nil {
		w.saved.first.feed = nil // the feed starts anew with each reset
	}
	return nil
}

// holding is a world at rest: nobody uses the browser or the connections to the database.
type holding struct {
	browser     *browser.Held
	connections []func()
}

// hold brings browser and connections to rest and keeps others from using them.
func (w *World) hold(ctx context.Context) (*holding, error) {
	ctx, cancel := context.WithTimeout(ctx, restTimeout)
	defer cancel()
	held, err := w.Browser().Hold(ctx)
	if err != nil {
		return nil, err
	}
	h := &holding{browser: held}
	for _, hold := range []func(context.Context) (func(), error){w.judge.Hold, w.setup.Hold} {
		f, err := hold(ctx)
		if err != nil {
			h.release()
			return nil, err
		}
		h.connections = append(h.connections, f)
	}
	return h, nil
}

// release lets everything be used again. It is called once.
func (h *holding) release() {
	h.browser.Release()
	h.releaseConnections()
}

// releaseConnections lets the connections be used again.
func (h *holding) releaseConnections() {
	for _, f := range h.connections {
		f()
	}
	h.connections = nil
}

// Reset puts the world back in place, or replaces it by a fresh one.
func (d Rewind) Reset(ctx context.Context, w *World) (*World, ResetReport, error) {
	fresh, report, ok := d.tryReset(ctx, w, "")
	if ok {
		return fresh, report, nil
	}
	return d.replace(ctx, w, report)
}

// tryReset puts the world back in place, to the start that it keeps under key, or else to
// its first state. When it cannot, the report says why, and the world is good for nothing
// but to be replaced.
func (d Rewind) tryReset(ctx context.Context, w *World, key string) (*World, ResetReport, bool) {
	report := ResetReport{Driver: d.Name(), Split: map[string]time.Duration{}}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, rewindTimeout)
	defer cancel()
	err := w.reset(ctx, key, d.VerifyEvery, &report)
	report.Took = time.Since(began)
	if err != nil {
		report.SlowPath, report.Reason = true, reasonOf(err)
		return nil, report, false
	}
	fresh := w.renew()
	return fresh, report, true
}

func (w *World) reset(ctx context.Context, key string, verifyEvery int, report *ResetReport) error {
	if w.saved == nil {
		return errors.New("the world has no snapshot")
	}
	to := w.saved.first
	if k, ok := w.saved.starts.find(key); ok {
		to, report.Start = k.state, true
	} else {
		key = ""
	}
	if err := w.rewindTo(ctx, to, verifyEvery, report); err != nil {
		return err
	}
	w.saved.at = key
	w.forgetAll(ctx)
	return nil
}

// reasonOf is one line: reports are counted by it.
func reasonOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// replace starts a new world for one that could not be put back.
func (d Rewind) replace(ctx context.Context, w *World, report ResetReport) (*World, ResetReport, error) {
	began := time.Now()
	_ = w.Close() // what cannot be cleaned up is left to the sweep of the next start
	report.Split["end"] = time.Since(began)
	fresh, err := d.Start(ctx, w.img, nil)
	report.Split["start"] = time.Since(began) - report.Split["end"]
	report.Took += time.Since(began)
	return fresh, report, err
}

// lapper returns a function that notes the time since the last note under a name.
func lapper(report *ResetReport) func(string) {
	mark := time.Now()
	return func(name string) {
		now := time.Now()
		report.Split[name] = now.Sub(mark)
		mark = now
	}
}

// rewindable says why a world cannot even be tried.
func (w *World) rewindable(ctx context.Context) error {
	if w.saved.refused != nil {
		return w.saved.refused
	}
	if w.vm != nil {
		return w.checkHost(ctx)
	}
	return w.Check(ctx)
}

func (w *World) rewindBox(ctx context.Context, to int, report *ResetReport) (err error) {
	var proof *rewind.Verification
	if report.Verified {
		report.Rewind, proof, err = w.box.Verify(ctx, to)
	} else {
		report.Rewind, err = w.box.Rewind(ctx, to)
	}
	if err != nil {
		return err
	}
	// A renderer that died in the episode is made again with every byte in its place, and
	// yet has been seen to hang an episode later. Backends of the database have one thread.
	if r := report.Rewind; r.ProcessesMade > 0 && r.ThreadsCreated > 0 {
		return errors.New("a process with threads had to be made again")
	}
	if proof != nil && !proof.OK() {
		return fmt.Errorf("the rewound world differs from its snapshot in %d places, first: %s", proof.Count, proof.Differences[0])
	}
	return nil
}

func parts(s rewind.Split) map[string]time.Duration {
	return map[string]time.Duration{
		"stop": s.Stop, "processes": s.Processes, "threads": s.Threads, "descriptors": s.Descriptors, "areas": s.Areas, "scan": s.Scan,
		"write": s.Write, "rearm": s.Rearm, "files": s.Files, "drain": s.Drain, "resume": s.Resume,
	}
}
