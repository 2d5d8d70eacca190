package rewind

import (
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Options say which processes make up a tree and how they are to be treated.
type Options struct {
	// Roots are the processes at the top of the tree. All their descendants belong to it.
	Roots []int

	// Dirs are the folders in which the tree keeps its files. Each must lie on a tmpfs
	// that only the tree writes to. A hidden folder is made beside (or, at the top of
	// the file system, in) each of them.
	Dirs []string

	// StopTimeout is how long a thread may take to stop; default 2 s.
	StopTimeout time.Duration

	// QuietTimeout is how long a snapshot waits for the tree to become quiet; default 10 s.
	QuietTimeout time.Duration

	// Rearm is after how many rewinds written pages are tracked afresh; default 1 (always).
	// A page that was once written costs no page fault in the episodes until then, but is
	// written back at each rewind. 10 to 50 suits programs whose episodes resemble each other.
	Rearm int

	// Seal has the shared libraries that processes have mapped sealed (mseal, Linux 6.10), so
	// that most of what they have mapped need not be looked at. They stay sealed after Close: a
	// program that closes a library keeps it mapped. A process that ran another program than
	// its parent and has ended cannot be made again.
	Seal bool

	// AllowForeign accepts files outside Dirs that are open for writing or mapped shared and
	// writable. They are not rewound. By default only the standard streams and files opened
	// for appending are accepted.
	AllowForeign func(path string) bool

	// OwnNamespace says that this program is process 1 of the tree's pid namespace: orphans
	// of the tree fall to it, so its children that a snapshot does not know are ended at a
	// rewind, and a process that came and went leaves its trace in the namespace's last pid.
	OwnNamespace bool

	// ReapLock, if given, is held while the tree is stopped. A program that waits for any child
	// must hold it around each wait: such a wait would take the stops of traced threads.
	ReapLock sync.Locker

	// OnExit, if given, is told about each process whose end was noticed here, with its status.
	// It is called with the tree stopped and must not call back into the tree.
	OnExit func(pid int, status int)
}

func (o *Options) setDefaults() {
	if o.StopTimeout <= 0 {
		o.StopTimeout = 2 * time.Second
	}
	if o.QuietTimeout <= 0 {
		o.QuietTimeout = 10 * time.Second
	}
	if o.Rearm <= 0 {
		o.Rearm = 1
	}
	if o.ReapLock == nil {
		o.ReapLock = noLock{}
	}
	if o.AllowForeign == nil {
		o.AllowForeign = func(string) bool { return false }
	}
	if o.OnExit == nil {
		o.OnExit = func(int, int) {}
	}
}

type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

const (
	pageSize  = 4096
	pageShift = 12
)

func readLink(path string) string {
	var b [512]byte
	n, err := uapi.Readlink(path, b[:])
	if err != nil {
		return ""
	}
	return string(b[:n])
}
