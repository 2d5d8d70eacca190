package rewind

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/uapi"
)

// processState is what a snapshot keeps of one process.
type processState struct {
	pid, ppid, pgid, sid int
	areas                []area
	runs                 []run // saved private pages, by address
	scans                []scanRange
	seals                *seals   // of the process at that time
	readOnly             []rawRun // written pages of read-only file mappings, needed to make the process again
	threads              []*thread
	files                []descriptor
	actions              [65]uapi.Sigaction
	itimers              [3]uapi.Itimerval
	timers               []posixTimer
	pending              []uapi.SigInfo // of the process as a whole
	brk                  uint64
	deathSignal          int32
	umask                uint64
	cwd                  identity
	cwdFd                int
	exe                  identity
	mm                   uapi.MMMap
	auxv                 []byte
	letGo                bool // it has died and its sockets were given up: it cannot be made again
}

// identity tells files apart.
type identity struct{ dev, ino uint64 }

func identify(path string) identity {
	var st uapi.Stat_t
	if uapi.Stat(path, &st) != nil {
		return identity{}
	}
	return identity{st.Dev, st.Ino}
}

// captureProcess reads what is neither memory nor descriptors.
func (t *Tree) captureProcess(p *process, tk *task, st *processState) error {
	b := p.batch()
	const itAt, actAt, deathAt = 0, 128, 64*40 + 128
	brk := b.add(uapi.SysBrk, 0)
	for i := range uint64(3) {
		b.add(uapi.SysGetitimer, i, p.scratchAddr(itAt+int(i)*32))
	}
	for s := 1; s <= 64; s++ {
		b.add(uapi.SysRtSigaction, uint64(s), 0, p.scratchAddr(actAt+s*32), 8)
	}
	b.add(uapi.SysPrctl, uapi.PrGetPdeathsig, p.scratchAddr(deathAt))
	sid := b.add(uapi.SysGetsid, 0)
	pgid := b.add(uapi.SysGetpgid, 0)
	n := len(b.calls)
	if err := t.run(tk, b); err != nil {
		return err
	}
	res := b.calls[:n]
	st.brk, st.sid, st.pgid = uint64(res[brk].ret), int(res[sid].ret), int(res[pgid].ret)
	copy(st.itimers[:], uapi.View[uapi.Itimerval](p.scratch()[itAt:], 3))
	copy(st.actions[1:], uapi.View[uapi.Sigaction](p.scratch()[actAt+32:], 64))
	st.deathSignal = uapi.View[int32](p.scratch()[deathAt:], 1)[0]
	st.pending = pendingSignals(tk.tid, true)
	base := "/proc/" + strconv.Itoa(p.pid)
	st.cwd, st.exe = identify(base+"/cwd"), identify(base+"/exe")
	st.cwdFd = -1
	if fd, err := uapi.Open(base+"/cwd", uapi.OPath); err == nil {
		st.cwdFd = fd
	}
	var buf [4096]byte
	um, _ := strconv.ParseUint(statusField(readSmall(base+"/status", buf[:]), "Umask"), 8, 32)
	st.umask = um
	st.auxv = bytes.Clone(readSmall(base+"/auxv", buf[:]))
	st.captureMM()
	return t.captureTimers(p, tk, st)
}

// captureMM keeps the borders that the kernel knows of an address space.
func (st *processState) captureMM() {
	f := statFields(st.pid)
	if len(f) < 52 {
		return
	}
	st.mm = uapi.MMMap{
		StartCode: f[26], EndCode: f[27], StartStack: f[28], StartData: f[45], EndData: f[46], StartBrk: f[47],
		Brk: st.brk, ArgStart: f[48], ArgEnd: f[49], EnvStart: f[50], EnvEnd: f[51], ExeFd: -1,
	}
}

func (st *processState) close() {
	uapi.Close(st.cwdFd)
	for i := range st.files {
		st.files[i].close()
	}
	for i := range st.areas {
		uapi.Close(st.areas[i].keep)
	}
}

// checkProcess refuses processes that could not be rewound. It changes nothing.
func (t *Tree) checkProcess(pid int) error {
	var b [8192]byte
	status := readSmall(fmt.Sprintf("/proc/%d/status", pid), b[:])
	if ns := strings.Fields(statusField(status, "NSpid")); len(ns) != t.nsDepth && len(ns) > 0 {
		return fail(ReasonNamespace, "process %d has %d pid namespaces around it, the roots have %d", pid, len(ns), t.nsDepth)
	}
	if ignored, _ := strconv.ParseUint(statusField(status, "SigIgn"), 16, 64); ignored&(1<<(sigTrap-1)) != 0 {
		return fail(ReasonSignal, "process %d ignores SIGTRAP, which the tracer needs", pid)
	}
	return t.checkDescriptors(pid)
}

// checkFilters refuses stopped processes in which injected calls would meet filters.
func (t *Tree) checkFilters(procs []*process) error {
	if t.seizeOptions&uapi.PtraceOSuspendSeccomp != 0 {
		return nil
	}
	var b [8192]byte
	for _, p := range procs {
		if statusField(readSmall(fmt.Sprintf("/proc/%d/status", p.pid), b[:]), "Seccomp") == "2" {
			return fail(ReasonSeccomp, "process %d has system call filters, which may not be suspended with these rights", p.pid)
		}
	}
	return nil
}

// checkDescriptors looks for kinds of descriptors that rule out a snapshot.
func (t *Tree) checkDescriptors(pid int) error {
	base := fmt.Sprintf("/proc/%d/fd", pid)
	dir, err := uapi.Open(base, uapi.ORdonly|uapi.ODirectory)
	if err != nil {
		return nil
	}
	defer uapi.Close(dir)
	fds, _ := numbers(dir, nil)
	for _, fd := range fds {
		switch link := readLink(base + "/" + strconv.Itoa(fd)); link {
		case "anon_inode:[io_uring]":
			return fail(ReasonIOUring, "descriptor %d of process %d is an io_uring", fd, pid)
		case "anon_inode:[userfaultfd]", "anon_inode:kvm-vm", "anon_inode:[perf_event]", "anon_inode:[fanotify]":
			return fail(ReasonDescriptor, "descriptor %d of process %d is %s, which cannot be put back", fd, pid, link)
		}
	}
	return nil
}
