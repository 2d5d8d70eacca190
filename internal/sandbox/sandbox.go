package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sys"
	"github.com/pommelgym/pommel/internal/worldclock"
)

// Sandbox is a running keeper and what it keeps. Its methods may be called at once.
type Sandbox struct {
	keeper *sys.Bound
	ch     *channel
	root   *os.File
	group  *cgroup
	log    *Log

	page    *worldclock.Page // guarded by mu; nil without a clock
	noClock string           // guarded by mu; why it has none, though it was asked for

	done chan struct{} // closed when the keeper and with it everything has ended

	mu      sync.Mutex
	err     error // why it ended, set before done is closed
	next    int
	pending map[int]chan answer
	procs   map[int]*Proc
}

type answer struct {
	message
	files []*os.File
}

// Start makes a sandbox. ctx bounds the start, not the life: that ends with Close.
func Start(ctx context.Context, cfg Config) (_ *Sandbox, err error) {
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.Unsupported, "a sandbox needs root: it makes namespaces and mounts").
			WithHint("run as root, or in a container with CAP_SYS_ADMIN")
	}
	s := &Sandbox{
		done: make(chan struct{}), log: newLog(),
		pending: map[int]chan answer{}, procs: map[int]*Proc{},
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if s.group, err = newCgroup(cfg.Limits); err != nil {
		return nil, err
	}
	if err := s.startKeeper(cfg.SharedNetwork); err != nil {
		return nil, err
	}
	entry, err := s.group.entry()
	if err != nil {
		return nil, err
	}
	var files []*os.File
	if entry != nil {
		defer entry.Close()
		files = append(files, entry)
	}
	a, err := s.call(ctx, request{Setup: &cfg}, files...)
	if err != nil {
		return nil, fmt.Errorf("set up sandbox: %w", err)
	}
	if len(a.files) == 0 {
		return nil, errors.New("set up sandbox: the keeper passed no root folder")
	}
	if err := s.takeClock(a); err != nil {
		closeAll(a.files)
		return nil, err
	}
	s.mu.Lock()
	s.root = a.files[0]
	s.mu.Unlock()
	return s, nil
}

func (s *Sandbox) startKeeper(sharedNetwork bool) error {
	ours, theirs, err := sys.Socketpair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	if s.ch, err = newChannel(ours); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{keeperName}
	cmd.Env = []string{"GOMAXPROCS=4", "GOTRACEBACK=single", "PATH=/usr/bin:/bin"}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if sharedNetwork {
		cmd.SysProcAttr.Cloneflags &^= syscall.CLONE_NEWNET
	}
	cmd.WaitDelay = time.Second
	if s.keeper, err = sys.StartBound(cmd); err != nil {
		if errors.Is(err, syscall.EPERM) {
			return fault.New(fault.Unsupported, "this host lets no new namespaces be made: %v", err).
				WithHint("give the container CAP_SYS_ADMIN (docker run --privileged), then see `pommel doctor`")
		}
		return fmt.Errorf("start keeper: %w", err)
	}
	go s.read()
	go s.watch()
	// The keeper waits for its first request, so nothing runs outside the group.
	return s.group.add(s.keeper.Pid())
}

// read hands out answers and events until the socket closes.
func (s *Sandbox) read() {
	for {
		var m message
		files, err := s.ch.receive(&m)
		if err != nil {
			s.keeper.Signal(syscall.SIGKILL) // no keeper without a socket
			return
		}
		s.mu.Lock()
		if m.Exit != nil {
			if p := s.procs[m.Exit.Key]; p != nil {
				p.finish(*m.Exit)
			}
		} else if wait := s.pending[m.ID]; wait != nil {
			delete(s.pending, m.ID)
			wait <- answer{m, files}
			files = nil
		}
		s.mu.Unlock()
		closeAll(files)
	}
}

// watch notices the end of the keeper at once.
func (s *Sandbox) watch() {
	<-s.keeper.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		cause := s.keeper.Err()
		if cause == nil {
			cause = errors.New("by itself")
		}
		s.err = fmt.Errorf("the keeper ended: %w%s", cause, s.log.suffix())
	}
	close(s.done)
}

func (s *Sandbox) call(ctx context.Context, req request, files ...*os.File) (answer, error) {
	wait := make(chan answer, 1)
	s.mu.Lock()
	s.next++
	req.ID = s.next
	s.pending[req.ID] = wait
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.pending, req.ID)
		s.mu.Unlock()
	}()
	if err := s.ch.send(req, files...); err != nil {
		return answer{}, errors.Join(err, s.Err())
	}
	select {
	case a := <-wait:
		if a.Err != "" {
			closeAll(a.files)
			return answer{}, errors.New(a.Err)
		}
		return a, nil
	case <-s.done:
		return answer{}, s.Err()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// Run starts a process. extra become its descriptors 3, 4 ...; the caller may close its own
// copies when Run returns.
func (s *Sandbox) Run(ctx context.Context, p Process, extra ...*os.File) (*Proc, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer w.Close()
	proc := &Proc{Name: p.Name, box: s, log: newLog(), ended: make(chan struct{}), logged: make(chan struct{}), done: make(chan struct{})}
	s.mu.Lock()
	s.next++
	proc.key = s.next
	s.procs[proc.key] = proc
	s.mu.Unlock()
	go proc.readLog(r)
	a, err := s.call(ctx, request{Start: &startRequest{Process: p, Key: proc.key}}, append([]*os.File{w}, extra...)...)
	if err != nil {
		s.mu.Lock()
		delete(s.procs, proc.key)
		s.mu.Unlock()
		return nil, err
	}
	proc.pid = a.Pid
	return proc, nil
}

// Probe waits until the probe holds.
func (s *Sandbox) Probe(ctx context.Context, p Probe) error {
	_, err := s.call(ctx, request{Probe: &p})
	return err
}

// WaitReady probes until the process is ready, or has ended.
func (s *Sandbox) WaitReady(ctx context.Context, proc *Proc, p Probe) error {
	ctx, cancel := proc.While(ctx, "it was ready")
	defer cancel()
	err := s.Probe(ctx, p)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// Copy copies a private bind to a folder inside, which must not exist, for a user.
func (s *Sandbox) Copy(ctx context.Context, from, to string, uid int) error {
	_, err := s.call(ctx, request{Copy: &copyRequest{From: from, To: to, UID: uid, GID: uid}})
	return err
}

// Check asks the keeper for a sign of life. When it returns, the end of every process that
// ended before the call has been reported.
func (s *Sandbox) Check(ctx context.Context) error {
	_, err := s.call(ctx, request{Check: true})
	return err
}

// Path is where a path of the inside is reachable by this process, until Close.
func (s *Sandbox) Path(inside string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil {
		return "/proc/self/closed-sandbox" // nothing is there
	}
	return fmt.Sprintf("/proc/self/fd/%d%s", s.root.Fd(), inside)
}

// Listen listens on a TCP address of the inside.
func (s *Sandbox) Listen(ctx context.Context, address string) (net.Listener, error) {
	return sys.ListenIn(ctx, s.keeper.Pid(), address)
}

// Done is closed when everything inside has ended.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Err is why the sandbox ended, nil while it runs.
func (s *Sandbox) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends every process inside and frees all memory. It may be called again.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.err == nil {
		s.err = errors.New("the sandbox was closed")
	}
	root := s.root
	s.root = nil
	s.mu.Unlock()
	if s.keeper != nil {
		s.keeper.Kill() // returns when the kernel has ended and reaped the whole namespace
		<-s.done
	}
	if s.ch != nil {
		_ = s.ch.conn.Close()
	}
	if root != nil {
		_ = root.Close()
	}
	s.closeClock()
	return s.group.remove()
}

// SetBackground lowers the share of the processor that the sandbox gets when others want
// it too, or gives it back. Without the controller nothing changes.
func (s *Sandbox) SetBackground(on bool) { s.group.setBackground(on) }

// Report says how far the host let the sandbox be limited.
func (s *Sandbox) Report() LimitsReport { return s.group.report() }

// KeeperPid is the host's pid of PID 1 inside.
func (s *Sandbox) KeeperPid() int { return s.keeper.Pid() }
