package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/sys"
)

// Member is a process of a sandbox, as the host sees it. The keeper is the first.
type Member struct {
	Pid     int    `json:"pid"`
	Name    string `json:"name"`
	Threads int    `json:"threads"`
	// PSSBytes is the memory of the process; what it shares counts in part.
	PSSBytes int64 `json:"pss_bytes"`
	// CPU is what the process has used, without its children.
	CPU time.Duration `json:"cpu"`
}

// Members are the processes that run now. Those that end meanwhile are left out.
func (s *Sandbox) Members() []Member {
	var out []Member
	todo := []int{s.keeper.Pid()}
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		if m, ok := member(pid); ok {
			out = append(out, m)
			todo = append(todo, childrenOf(pid)...)
		}
	}
	return out
}

func childrenOf(pid int) []int {
	var out []int
	// Each thread lists the children that it made.
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, w := range strings.Fields(string(data)) {
			if p, err := strconv.Atoi(w); err == nil {
				out = append(out, p)
			}
		}
	}
	return out
}

func member(pid int) (Member, bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || open < 0 || end < open {
		return Member{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 18 || fields[0] == "Z" {
		return Member{}, false
	}
	num := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
	m := Member{Pid: pid, Name: string(stat[open+1 : end]), Threads: int(num(17))}
	m.CPU, _ = sys.ProcessCPU(pid)
	f, err := os.Open(dir + "smaps_rollup")
	if err != nil {
		return m, true
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), "Pss:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			m.PSSBytes = kb << 10
		}
	}
	return m, true
}

// FilesBytes is the memory that the sandbox's files take.
func (s *Sandbox) FilesBytes() int64 {
	s.mu.Lock()
	root := s.root
	s.mu.Unlock()
	if root == nil {
		return 0
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(fmt.Sprintf("/proc/self/fd/%d/tmp", root.Fd()), &st); err != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}
