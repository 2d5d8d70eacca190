package rewind

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Tree is a tree of running processes that can be snapshotted and rewound. Its methods
// may be called from any goroutine; they run one after the other.
type Tree struct {
	opt    Options
	tracer *tracer
	self   int

	mu      sync.Mutex
	lost    *NeedsRespawnError // guarded by mu
	closed  bool               // guarded by mu
	procs   map[int]*process
	objects map[identity]*object
	shm     *arena
	files   *fileStore
	base    *Snapshot        // the state that tracking is relative to
	target  *Snapshot        // the state that is being put back
	snaps   []*Snapshot      // the oldest first
	watched map[int]*os.File // guarded by mu; processes whose death is waited for
	tainted bool             // a snapshot failed half-way: what was written since base is not known any more
	swaps   bool             // the host may have swapped pages out
	epoch   uint32
	lastPid int

	helper       *helper
	seizeOptions uint64
	nsDepth      int
	nextSlot     int
	foreign      map[int]bool // children of ours that were there before

	busy       string // what kept the last attempt at a snapshot from being quiet
	flying     int
	flyingSame int

	report  *Report
	tids    []int
	polls   []uapi.PollFd
	polled  []readableOf
	sink    []byte
	infoBuf []byte
	live    []*process
}

// Attach prepares to snapshot a tree. Nothing is done to the processes yet.
func Attach(opt Options) (*Tree, error) {
	opt.setDefaults()
	if !supported {
		return nil, &RefusedError{Reason: ReasonArch, Detail: "programs for " + runtime.GOARCH + " cannot be rewound"}
	}
	if len(opt.Roots) == 0 {
		return nil, fmt.Errorf("attach: Options.Roots names no process")
	}
	t := &Tree{
		opt: opt, self: os.Getpid(), procs: map[int]*process{}, objects: map[identity]*object{},
		report: &Report{}, sink: make([]byte, 64<<10), infoBuf: make([]byte, 64<<10), foreign: map[int]bool{}, watched: map[int]*os.File{},
	}
	for _, pid := range opt.Roots {
		var b [8192]byte
		status := readSmall(fmt.Sprintf("/proc/%d/status", pid), b[:])
		if len(status) == 0 {
			return nil, fmt.Errorf("attach: there is no process %d", pid)
		}
		t.nsDepth = len(strings.Fields(statusField(status, "NSpid")))
	}
	if opt.OwnNamespace {
		for _, pid := range children(t.self, nil) {
			t.foreign[pid] = true
		}
		for _, pid := range opt.Roots {
			delete(t.foreign, pid)
		}
	}
	var err error
	if t.files, err = newFileStore(opt.Dirs); err != nil {
		return nil, refuse(err)
	}
	if t.shm, err = newArena("saved-shared"); err != nil {
		t.files.close()
		return nil, fmt.Errorf("attach: %w", err)
	}
	t.tracer, t.helper = startTracer(), startHelper()
	t.seizeOptions = uapi.PtraceOSuspendSeccomp
	return t, nil
}

func refuse(err error) error {
	p := asProblem(err)
	return &RefusedError{Reason: p.reason, Detail: p.text}
}

// Close lets go of the tree, which goes on running from where it is, and frees all snapshots.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	t.unwatch()
	t.tracer.stop()
	t.helper.dismiss()
	for len(t.snaps) > 0 {
		t.snaps[0].free()
	}
	for _, p := range t.procs {
		p.close()
	}
	for _, o := range t.objects {
		o.close()
	}
	t.files.close()
	t.shm.close()
	return nil
}

// Snapshot saves the state of the whole tree once it is quiet: every thread waits in a
// system call and no bytes are on their way between its members. The tree goes on from there.
func (t *Tree) Snapshot(ctx context.Context) (*Snapshot, error) { return t.capture(ctx, nil) }

// Checkpoint saves the state of the tree as what has changed since parent, which must be
// the snapshot or checkpoint that the tree was last at (taken or rewound to). The
// checkpoint is a snapshot like any other: the tree can be rewound to it and to parent.
func (t *Tree) Checkpoint(ctx context.Context, parent *Snapshot) (*Snapshot, error) {
	if parent == nil {
		return nil, fmt.Errorf("checkpoint: no parent is given")
	}
	return t.capture(ctx, parent)
}

func (t *Tree) usable(s *Snapshot) error {
	switch {
	case t.closed:
		return fmt.Errorf("the tree is closed")
	case t.lost != nil:
		return t.lost
	case s != nil && (s.tree != t || s.procs == nil):
		return &NeedsRespawnError{Reason: ReasonNotInTree, Detail: "the snapshot belongs to another tree or was released"}
	}
	return nil
}

// process gives the saved state of a process.
func (s *Snapshot) process(pid int) *processState {
	for _, st := range s.procs {
		if st.pid == pid {
			return st
		}
	}
	return nil
}

// restartTracer replaces a tracing thread that something stopped it from finishing
// properly: with its end the kernel lets go of every thread it was attached to.
func (t *Tree) restartTracer() {
	t.tracer.stop()
	t.tracer = startTracer()
	for _, p := range t.procs {
		p.tasks = p.tasks[:0]
	}
}
