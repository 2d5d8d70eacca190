package rewind

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Snapshot is a saved state of a tree.
type Snapshot struct {
	tree    *Tree
	parent  *Snapshot
	procs   []*processState
	objects []*objectState
	files   map[string]*entry
	stats   SnapshotStats
}

// SnapshotStats says how large a snapshot is and what it took.
type SnapshotStats struct {
	Processes, Threads, Areas, Descriptors, Files int
	PrivatePages, SharedPages                     int
	Attempts                                      int // until the tree was quiet
	Stopped                                       time.Duration
}

// Stats says how large the snapshot is.
func (s *Snapshot) Stats() SnapshotStats { return s.stats }

// Parent is the snapshot above which this one was taken as a checkpoint, or nil.
func (s *Snapshot) Parent() *Snapshot { return s.parent }

// Release frees a snapshot that is not needed any more. Checkpoints above it stay whole.
// The state that the tree was last at cannot be released.
func (s *Snapshot) Release() error {
	t := s.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || s.procs == nil {
		return nil
	}
	if t.base == s {
		return fmt.Errorf("release: the tree is at this snapshot")
	}
	s.free()
	return nil
}

func (s *Snapshot) free() {
	t := s.tree
	if i := slices.Index(t.snaps, s); i >= 0 {
		t.snaps = slices.Delete(t.snaps, i, i+1)
	}
	for _, st := range s.procs {
		st.close()
		if p := t.procs[st.pid]; p != nil && p.arena != nil {
			for _, r := range st.runs {
				p.arena.release(pageRun{r.first, r.n})
			}
		}
	}
	for _, o := range s.objects {
		o.release(t.shm)
	}
	t.files.release(s.files)
	s.procs, s.objects, s.files = nil, nil, nil
}

func (t *Tree) capture(ctx context.Context, parent *Snapshot) (*Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable(parent); err != nil {
		return nil, err
	}
	if parent != nil && parent != t.base {
		return nil, fmt.Errorf("checkpoint: the tree is not at the given parent; rewind to it first")
	}
	s := &Snapshot{tree: t, parent: parent}
	limit, cancel := context.WithTimeout(ctx, t.opt.QuietTimeout)
	defer cancel()
	for {
		again, err := t.captureOnce(s)
		if err != nil {
			s.free()
			if asProblem(err).reason == ReasonStall {
				t.restartTracer()
			}
			return nil, refuse(err)
		}
		if !again {
			break
		}
		select { // nothing tells when a program has become quiet: look again
		case <-limit.Done():
			s.free()
			if ctx.Err() != nil {
				return nil, &RefusedError{Reason: ReasonInterrupted, Detail: ctx.Err().Error()}
			}
			return nil, &RefusedError{Reason: ReasonBusy, Detail: fmt.Sprintf("the tree did not become quiet within %v: %s", t.opt.QuietTimeout, t.busy)}
		case <-time.After(min(time.Duration(s.stats.Attempts)*5*time.Millisecond, 50*time.Millisecond)):
		}
	}
	t.snaps = append(t.snaps, s)
	t.watchDeaths(s)
	t.base, t.tainted = s, false
	return s, nil
}

// captureOnce stops the tree and, if it is quiet, saves it.
func (t *Tree) captureOnce(s *Snapshot) (again bool, err error) {
	t.opt.ReapLock.Lock()
	defer t.opt.ReapLock.Unlock()
	err = t.tracer.do(func() error {
		begin := time.Now()
		s.stats.Attempts++
		t.report = &Report{}
		if err := t.stopTree(); err != nil {
			t.letGo(t.live)
			return err
		}
		if t.busy = t.notQuiet(); t.busy != "" {
			t.letGo(t.live)
			again = true
			return nil
		}
		t.tainted = t.base != nil
		if err := t.captureStopped(s); err != nil {
			t.letGo(t.live)
			return err
		}
		if err := t.resume(t.live, false); err != nil {
			return err
		}
		t.lastPid = lastPid()
		s.stats.Stopped = time.Since(begin)
		return nil
	})
	return again, err
}

// stopTree finds the processes of the tree and stops them, until no new one turns up.
func (t *Tree) stopTree() error {
	t.live = t.live[:0]
	seen := map[int]bool{}
	next := append([]int(nil), t.opt.Roots...)
	for len(next) > 0 {
		var fresh []*process
		for _, pid := range next {
			if seen[pid] || pid == t.self {
				continue
			}
			seen[pid] = true
			if err := t.checkProcess(pid); err != nil {
				return err
			}
			p, err := t.processOf(pid)
			if err != nil {
				continue // it has ended meanwhile
			}
			fresh = append(fresh, p)
		}
		t.live = append(t.live, fresh...)
		if err := t.stopAll(fresh, keepSignals); err != nil {
			return err
		}
		if err := t.checkFilters(fresh); err != nil {
			return err
		}
		next = next[:0]
		for _, p := range t.live {
			next = children(p.pid, next)
		}
		if t.opt.OwnNamespace {
			next = t.orphans(next)
		}
		k := 0
		for _, pid := range next {
			if !seen[pid] {
				next[k] = pid
				k++
			}
		}
		next = next[:k]
	}
	for _, p := range t.live {
		if len(p.tasks) == 0 {
			t.forgetProcess(p.pid)
		}
	}
	t.dropEnded()
	return t.checkRoots()
}

func (t *Tree) checkRoots() error {
	for _, pid := range t.opt.Roots {
		if p := t.procs[pid]; p == nil || len(p.tasks) == 0 {
			return fail(ReasonRootGone, "root process %d has ended", pid)
		}
	}
	return nil
}

// processOf gives the handles of a process, opening them when it is new.
func (t *Tree) processOf(pid int) (*process, error) {
	if p := t.procs[pid]; p != nil {
		if p.pidfd >= 0 && p.reachable() {
			return p, nil
		}
		t.forgetProcess(pid)
		if p = t.procs[pid]; p != nil { // another process under a number that a snapshot knows
			return p, p.reopen()
		}
	}
	p, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	t.procs[pid] = p
	return p, nil
}

// reachable says whether the handles still belong to a living process.
func (p *process) reachable() bool {
	_, err := uapi.Dirents(p.taskDir, make([]byte, 512), true)
	return err == nil
}

// orphans adds the children of this program that are not its own affair. The kernel
// gives orphans to the first thread of the program that adopts them.
func (t *Tree) orphans(out []int) []int {
	var b [16384]byte
	for f := range bytes.FieldsSeq(readSmall(fmt.Sprintf("/proc/self/task/%d/children", t.self), b[:])) {
		pid, _ := decField(f, 0)
		if !t.foreign[int(pid)] {
			out = append(out, int(pid))
		}
	}
	return out
}

// notQuiet names the first thing that moves, or nothing.
func (t *Tree) notQuiet() string {
	for _, p := range t.live {
		for i := range p.tasks {
			var r uapi.Regs
			if p.tasks[i].group {
				return fmt.Sprintf("process %d is stopped by job control", p.pid)
			}
			if uapi.GetRegs(p.tasks[i].tid, &r) != 0 || !blockedIn(&r) {
				return fmt.Sprintf("thread %d of process %d is running", p.tasks[i].tid, p.pid)
			}
		}
	}
	flying, where := 0, ""
	for _, p := range t.live {
		n, w := inFlight(p)
		flying += n
		if w != "" {
			where = w
		}
	}
	if flying == 0 {
		t.flying, t.flyingSame = 0, 0
		return ""
	}
	// Bytes that nobody fetches time after time are part of the state: self-pipes, sockets inherited and forgotten.
	if flying == t.flying {
		t.flyingSame++
	} else {
		t.flyingSame = 0
	}
	t.flying = flying
	if t.flyingSame >= 4 {
		return ""
	}
	return where
}

// inFlight counts the descriptors in which bytes wait.
func inFlight(p *process) (n int, where string) {
	fds, _ := numbers(p.fdDir, nil)
	for _, fd := range fds {
		d, e := uapi.PidfdGetfd(p.pidfd, fd)
		if e != 0 {
			continue
		}
		var st uapi.Stat_t
		if uapi.Fstat(d, &st) == nil && (uapi.IsSocket(st.Mode) || uapi.IsFifo(st.Mode)) {
			if k := uapi.Unread(d); k > 0 {
				n++
				where = fmt.Sprintf("%d bytes wait at descriptor %d of process %d", k, fd, p.pid)
			}
		}
		uapi.Close(d)
	}
	return n, where
}

// captureStopped saves the stopped tree.
func (t *Tree) captureStopped(s *Snapshot) error {
	t.swaps = swapping()
	for _, p := range t.live {
		st := &processState{pid: p.pid, cwdFd: -1}
		s.procs = append(s.procs, st)
		if f := statFields(p.pid); len(f) > 5 {
			st.ppid = int(f[4])
		}
		for i := range p.tasks {
			th, err := captureThread(p.tasks[i].tid)
			if err != nil {
				return err
			}
			p.tasks[i].saved = th
			st.threads = append(st.threads, th)
		}
	}
	for _, p := range t.live {
		if err := t.captureOne(p, s); err != nil {
			return err
		}
	}
	if err := t.captureObjects(s); err != nil {
		return err
	}
	files, err := t.files.capture(s.parentFiles(), func(id identity) bool { return t.objects[id] != nil })
	if err != nil {
		return err
	}
	s.files = files
	s.count()
	return nil
}

func (s *Snapshot) parentFiles() map[string]*entry {
	if s.parent == nil {
		return nil
	}
	return s.parent.files
}

func (t *Tree) captureOne(p *process, s *Snapshot) error {
	st := s.process(p.pid)
	tk := &p.tasks[0]
	if p.channel < 0 {
		if err := t.infest(p, tk); err != nil {
			return err
		}
	}
	for i := range p.tasks {
		if err := t.captureInside(p, &p.tasks[i]); err != nil {
			return err
		}
	}
	if err := t.captureProcess(p, tk, st); err != nil {
		return err
	}
	var prev *processState
	if s.parent != nil {
		prev = s.parent.process(p.pid)
	}
	if err := t.captureMemory(p, tk, st, prev); err != nil {
		return err
	}
	return t.captureFiles(p, st)
}

// captureObjects saves the shared memory that the processes have mapped or open.
func (t *Tree) captureObjects(s *Snapshot) error {
	type use struct{ mapped, opened bool }
	used := map[*object]use{}
	for _, st := range s.procs {
		for i := range st.files {
			if o := t.objects[st.files[i].id]; o != nil {
				used[o] = use{used[o].mapped, true}
			}
		}
		for i := range st.areas {
			if o := st.areas[i].object; o != nil {
				used[o] = use{true, used[o].opened}
			}
		}
	}
	for o, u := range used {
		var prev *objectState
		if s.parent != nil {
			prev = s.parent.object(o)
		}
		os, err := o.capture(t.shm, prev)
		if err != nil {
			return err
		}
		os.mapped, os.opened = u.mapped, u.opened
		s.objects = append(s.objects, os)
	}
	return nil
}

func (s *Snapshot) object(o *object) *objectState {
	for _, x := range s.objects {
		if x.o == o {
			return x
		}
	}
	return nil
}

func (s *Snapshot) count() {
	st := &s.stats
	st.Processes, st.Files = len(s.procs), len(s.files)
	for _, p := range s.procs {
		st.Threads += len(p.threads)
		st.Areas += len(p.areas)
		st.Descriptors += len(p.files)
		st.PrivatePages += p.saved()
	}
	for _, o := range s.objects {
		st.SharedPages += o.count
	}
}
