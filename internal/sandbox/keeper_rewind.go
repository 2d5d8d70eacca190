package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/sys"
	"github.com/pommelgym/pommel/rewind"
)

// rewinding is the keeper's side of snapshots. The keeper is the natural tracer: it is the
// parent of all it keeps, and process 1 of their namespace, so nothing escapes it.
type rewinding struct {
	dirs []string

	mu     sync.Mutex               // one snapshot or rewind at a time
	tree   *rewind.Tree             // guarded by mu
	saved  map[int]*rewind.Snapshot // guarded by mu; by number, the first snapshot is 0
	at     int                      // guarded by mu; the state that the tree was last at
	last   int                      // guarded by mu; the newest number
	unused []*rewind.Snapshot       // guarded by mu; forgotten while the tree was at them
	files  uint64                   // guarded by mu; how many may be open
}

// rewindFolders are those in which processes may write: the homes, what the owner asked
// for and the usual places. A folder inside another one is covered by that.
func rewindFolders(cfg Config) []string {
	all := []string{"/tmp", "/var/tmp", "/dev/shm"}
	for _, u := range cfg.Users {
		all = append(all, u.Home)
	}
	for _, f := range cfg.Folders {
		all = append(all, f.Path)
	}
	slices.Sort(all)
	var out []string
	for _, dir := range all {
		if k := len(out); k == 0 || dir != out[k-1] && !strings.HasPrefix(dir, out[k-1]+"/") {
			out = append(out, dir)
		}
	}
	return out
}

// snapshot saves the state of everything that was started until now. An earlier snapshot is dropped.
func (k *keeper) snapshot(r snapshotRequest) (*rewindReply, error) {
	k.rw.mu.Lock()
	defer k.rw.mu.Unlock()
	if k.rw.tree != nil {
		_ = k.rw.tree.Close() // always nil
		k.rw.tree, k.rw.saved, k.rw.unused = nil, nil, nil
	}
	tree, err := rewind.Attach(rewind.Options{
		Roots: k.roots(), Dirs: k.rw.dirs, QuietTimeout: r.Quiet, Rearm: r.Rearm, Seal: true,
		OwnNamespace: true, ReapLock: stopLock{&k.reaping, k.clock},
		OnExit: func(pid, status int) { k.ended(pid, syscall.WaitStatus(status)) },
	})
	if err != nil {
		return rewindFailure(err)
	}
	// What has been started until now has its own limit. Every saved state holds all that is open in it.
	if k.rw.files, err = sys.RaiseFiles(maxFiles); err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
	defer cancel()
	saved := k.clock.saving()
	base, err := tree.Snapshot(ctx)
	if err != nil {
		_ = tree.Close()
		return rewindFailure(err)
	}
	k.rw.tree, k.rw.saved, k.rw.at, k.rw.last = tree, map[int]*rewind.Snapshot{0: base}, 0, 0
	saved(0)
	stats := base.Stats()
	return &rewindReply{Stats: &stats, Kept: tree.Kept()}, nil
}

// checkpoint saves the state of now as what has changed since the state that the processes were last at.
func (k *keeper) checkpoint(r snapshotRequest) (*rewindReply, error) {
	k.rw.mu.Lock()
	defer k.rw.mu.Unlock()
	if k.rw.tree == nil {
		return nil, errors.New("there is no snapshot")
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
	defer cancel()
	parent := k.rw.saved[k.rw.at]
	if parent == nil { // forgotten, but kept as long as the tree is at it
		parent = k.rw.unused[len(k.rw.unused)-1]
	}
	saved := k.clock.saving()
	s, err := k.rw.tree.Checkpoint(ctx, parent)
	if err != nil {
		return rewindFailure(err)
	}
	k.rw.last++
	k.rw.saved[k.rw.last] = s
	saved(k.rw.last)
	k.rw.moved(k.rw.last)
	stats := s.Stats()
	return &rewindReply{Number: k.rw.last, Stats: &stats, Kept: k.rw.tree.Kept(), Crowded: k.rw.crowded()}, nil
}

// maxFiles is how many files the keeper may hold open for saved states: some hundred each.
const maxFiles = 1 << 16

// crowded says that few more states can be saved, for want of open files.
func (r *rewinding) crowded() bool {
	n, err := sys.FilesOpen()
	return err != nil || n > r.files/4*3
}

// forget frees a saved state. One that the tree is at is freed when it has left it.
func (k *keeper) forget(r forgetRequest) (*rewindReply, error) {
	k.rw.mu.Lock()
	defer k.rw.mu.Unlock()
	if k.rw.tree == nil {
		return nil, errors.New("there is no snapshot")
	}
	for _, n := range r.Numbers {
		s := k.rw.saved[n]
		if s == nil || n == 0 {
			continue
		}
		delete(k.rw.saved, n)
		k.clock.forget(n)
		if n == k.rw.at {
			k.rw.unused = append(k.rw.unused, s)
			continue
		}
		if err := s.Release(); err != nil {
			return nil, err
		}
	}
	return &rewindReply{Kept: k.rw.tree.Kept()}, nil
}

// moved notes the state that the tree is at now, and frees those that were only kept because it was at them.
func (r *rewinding) moved(to int) {
	r.at = to
	for _, s := range r.unused {
		_ = s.Release() // fails only for the state that the tree is at, which has a number
	}
	r.unused = nil
}

// roots are the processes that the owner has started and that live.
func (k *keeper) roots() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	var pids []int
	for pid, c := range k.procs {
		if c.exited == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

func (k *keeper) rewind(r rewindRequest) (*rewindReply, error) {
	k.rw.mu.Lock()
	defer k.rw.mu.Unlock()
	to := k.rw.saved[r.To]
	if to == nil {
		return nil, fmt.Errorf("there is no saved state %d", r.To)
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
	defer cancel()
	defer k.clock.restoring(r.To)()
	if !r.Verify {
		report, err := k.rw.tree.Rewind(ctx, to)
		if err != nil {
			return rewindFailure(err)
		}
		k.rw.moved(r.To)
		return &rewindReply{Report: report}, nil
	}
	report, proof, err := k.rw.tree.Verify(ctx, to)
	if err != nil {
		return rewindFailure(err)
	}
	k.rw.moved(r.To)
	return &rewindReply{Report: report, Proof: proof}, nil
}

// rewindFailure keeps the type of an error that the owner acts on.
func rewindFailure(err error) (*rewindReply, error) {
	var needs *rewind.NeedsRespawnError
	var refused *rewind.RefusedError
	switch {
	case errors.As(err, &needs):
		return &rewindReply{Needs: needs}, nil
	case errors.As(err, &refused):
		return &rewindReply{Refused: refused}, nil
	}
	return nil, err
}

// takesLong says that a request may keep the keeper busy while others are to be answered.
func (r *request) takesLong() bool {
	return r.Probe != nil || r.Snapshot != nil || r.Checkpoint != nil || r.Rewind != nil || r.Forget != nil
}

// snapshotRequest asks for a snapshot within Timeout, of which at most Quiet is spent waiting
// for the processes to become quiet.
type snapshotRequest struct {
	Timeout time.Duration `json:"timeout"`
	Quiet   time.Duration `json:"quiet"`
	Rearm   int           `json:"rearm"`
}

type rewindRequest struct {
	To      int           `json:"to,omitempty"`
	Timeout time.Duration `json:"timeout"`
	Verify  bool          `json:"verify,omitempty"`
}

type forgetRequest struct {
	Numbers []int `json:"numbers"`
}

// rewindReply answers all of them. Kept is what the saved states take. Needs and Refused are failures with a type.
type rewindReply struct {
	Number  int                       `json:"number,omitempty"`
	Kept    int64                     `json:"kept,omitempty"`
	Crowded bool                      `json:"crowded,omitempty"`
	Stats   *rewind.SnapshotStats     `json:"stats,omitempty"`
	Report  *rewind.Report            `json:"report,omitempty"`
	Proof   *rewind.Verification      `json:"proof,omitempty"`
	Needs   *rewind.NeedsRespawnError `json:"needs,omitempty"`
	Refused *rewind.RefusedError      `json:"refused,omitempty"`
}
