package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/pommelgym/pommel/internal/sys"
)

// keeperName is argv[0] of a keeper: how the re-executed program knows what it is.
const keeperName = "pommel-keeper"

// controlFd is where the keeper finds its control socket.
const controlFd = 3

// MaybeKeeper does not return in a process that was started as a keeper; in any other it
// does nothing. Call it first in main and in TestMain.
func MaybeKeeper() {
	if len(os.Args) != 1 || os.Args[0] != keeperName {
		return
	}
	if err := keep(); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// keeper is PID 1 of a sandbox.
type keeper struct {
	ch      *channel
	devNull *os.File
	group   *os.File // through which children get into their control group; nil without

	probes atomic.Int64 // commands run so far

	rw    rewinding
	clock *clock // nil without

	reaping sync.Mutex // held around waits for any child, and while the children are stopped

	mu    sync.Mutex     // taken after reaping
	procs map[int]*child // by pid
	pids  map[int]int    // pid by key
	given map[int]int    // by pid: starts that were given up, whose ends are still to be noted
}

// child is a started process; exited, where set, takes its end instead of an event.
type child struct {
	key    int
	exited chan syscall.WaitStatus
}

// keep serves requests until the owner closes the control socket. Returning ends PID 1
// and thereby, by the kernel, everything in the namespace.
func keep() error {
	if err := sys.CloseAllOnExec(controlFd); err != nil {
		return err
	}
	ch, err := newChannel(os.NewFile(controlFd, "control"))
	if err != nil {
		return err
	}
	if err := harden(); err != nil {
		return err
	}
	k := &keeper{ch: ch, procs: map[int]*child{}, pids: map[int]int{}, given: map[int]int{}}
	// SIGCHLD must be caught before the first child exists. Others are caught and dropped;
	// ignoring them would be inherited by the children.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go k.reap(ended)
	for {
		var req request
		files, err := ch.receive(&req)
		if err != nil {
			return nil // the owner has gone
		}
		if req.takesLong() {
			go k.answer(req, files)
			continue
		}
		k.answer(req, files)
	}
}

// harden makes the keeper unreadable for the processes it keeps and sets what they inherit.
func harden() error {
	return errors.Join(
		sys.HideSelf(),
		sys.LowerLimit(sys.LimitCore, 0, 0),
		sys.LowerLimit(sys.LimitFiles, 8192, 65536),
		sys.LowerLimit(sys.LimitKeys, 8<<20, 8<<20),
	)
}

func (k *keeper) answer(req request, files []*os.File) {
	defer closeAll(files)
	reply := message{ID: req.ID}
	pass, err := k.handle(req, files, &reply)
	if err != nil {
		reply.Err = err.Error()
	}
	// A failed send means that the owner has gone, which ends the keeper elsewhere.
	_ = k.ch.send(reply, pass...)
	closeAll(pass)
}

func (k *keeper) handle(req request, files []*os.File, reply *message) (pass []*os.File, err error) {
	switch {
	case req.Setup != nil:
		return k.setup(*req.Setup, files, reply)
	case req.Start != nil:
		reply.Pid, err = k.start(*req.Start, files)
	case req.Signal != nil:
		err = k.signal(*req.Signal)
	case req.Probe != nil:
		err = k.probe(*req.Probe)
	case req.Copy != nil:
		r := req.Copy
		err = sys.CopyTree(privatePath(r.From), r.To, sys.Owner{UID: r.UID, GID: r.GID})
	case req.Snapshot != nil:
		reply.Rewind, err = k.snapshot(*req.Snapshot)
	case req.Checkpoint != nil:
		reply.Rewind, err = k.checkpoint(*req.Checkpoint)
	case req.Forget != nil:
		reply.Rewind, err = k.forget(*req.Forget)
	case req.Rewind != nil:
		reply.Rewind, err = k.rewind(*req.Rewind)
	case req.Reseed != nil:
		err = k.reseed(*req.Reseed)
	case req.Check:
		// What has ended until now is reported before the answer.
		for k.reapOne() {
		}
	default:
		err = errors.New("empty request")
	}
	return nil, err
}

func (k *keeper) setup(cfg Config, files []*os.File, reply *message) ([]*os.File, error) {
	if len(files) > 0 {
		fd, err := syscall.Dup(int(files[0].Fd()))
		if err != nil {
			return nil, fmt.Errorf("keep control group: %w", err)
		}
		sys.CloseOnExec(fd)
		k.group = os.NewFile(uintptr(fd), "group")
	}
	if err := syscall.Sethostname([]byte(cfg.Hostname)); err != nil {
		return nil, fmt.Errorf("set host name: %w", err)
	}
	if !cfg.SharedNetwork {
		if err := sys.LoopbackUp(); err != nil {
			return nil, err
		}
	}
	if err := buildRoot(cfg); err != nil {
		return nil, err
	}
	// Applications may listen on port 80: this is their own loopback.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0); err != nil {
		return nil, fmt.Errorf("open low ports: %w", err)
	}
	var err error
	if k.devNull, err = os.OpenFile("/dev/null", os.O_RDWR, 0); err != nil {
		return nil, fmt.Errorf("open null device: %w", err)
	}
	k.rw.dirs = rewindFolders(cfg)
	root, err := sys.OpenRoot()
	if err != nil {
		return nil, err
	}
	pass := []*os.File{root}
	if cfg.Clock != nil {
		page, err := k.startClock(*cfg.Clock)
		if err != nil {
			reply.NoClock = err.Error()
		} else {
			pass = append(pass, page)
		}
	}
	return pass, nil
}

// start runs a process: files[0] takes its output, the others become descriptors 3, 4 ...
func (k *keeper) start(r startRequest, files []*os.File) (int, error) {
	if len(files) == 0 {
		return 0, errors.New("no descriptor for the output")
	}
	return k.spawn(r.Process, files, &child{key: r.Key})
}

func (k *keeper) spawn(p Process, files []*os.File, c *child) (int, error) {
	if k.devNull == nil || len(p.Argv) == 0 {
		return 0, errors.New("nothing to run, or not set up")
	}
	program, err := lookPath(p)
	if err != nil {
		return 0, err
	}
	fds := []uintptr{k.devNull.Fd(), files[0].Fd(), files[0].Fd()}
	for _, f := range files[1:] {
		fds = append(fds, f.Fd())
	}
	for _, fd := range fds {
		// What Go made is non-blocking, which most programs do not expect of their output.
		if err := syscall.SetNonblock(int(fd), false); err != nil {
			return 0, fmt.Errorf("start %s: %w", p.Name, err)
		}
	}
	attr := &syscall.ProcAttr{Dir: p.Dir, Env: p.Env, Files: fds, Sys: &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.UID), Groups: groupsOf(p)},
		// A session of its own: signals to a group stay within one service.
		Setsid: true,
	}}
	// A start under the clock passes the gate that a rewind closes, so there is one at a time.
	k.rw.mu.Lock()
	defer k.rw.mu.Unlock()
	// Held until the child is in the table, so that its end cannot come first.
	k.mu.Lock()
	defer k.mu.Unlock()
	pid, err := k.fork(p, program, attr)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", p.Name, err)
	}
	k.clock.started(p, pid)
	k.procs[pid] = c
	k.pids[c.key] = pid
	// The keeper itself is exempt from the killer of a full cgroup; its children are not.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(itoa(p.OOMScore)), 0)
	return pid, nil
}

func groupsOf(p Process) []uint32 {
	var out []uint32
	for _, g := range p.Groups {
		out = append(out, uint32(g))
	}
	return out
}

// pidTries is how often a number is tried for: a thread of another process that starts at the
// same moment takes it away.
const pidTries = 5

// fork is called with mu held.
func (k *keeper) fork(p Process, program string, attr *syscall.ProcAttr) (pid int, err error) {
	for try := 1; ; try++ {
		pid, err = sys.ForkConfined(sys.Confinement{
			Nice: p.Nice, Landlock: p.Landlock, Tasks: k.group, Notify: k.clock.serve(p),
			SameAddresses: p.SameAddresses, Pid: p.Pid,
		}, program, p.Argv, attr)
		if err != nil || p.Pid == 0 || pid == p.Pid || try == pidTries {
			return pid, err
		}
		// Nobody has heard of it yet, and nobody is to hear of its end, which may become known
		// only when the next one has its number.
		k.given[pid]++
		_ = syscall.Kill(pid, syscall.SIGKILL)
		k.clock.again(p)
	}
}

func lookPath(p Process) (string, error) {
	name := p.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, e := range p.Env {
		value, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range strings.Split(value, ":") {
			full := path.Join(dir, name)
			if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return full, nil
			}
		}
	}
	return "", fmt.Errorf("start %s: no program named %q on its PATH inside the world", p.Name, name)
}

func (k *keeper) signal(r signalRequest) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	pid, ok := k.pids[r.Key]
	if !ok {
		return nil // it has ended
	}
	// The whole session: a shell's children too.
	if err := syscall.Kill(-pid, r.Signal); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("signal %d: %w", pid, err)
	}
	return nil
}

// reap takes the end of every child: of those it started, and of orphans.
func (k *keeper) reap(ended <-chan os.Signal) {
	for range ended {
		for k.reapOne() {
		}
	}
}

func (k *keeper) reapOne() bool {
	k.reaping.Lock()
	defer k.reaping.Unlock()
	// Held until the end is noted, so that a start in between cannot take the number over.
	k.mu.Lock()
	defer k.mu.Unlock()
	var status syscall.WaitStatus
	// A wait for any child takes the stops of one that is being put under the clock.
	gate := k.clock.gate()
	gate.Lock()
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	gate.Unlock()
	if err == syscall.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	k.note(pid, status)
	return true
}

// ended takes an end that was noticed while the children were stopped.
func (k *keeper) ended(pid int, status syscall.WaitStatus) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note(pid, status)
}

// note reports the end of a child that is waited for. It is called with mu held.
func (k *keeper) note(pid int, status syscall.WaitStatus) {
	if k.given[pid] > 0 {
		k.given[pid]--
		return
	}
	c := k.procs[pid]
	if c == nil {
		return
	}
	delete(k.procs, pid)
	delete(k.pids, c.key)
	if c.exited != nil {
		c.exited <- status
		return
	}
	ev := &exitEvent{Key: c.key, Code: status.ExitStatus()}
	if status.Signaled() {
		ev.Signal = status.Signal()
	}
	_ = k.ch.send(message{Exit: ev})
}
