package rewind

import (
	"os"
	"slices"
	"syscall"

	"github.com/pommelgym/pommel/internal/uapi"
)

// While a snapshot exists, duplicates of the Unix sockets between members of the tree are
// held. So when a process dies in the midst of an episode its peers are not told: a browser
// waits for ever for a renderer that was killed. Deaths are therefore watched, and what was
// held of the dead process's sockets is let go. Such a process cannot be made again.
//
// Processes with one thread are left out: servers that fork a process for each connection
// end them all the time, learn of it from the kernel as their parent, and can have them back.

// watchDeaths watches the processes of a new snapshot that no earlier one had.
func (t *Tree) watchDeaths(s *Snapshot) {
	for _, st := range s.procs {
		if len(st.threads) < 2 || t.watched[st.pid] != nil || slices.Contains(t.opt.Roots, st.pid) {
			continue
		}
		fd, err := uapi.PidfdOpen(st.pid)
		if err != nil {
			continue // it has just ended; the rewind will see that
		}
		if err := syscall.SetNonblock(fd, true); err != nil {
			uapi.Close(fd)
			continue
		}
		f := os.NewFile(uintptr(fd), "process")
		t.watched[st.pid] = f
		go t.awaitDeath(st.pid, f)
	}
}

// awaitDeath ends with the process, or when the file is closed.
func (t *Tree) awaitDeath(pid int, f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	if err := raw.Read(func(fd uintptr) bool { return hasExited(int(fd)) }); err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = f.Close()
	if t.watched[pid] == f {
		delete(t.watched, pid)
		t.letDeadGo(pid)
	}
}

// letDeadGo closes what is held of a dead process's Unix sockets.
func (t *Tree) letDeadGo(pid int) {
	if p := t.procs[pid]; t.closed || p != nil && p.pidfd >= 0 && !hasExited(p.pidfd) {
		return // a rewind has made it again meanwhile
	}
	for _, s := range t.snaps {
		st := s.process(pid)
		if st == nil {
			continue
		}
		for i := range st.files {
			if d := &st.files[i]; d.kind == kindSocket && d.family == uapi.AfUnix && d.held() {
				uapi.Close(d.dup)
				d.dup = -1
				st.letGo = true
			}
		}
	}
}

// hasExited is also true for a process whose parent has not fetched it yet.
func hasExited(pidfd int) bool {
	n, _ := uapi.Poll([]uapi.PollFd{{Fd: int32(pidfd), Events: uapi.PollIn}}, 0)
	return n > 0
}

func (t *Tree) unwatch() {
	for _, f := range t.watched {
		_ = f.Close()
	}
	clear(t.watched)
}
