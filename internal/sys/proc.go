package sys

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// StartTime is when a process began, in clock ticks since boot: with the pid it names a
// process for as long as the machine is up. It is 0 for a process that is not there.
func StartTime(pid int) uint64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold spaces and parentheses.
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0
	}
	t, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0
	}
	return t
}

// PidNamespace names the pid namespace of this process: pids mean something within one only.
func PidNamespace() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("find pid namespace: %w", err)
	}
	return st.Ino, nil
}

// HideSelf keeps other users away from this process's memory and /proc entries, and makes
// it leave no core file.
func HideSelf() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide process: %w", err)
	}
	return nil
}

// LowerLimit bounds a resource of this process and its children to come. A bound that is
// lower already stays.
func LowerLimit(resource int, soft, hard uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return fmt.Errorf("get resource limit %d: %w", resource, err)
	}
	hard = min(hard, now.Max)
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: min(soft, hard), Max: hard}); err != nil {
		return fmt.Errorf("set resource limit %d: %w", resource, err)
	}
	return nil
}

// RaiseFiles lets this process hold as many open files as it may: want, if it is allowed to
// go beyond what it was given. It returns how many that are.
func RaiseFiles(want uint64) (uint64, error) {
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: want, Max: want}) == nil {
		return want, nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return 0, fmt.Errorf("get the limit of open files: %w", err)
	}
	now.Cur = now.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return 0, fmt.Errorf("raise the limit of open files: %w", err)
	}
	return now.Cur, nil
}

// FilesOpen is about how many files this process holds open: all below the first free number.
func FilesOpen() (uint64, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("count open files: %w", err)
	}
	unix.Close(fd)
	return uint64(fd), nil
}

// Resources that LowerLimit takes.
const (
	LimitCore  = unix.RLIMIT_CORE
	LimitFiles = unix.RLIMIT_NOFILE
	LimitKeys  = unix.RLIMIT_MEMLOCK
)

// CloseAllOnExec keeps every descriptor from first on from the children of this process:
// its own, and those that whoever started it left open.
func CloseAllOnExec(first int) error {
	if err := unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors on exec: %w", err)
	}
	return nil
}

// CloseOnExec keeps a descriptor from the children of this process.
func CloseOnExec(fd int) { unix.CloseOnExec(fd) }

// Socketpair makes two connected sockets that keep message borders and carry descriptors.
func Socketpair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}

// OpenRoot opens the root folder for others to walk into; it cannot be read through.
func OpenRoot() (*os.File, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open root: %w", err)
	}
	return os.NewFile(uintptr(fd), "root"), nil
}

// LoopbackUp brings up the only interface of a new network namespace and lets every user
// take low ports there.
func LoopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}

// ProcessCPU is the processor time that a process has used, its threads together.
func ProcessCPU(pid int) (time.Duration, error) {
	// The kernel's encoding of "the scheduler's clock of process pid".
	const schedClock = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &ts); err != nil {
		return 0, fmt.Errorf("read processor time of %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// Rights is the control message that passes descriptors over a Unix socket.
func Rights(fds ...int) []byte { return unix.UnixRights(fds...) }

// Streampair makes two connected sockets that carry bytes: the first for this program, the
// second for a child.
func Streampair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "stream"), os.NewFile(uintptr(fds[1]), "stream"), nil
}

// UnreadByPeer is how many bytes, with what the kernel keeps beside them, the other end of a Unix
// socket has not read yet.
func UnreadByPeer(c syscall.Conn) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("look at a socket: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { n, failed = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return n, errors.Join(err, failed)
}
