package worldclock

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Source is where a world's programs get their random bytes: each process has a stream of
// its own, which is a function of the seed, of its service, and of its place among the
// processes of the service, the oldest first. What one process draws does not move what
// another gets.
//
// Workers that a service has ready when an episode begins draw from one stream together.
// Which of a pool's connections or of a server's workers serves a request depends on how
// requests overlapped in real time, and is nothing that the numbers should tell.
type Source struct {
	mu      sync.Mutex
	label   string            // guarded by mu
	seed    uint64            // guarded by mu
	real    map[string]bool   // guarded by mu: services that get the kernel's
	roots   map[string]int    // guarded by mu: first process of each service
	streams map[int]*stream   // guarded by mu, by process, and by the negative number of the first for a service's workers
	groups  map[int]int       // guarded by mu: process of a thread
	starts  map[string]uint64 // guarded by mu: programs begun by each service

	youngest int             // guarded by mu: the last process that was there when the episode began; 0 before the first
	apart    map[string]bool // guarded by mu: services whose processes have parts of their own
}

// stream is what one process draws from.
type stream struct {
	mu  sync.Mutex
	gen *rand.ChaCha8
}

func (s *stream) fill(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.gen.Read(b) // never fails
}

// NewSource makes a source for what happens before an episode; the label tells worlds apart.
func NewSource(label string) *Source {
	s := &Source{real: map[string]bool{}, apart: map[string]bool{}, roots: map[string]int{}}
	s.reseed("start of "+label, 0)
	return s
}

// Reseed begins all streams anew, for an episode.
func (s *Source) Reseed(label string, seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reseed(label, seed)
	s.youngest = lastProcess()
}

// reseed is called with mu held, or before anybody else has the Source.
func (s *Source) reseed(label string, seed uint64) {
	s.label, s.seed, s.starts = label, seed, map[string]uint64{}
	s.streams, s.groups = map[int]*stream{}, map[int]int{}
}

// lastProcess is the number of the last process of this namespace; 0 when it is not told.
func lastProcess() int {
	data, err := os.ReadFile("/proc/sys/kernel/ns_last_pid")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return n
}

// SourceState is what a Source was at one moment.
type SourceState struct {
	label   string
	seed    uint64
	starts  map[string]uint64
	streams map[int][]byte

	youngest int
}

// Save notes how far each process has drawn.
func (s *Source) Save() *SourceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &SourceState{label: s.label, seed: s.seed, starts: maps.Clone(s.starts), youngest: s.youngest, streams: map[int][]byte{}}
	for pid, stream := range s.streams {
		stream.mu.Lock()
		st.streams[pid], _ = stream.gen.MarshalBinary() // never fails
		stream.mu.Unlock()
	}
	return st
}

// Restore goes back to what Save noted: the same processes draw the same again.
func (s *Source) Restore(st *SourceState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.label, s.seed, s.youngest, s.starts = st.label, st.seed, st.youngest, maps.Clone(st.starts)
	s.streams, s.groups = map[int]*stream{}, map[int]int{}
	for pid, state := range st.streams {
		gen := rand.NewChaCha8([32]byte{})
		_ = gen.UnmarshalBinary(state) // never fails on what MarshalBinary gave
		s.streams[pid] = &stream{gen: gen}
	}
}

// SetReal says whether a service gets the kernel's random bytes. One that ever did is a
// program of many parts, such as a browser, not a row of workers.
func (s *Source) SetReal(service string, real bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.real[service] = real
	if real {
		s.apart[service] = true
	}
}

// Real is what SetReal has set.
func (s *Source) Real(service string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.real[service]
}

// SetRoot names the first process of a service.
func (s *Source) SetRoot(service string, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots[service] = pid
}

// Again says that a service starts once more, as if it had not before.
func (s *Source) Again(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.starts, service)
}

// stream gives the stream of the process that a thread belongs to.
func (s *Source) stream(service string, tid int) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	group := s.groups[tid]
	if group == 0 {
		var err error
		if group, err = groupOf(tid); err != nil {
			group = tid
		}
		s.groups[tid] = group
	}
	key := group
	if s.isWorker(service, group) {
		key = -s.roots[service]
	}
	if st := s.streams[key]; st != nil {
		return st
	}
	what, n := "workers", uint64(0)
	if key > 0 {
		what, n = "process", s.place(service, group)
	}
	st := &stream{gen: rand.NewChaCha8(s.key(service, what, n))}
	s.streams[key] = st
	return st
}

// isWorker says whether a process is one of those that were ready, beside the service's
// first. It is called with mu held.
func (s *Source) isWorker(service string, pid int) bool {
	root := s.roots[service]
	return root != 0 && pid != root && pid <= s.youngest && !s.apart[service]
}

// begin fills in what the next program of a service begins with.
func (s *Source) begin(service string, b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.real[service] {
		return false
	}
	s.starts[service]++
	gen := rand.NewChaCha8(s.key(service, "program", s.starts[service]))
	_, _ = gen.Read(b) // never fails
	return true
}

// key is called with mu held.
func (s *Source) key(service, what string, n uint64) [32]byte {
	h := sha256.New()
	for _, text := range []string{s.label, service, what} {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
		h.Write([]byte(text))
	}
	h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, s.seed), n))
	return [32]byte(h.Sum(nil))
}

// place counts the processes of the service that are older: numbers of processes differ
// from world to world, their order does not. It is called with mu held.
func (s *Source) place(service string, pid int) uint64 {
	root := s.roots[service]
	if root == 0 || root == pid {
		return 0
	}
	n := uint64(1)
	for todo := []int{root}; len(todo) > 0; {
		next := childrenOf(todo[0])
		todo = append(todo[1:], next...)
		for _, c := range next {
			if c < pid {
				n++
			}
		}
	}
	return n
}

// childrenOf lists the children of a process, which each of its threads lists for itself.
func childrenOf(pid int) []int {
	var out []int
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children") // the pattern is well formed
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, w := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(w); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
