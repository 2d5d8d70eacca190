package rewind

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/uapi"
)

// process is a live member of the tree: the handles by which it is reached. What it
// looked like at some moment is a [processState].
type process struct {
	pid                       int
	pidfd, pagemap, mem, maps int
	taskDir, fdDir, timers    int
	uffd, channel             int
	channelEnd                int // a duplicate of the end inside the process
	remoteChannel             int // the channel's number inside the process
	code, data                uint64
	shared                    []byte // the parasite's pages, as seen here
	parasite                  int    // the file in memory that holds them
	slot                      int
	arena                     *arena
	seals                     *seals // nil before its libraries were sealed
	tasks                     []task // threads, while stopped
	writes                    plan
	text                      []byte // buffer for /proc/PID/maps
	now                       glance
	ran                       bool
	sinceArm, copying         int
	fresh                     int   // pages that the first rewind after tracking was started afresh wrote
	job, lookJob              error // outcome of looking at its memory, and at the rest
	inCalls                   []call
	diff                      []span
	undo                      *areaUndo // of areas, while calls for it are under way
}

// task is a thread while the tree is stopped.
type task struct {
	tid     int
	saved   *thread
	stopped bool
	masked  bool // all signals but the trap are blocked
	group   bool // found stopped by job control
}

func openProcess(pid int) (*process, error) {
	p := &process{pid: pid, pidfd: -1, pagemap: -1, mem: -1, maps: -1, taskDir: -1, fdDir: -1, timers: -1, uffd: -1, channel: -1, channelEnd: -1, remoteChannel: -1}
	return p, p.reopen()
}

// reopen opens the handles of the process that has the number now.
func (p *process) reopen() error {
	pid := p.pid
	var err error
	if p.pidfd, err = uapi.PidfdOpen(pid); err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	if p.arena != nil {
		p.arena.at = 0
	}
	p.seals = nil
	base := "/proc/" + strconv.Itoa(pid)
	for _, f := range []struct {
		to    *int
		name  string
		flags int
	}{
		{&p.pagemap, "/pagemap", uapi.ORdonly}, {&p.mem, "/mem", uapi.ORdwr}, {&p.maps, "/maps", uapi.ORdonly},
		{&p.taskDir, "/task", uapi.ORdonly | uapi.ODirectory}, {&p.fdDir, "/fd", uapi.ORdonly | uapi.ODirectory},
		{&p.timers, "/timers", uapi.ORdonly},
	} {
		if *f.to, err = uapi.Open(base+f.name, f.flags); err != nil {
			p.closeHandles()
			return fmt.Errorf("open %s%s: %w", base, f.name, err)
		}
	}
	return nil
}

func (p *process) closeHandles() {
	for _, fd := range []*int{&p.pidfd, &p.pagemap, &p.mem, &p.maps, &p.taskDir, &p.fdDir, &p.timers, &p.uffd, &p.channel, &p.channelEnd} {
		uapi.Close(*fd)
		*fd = -1
	}
}

func (p *process) close() {
	p.closeHandles()
	p.dropParasite()
	p.arena.close()
}

// dropParasite lets go of the memory that is shared with the process. It outlives the
// process: one that is made again gets the same.
func (p *process) dropParasite() {
	if p.shared != nil {
		_ = uapi.Unmap(p.shared)
		uapi.Close(p.parasite)
		p.shared = nil
	}
}

func (p *process) read(addr uint64, b []byte) error {
	n, err := uapi.Pread(p.mem, b, addr)
	if err == nil && n != len(b) {
		err = uapi.EFAULT
	}
	if err != nil {
		return fail(ReasonMemory, "read %d bytes at %#x of process %d: %v", len(b), addr, p.pid, err)
	}
	return nil
}

func (p *process) write(addr uint64, b []byte) error {
	n, err := uapi.Pwrite(p.mem, b, addr)
	if err == nil && n != len(b) {
		err = uapi.EFAULT
	}
	if err != nil {
		return fail(ReasonMemory, "write %d bytes at %#x of process %d: %v", len(b), addr, p.pid, err)
	}
	return nil
}

// readMaps reads /proc/PID/maps into the process's buffer.
func (p *process) readMaps() ([]byte, error) {
	if p.text == nil {
		p.text = make([]byte, 256<<10)
	}
	n := 0
	for {
		if n+8192 > len(p.text) {
			p.text = append(p.text, make([]byte, len(p.text))...)
		}
		k, err := uapi.Pread(p.maps, p.text[n:], uint64(n))
		if err != nil {
			return nil, fail(ReasonRootGone, "read maps of process %d: %v", p.pid, err)
		}
		if k == 0 {
			return p.text[:n], nil
		}
		n += k
	}
}

// numbers lists the entries of an open /proc folder that are numbers.
func numbers(dir int, out []int) ([]int, error) {
	var b [8192]byte
	for first := true; ; first = false {
		n, err := uapi.Dirents(dir, b[:], first)
		if err != nil {
			return out, err
		}
		if n == 0 {
			return out, nil
		}
		for o := 0; o+19 < n; {
			length := int(b[o+16]) | int(b[o+17])<<8
			name := b[o+19 : o+length]
			if name[0] >= '0' && name[0] <= '9' {
				v, _ := decField(name, 0)
				out = append(out, int(v))
			}
			o += length
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// readSmall reads a /proc file that fits into b.
func readSmall(path string, b []byte) []byte {
	fd, err := uapi.Open(path, uapi.ORdonly)
	if err != nil {
		return nil
	}
	defer uapi.Close(fd)
	n := 0
	for n < len(b) {
		k, err := uapi.Read(fd, b[n:])
		if err != nil || k == 0 {
			break
		}
		n += k
	}
	return b[:n]
}

// statusField gives one line of /proc/PID/status, or "".
func statusField(status []byte, key string) string {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(key+":")); ok {
			return strings.TrimSpace(string(rest))
		}
	}
	return ""
}

// children lists the processes that any thread of pid has made and not yet reaped.
func children(pid int, out []int) []int {
	base := "/proc/" + strconv.Itoa(pid) + "/task"
	dir, err := uapi.Open(base, uapi.ORdonly|uapi.ODirectory)
	if err != nil {
		return out
	}
	tids, _ := numbers(dir, nil)
	uapi.Close(dir)
	var b [16384]byte
	for _, tid := range tids {
		for f := range bytes.FieldsSeq(readSmall(base+"/"+strconv.Itoa(tid)+"/children", b[:])) {
			v, _ := decField(f, 0)
			out = append(out, int(v))
		}
	}
	return out
}

// taskState is the letter by which the kernel shows a thread's state; 0 if it is gone.
func taskState(pid, tid int) byte {
	var b [512]byte
	s := readSmall(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid), b[:])
	i := bytes.LastIndexByte(s, ')')
	if i < 0 || i+2 >= len(s) {
		return 0
	}
	return s[i+2]
}

// statFields are the numbers of /proc/PID/stat after the state, each at the place at which proc(5) counts it.
func statFields(pid int) []uint64 {
	var b [2048]byte
	s := readSmall(fmt.Sprintf("/proc/%d/stat", pid), b[:])
	i := bytes.LastIndexByte(s, ')')
	if i < 0 {
		return nil
	}
	f := make([]uint64, 4, 56)
	for k, w := range bytes.Fields(s[i+1:]) {
		if k == 0 {
			continue // the state letter
		}
		neg := len(w) > 0 && w[0] == '-'
		if neg {
			w = w[1:]
		}
		v, _ := decField(w, 0)
		if neg {
			v = -v
		}
		f = append(f, v)
	}
	return f
}
