package worldclock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pommelgym/pommel/internal/uapi"
)

// errGone says that a process ended meanwhile, which is its own affair.
var errGone = errors.New("the process has ended")

// goneError is errGone with the status that was taken from the kernel by learning of it.
type goneError struct{ pid, status int }

func (*goneError) Error() string        { return errGone.Error() }
func (*goneError) Is(target error) bool { return target == errGone }

const (
	protRead  = 1
	protWrite = 2
	protExec  = 4

	mapShared  = 1
	mapPrivate = 2
	mapAnon    = 32

	openReadOnly = 0
	openCloexec  = 0o2000000
	atFdcwd      = 1<<64 - 100
)

// equip stops a program between its beginning and its first instruction and gives it the
// copy. r is the execve that asks for it. The calling goroutine must own its thread: only
// that may speak to what it traces.
func (s *Supervisor) equip(r *request) error {
	tid, goOn := int(r.Pid), r.goOn
	group, err := groupOf(tid)
	if err != nil {
		return errGone
	}
	if e := uapi.Ptrace(uapi.PtraceSeize, tid, uapi.PtraceOTraceExec); e != 0 {
		err := goOn()
		if e == uapi.ESRCH || err != nil {
			return errGone
		}
		return fmt.Errorf("attach to thread %d: %w", tid, e)
	}
	// Neither may fail: a call that does not wait any more still has to be let go of, and a
	// thread that was quick goes under another number already.
	_ = goOn()
	_ = uapi.Ptrace(uapi.PtraceInterrupt, tid, 0)
	now, began, err := s.toFirstInstruction(tid, group)
	if err != nil {
		return err
	}
	if began {
		if err = s.dress(now, r.service); err != nil && !errors.Is(err, errGone) {
			// A program with another clock than the rest of its world must not run.
			_ = uapi.Kill(now, sigKill)
		}
	}
	if e := uapi.Ptrace(uapi.PtraceDetach, now, 0); e != 0 && err == nil {
		return errGone
	}
	return err
}

// toFirstInstruction waits until the program has been replaced and the kernel is about to
// run the new one, or until execve has failed. A thread that replaces the program goes on
// under the number of its process.
func (s *Supervisor) toFirstInstruction(tid, group int) (now int, began bool, err error) {
	for {
		who, st, err := await(unique(tid, group)...)
		if err != nil {
			return 0, false, err
		}
		if !st.Stopped() {
			return 0, false, &goneError{pid: who, status: int(st)}
		}
		switch event := int(st) >> 16; event {
		case uapi.PtraceEventExec:
			// Here the result of execve is still to be written over a register; the next stop
			// is behind that.
			began = true
			_ = uapi.Ptrace(uapi.PtraceInterrupt, who, 0)
			_ = uapi.Ptrace(uapi.PtraceCont, who, 0)
		case uapi.PtraceEventStop:
			return who, began, nil
		default:
			pass := uint64(0)
			if event == 0 {
				pass = uint64(st.StopSignal())
			}
			_ = uapi.Ptrace(uapi.PtraceCont, who, pass)
		}
	}
}

func unique(a, b int) []int {
	if a == b {
		return []int{a}
	}
	return []int{a, b}
}

// dress puts the copy into a stopped program that has yet to run its first instruction.
func (s *Supervisor) dress(pid int, service string) error {
	t := tracee{tid: pid}
	if err := t.begin(); err != nil {
		return err
	}
	tab, err := readTable(pid, t.saved.Rsp)
	if err != nil {
		return err
	}
	if tab.random != 0 {
		var seed [16]byte
		if s.source != nil && s.source.begin(service, seed[:]) {
			if n, _ := uapi.Poke(pid, tab.random, seed[:]); n != len(seed) {
				return errors.New("set the program's first random bytes")
			}
		}
	}
	if tab.vdso != 0 { // without one it makes system calls, which are seen
		if err := s.mapCopy(&t, tab); err != nil {
			return err
		}
	}
	return t.end()
}

// mapCopy maps page and copy and has the table point to the copy.
func (s *Supervisor) mapCopy(t *tracee, tab table) error {
	image, err := readImage(t.tid, tab.vdso)
	if err != nil {
		return err
	}
	at, ok := syscallIn(image)
	if !ok {
		return errors.New("the kernel's vDSO makes no system call")
	}
	t.insn = tab.vdso + at
	page, err := s.mapPage(t)
	if err != nil {
		return err
	}
	size := uint64(len(image))
	place, err := t.call(uapi.SysMmap, 0, size, protRead|protWrite, mapPrivate|mapAnon, noCall, 0)
	if err != nil {
		return fmt.Errorf("map the copy: %w", err)
	}
	out, err := copyImage(image, tab.vdso, page)
	if err != nil {
		return err
	}
	if n, _ := uapi.Poke(t.tid, place, out); n != len(out) {
		return errors.New("write the copy")
	}
	if _, err := t.call(uapi.SysMprotect, place, size, protRead|protExec); err != nil {
		return fmt.Errorf("make the copy executable: %w", err)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], place)
	if n, _ := uapi.Poke(t.tid, tab.vdsoAt, b[:]); n != len(b) {
		return errors.New("name the copy")
	}
	return nil
}

// mapPage maps the clock page. Its path lies for a moment below what the stack holds.
func (s *Supervisor) mapPage(t *tracee) (uint64, error) {
	path := append([]byte(s.path), 0)
	const redZone = 128
	at := (t.saved.Rsp - redZone - uint64(len(path))) &^ 15
	kept := make([]byte, len(path))
	if n, _ := uapi.Peek(t.tid, at, kept); n != len(kept) {
		return 0, errors.New("use the stack")
	}
	if n, _ := uapi.Poke(t.tid, at, path); n != len(path) {
		return 0, errors.New("use the stack")
	}
	fd, err := t.call(uapi.SysOpenat, atFdcwd, at, openReadOnly|openCloexec, 0)
	_, _ = uapi.Poke(t.tid, at, kept)
	if err != nil {
		return 0, fmt.Errorf("open the clock page: %w", err)
	}
	page, err := t.call(uapi.SysMmap, 0, PageSize, protRead, mapShared, fd, 0)
	if err != nil {
		return 0, fmt.Errorf("map the clock page: %w", err)
	}
	if _, err := t.call(uapi.SysClose, fd); err != nil {
		return 0, fmt.Errorf("close the clock page: %w", err)
	}
	return page, nil
}

// maxImage is more than any kernel's vDSO takes.
const maxImage = 16 * PageSize

// readImage reads a vDSO. The table of its sections is the last thing in it.
func readImage(pid int, base uint64) ([]byte, error) {
	var head [64]byte
	if n, e := uapi.Peek(pid, base, head[:]); n != len(head) {
		return nil, fmt.Errorf("read vDSO: %w", e)
	}
	if !bytes.HasPrefix(head[:], []byte("\x7fELF")) {
		return nil, errors.New("read vDSO: it is no ELF file")
	}
	le := binary.LittleEndian
	size := le.Uint64(head[40:]) + uint64(le.Uint16(head[58:]))*uint64(le.Uint16(head[60:]))
	size = (size + PageSize - 1) &^ (PageSize - 1)
	if size > maxImage {
		return nil, fmt.Errorf("read vDSO: %d bytes are more than is known", size)
	}
	out := make([]byte, size)
	if n, e := uapi.Peek(pid, base, out); n != len(out) {
		return nil, fmt.Errorf("read vDSO: %w", e)
	}
	return out, nil
}

const supported = true
