package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Confinement is what a child process is denied for good.
type Confinement struct {
	// Nice lowers the priority.
	Nice int
	// Landlock limits files and TCP ports; nil does not.
	Landlock *Landlock
	// Tasks is the file that takes the threads of the control group that the child is to be in.
	Tasks *os.File
	// SameAddresses has the kernel lay out the memory of the child and of its children in the
	// same way at each start.
	SameAddresses bool
	// Pid is the number that the child gets in its namespace if nobody has it; 0 is any.
	Pid int
	// Notify, if given, is handed the listener of the calls that a world's clock has to see,
	// before the process begins. Its first execve is among them: somebody must answer.
	Notify func(listener int)
}

// Landlock lists what remains allowed; all else is denied.
type Landlock struct {
	// Read may be read, listed and run; Write also written, made and removed below.
	Read, Write []string
	// ConnectTCP are the ports that may be connected to, BindTCP those that may be listened on.
	ConnectTCP, BindTCP []uint16
}

// ForkConfined starts a process under a confinement. No helper program is needed: Linux
// keeps no_new_privs, the capability bounding set, seccomp filters, Landlock domains and
// niceness per thread, and a child inherits those of the thread that forks. The thread is
// used once and then ended.
func ForkConfined(c Confinement, path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	if c.Notify != nil {
		defer withoutCollector()()
	}
	onThreadOfItsOwn(func() {
		var next *os.File
		if c.Pid > 0 {
			// Opened here: a confined thread may not.
			if next, err = os.OpenFile("/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0); err != nil {
				err = fmt.Errorf("choose the number of a process: %w", err)
				return
			}
			defer next.Close()
		}
		if err = confineThread(c); err != nil {
			return
		}
		if next != nil {
			// As late as possible: who starts a thread now takes the number away.
			if _, err = next.WriteString(strconv.Itoa(c.Pid - 1)); err != nil {
				err = fmt.Errorf("choose the number of a process: %w", err)
				return
			}
		}
		pid, err = syscall.ForkExec(path, argv, attr)
	})
	return pid, err
}

// onThreadOfItsOwn runs f on a thread that ends with it, and waits for f. The program's
// first thread would not end: the runtime parks it, with all that f did to it. So who finds
// itself on that one has another take its place.
func onThreadOfItsOwn(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Not unlocked: the runtime ends a thread whose goroutine returns while locked to it.
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			onThreadOfItsOwn(f)
			return
		}
		f()
	}()
	<-done
}

// collector is held while the garbage collector is off.
var collector sync.Mutex

// withoutCollector switches the garbage collector off until the function that it returns
// is called. From fork to exec the forking thread does not answer the collector, which
// stops all goroutines until it does; the one that has to let the exec pass would be among
// them. SetGCPercent waits for a collection that is under way.
func withoutCollector() (restore func()) {
	collector.Lock()
	old := debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(old)
		collector.Unlock()
	}
}

func confineThread(c Confinement) error {
	if c.Tasks != nil {
		// 0 is whoever writes: this thread, whose children are born where it is.
		if _, err := c.Tasks.Write([]byte("0")); err != nil {
			return fmt.Errorf("enter control group: %w", err)
		}
	}
	if c.Nice != 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, c.Nice); err != nil {
			return fmt.Errorf("set priority: %w", err)
		}
	}
	if c.SameAddresses {
		if err := fixAddresses(); err != nil {
			return err
		}
	}
	for capability := 0; capability <= lastCapability; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0)
		if err == unix.EINVAL {
			break // the kernel has fewer
		}
		if err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if c.Landlock != nil {
		if err := c.Landlock.restrictThread(); err != nil {
			return err
		}
	}
	listener, err := filterThread(c.Notify != nil)
	if err != nil {
		return err
	}
	if c.Notify != nil {
		c.Notify(listener)
	}
	return nil
}

// noRandomize is ADDR_NO_RANDOMIZE of <sys/personality.h>, and askPersonality the argument that
// changes nothing.
const (
	noRandomize    = 0x0040000
	askPersonality = 0xffffffff
)

// fixAddresses is for the calling thread and whoever it starts.
func fixAddresses() error {
	old, _, e := unix.RawSyscall(unix.SYS_PERSONALITY, askPersonality, 0, 0)
	if e == 0 {
		_, _, e = unix.RawSyscall(unix.SYS_PERSONALITY, old|noRandomize, 0, 0)
	}
	if e != 0 {
		return fmt.Errorf("fix the addresses of memory: %w", e)
	}
	return nil
}

// lastCapability is above the last that any kernel has.
const lastCapability = 63

const (
	landlockFSv1 = 1<<13 - 1 // execute ... make_sym
	landlockRead = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSReadDir
	// landlockFile are the rights that a rule on a single file may name.
	landlockFile = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSWriteFile |
		landlock.AccessFSTruncate | landlock.AccessFSIoctlDev
)

// LandlockABI is the kernel's Landlock version, 0 without.
func LandlockABI() int {
	v, err := landlock.LandlockGetABIVersion()
	if err != nil || v < 0 {
		return 0
	}
	return v
}

// restrictThread applies as much as the kernel knows: files from ABI 1, TCP from 4,
// signals and abstract sockets from 6.
func (l *Landlock) restrictThread() error {
	abi := LandlockABI()
	if abi == 0 {
		return nil
	}
	attr := landlock.RulesetAttr{HandledAccessFS: landlockFSv1}
	if abi >= 2 {
		attr.HandledAccessFS |= landlock.AccessFSRefer
	}
	if abi >= 3 {
		attr.HandledAccessFS |= landlock.AccessFSTruncate
	}
	if abi >= 4 {
		attr.HandledAccessNet = landlock.AccessNetBindTCP | landlock.AccessNetConnectTCP
	}
	if abi >= 5 {
		attr.HandledAccessFS |= landlock.AccessFSIoctlDev
	}
	if abi >= 6 {
		attr.Scoped = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	}
	fd, err := landlock.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	defer unix.Close(fd)
	if err := l.addRules(fd, attr); err != nil {
		return err
	}
	if err := landlock.LandlockRestrictSelf(fd, 0); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

func (l *Landlock) addRules(fd int, attr landlock.RulesetAttr) error {
	for _, p := range l.Read {
		if err := addPathRule(fd, p, landlockRead); err != nil {
			return err
		}
	}
	for _, p := range l.Write {
		if err := addPathRule(fd, p, attr.HandledAccessFS&^landlock.AccessFSMakeChar&^landlock.AccessFSMakeBlock); err != nil {
			return err
		}
	}
	if attr.HandledAccessNet == 0 {
		return nil
	}
	return errors.Join(
		addPortRules(fd, landlock.AccessNetConnectTCP, l.ConnectTCP), addPortRules(fd, landlock.AccessNetBindTCP, l.BindTCP))
}

func addPortRules(ruleset int, access uint64, ports []uint16) error {
	for _, port := range ports {
		rule := landlock.NetPortAttr{AllowedAccess: access, Port: uint64(port)}
		if err := landlock.LandlockAddNetPortRule(ruleset, &rule, 0); err != nil {
			return fmt.Errorf("landlock: allow port %d: %w", port, err)
		}
	}
	return nil
}

func addPathRule(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil // nothing there to allow
	}
	if err != nil {
		return fmt.Errorf("landlock: open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("landlock: stat %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landlockFile
	}
	if err := landlock.LandlockAddPathBeneathRule(ruleset, &landlock.PathBeneathAttr{AllowedAccess: access, ParentFd: fd}, 0); err != nil {
		return fmt.Errorf("landlock: allow %s: %w", path, err)
	}
	return nil
}
