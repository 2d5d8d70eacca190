package sandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/rewind"
)

// rewinding is the keeper's side of snapshots. The keeper is the natural tracer: it is the
// parent of all it keeps, and process 1 of their namespace, so nothing escapes it.
type rewinding struct {
	dirs []string

	mu   sync.Mutex       // one snapshot or rewind at a time
	tree *rewind.Tree     // guarded by mu
	base *rewind.Snapshot // guarded by mu
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
		k.rw.tree, k.rw.base = nil, nil
	}
	tree, err := rewind.Attach(rewind.Options{
		Roots: k.roots(), Dirs: k.rw.dirs, QuietTimeout: r.Quiet, Rearm: r.Rearm,
		OwnNamespace: true, ReapLock: &k.reaping,
		OnExit: func(pid, status int) { k.ended(pid, syscall.WaitStatus(status)) },
	})
	if err != nil {
		return rewindFailure(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
	defer cancel()
	base, err := tree.Snapshot(ctx)
	if err != nil {
		_ = tree.Close()
		return rewindFailure(err)
	}
	k.rw.tree, k.rw.base = tree, base
	stats := base.Stats()
	return &rewindReply{Stats: &stats}, nil
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
	if k.rw.base == nil {
		return nil, errors.New("there is no snapshot")
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
	defer cancel()
	if !r.Verify {
		report, err := k.rw.tree.Rewind(ctx, k.rw.base)
		if err != nil {
			return rewindFailure(err)
		}
		return &rewindReply{Report: report}, nil
	}
	report, proof, err := k.rw.tree.Verify(ctx, k.rw.base)
	if err != nil {
		return rewindFailure(err)
	}
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
func (r *request) takesLong() bool { return r.Probe != nil || r.Snapshot != nil || r.Rewind != nil }

// snapshotRequest asks for a snapshot within Timeout, of which at most Quiet is spent waiting
// for the processes to become quiet.
type snapshotRequest struct {
	Timeout time.Duration `json:"timeout"`
	Quiet   time.Duration `json:"quiet"`
	Rearm   int           `json:"rearm"`
}

type rewindRequest struct {
	Timeout time.Duration `json:"timeout"`
	Verify  bool          `json:"verify,omitempty"`
}

// rewindReply answers both. Needs and Refused are failures with a type.
type rewindReply struct {
	Stats   *rewind.SnapshotStats     `json:"stats,omitempty"`
	Report  *rewind.Report            `json:"report,omitempty"`
	Proof   *rewind.Verification      `json:"proof,omitempty"`
	Needs   *rewind.NeedsRespawnError `json:"needs,omitempty"`
	Refused *rewind.RefusedError      `json:"refused,omitempty"`
}
