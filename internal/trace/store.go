package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
)

// Options configure a Store.
type Options struct {
	// Keep is how many episodes stay on disk; older ones are removed. 0 keeps all.
	Keep int
}

// Store writes episodes below one folder.
type Store struct {
	dir  string
	keep int
	ops  chan func()
	done chan struct{}

	mu     sync.Mutex
	closed bool  // guarded by mu
	err    error // guarded by mu: the first failure
}

// queueLength bounds how many records may wait for the disk before a step waits too.
const queueLength = 512

// Open makes the folder and starts the writer.
func Open(dir string, o Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make trace folder: %w", err)
	}
	s := &Store{dir: dir, keep: o.Keep, ops: make(chan func(), queueLength), done: make(chan struct{})}
	go s.run()
	return s, nil
}

func (s *Store) run() {
	defer close(s.done)
	for op := range s.ops {
		op()
	}
}

// Dir is the folder of the store.
func (s *Store) Dir() string { return s.dir }

// Err is the first failure of the writer, if any.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// send queues op; after Close it is dropped.
func (s *Store) send(op func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.ops <- op
	}
}

// Close writes what is queued and reports the first failure.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.ops)
	}
	s.mu.Unlock()
	<-s.done
	return s.Err()
}

// Recorder records one episode. A nil Recorder records nothing.
type Recorder struct {
	s    *Store
	dir  string
	file *os.File      // used by the store's goroutine only, like w and bad
	w    *bufio.Writer // nil until begun
	bad  bool
}

// Begin starts the record of an episode.
func (s *Store) Begin(h Header) *Recorder {
	if s == nil {
		return nil
	}
	h.Kind, h.Format, h.Minor = "header", FormatVersion, MinorVersion
	r := &Recorder{s: s, dir: filepath.Join(s.dir, h.EpisodeID)}
	s.send(func() {
		s.prune()
		r.check(r.begin(h))
	})
	return r
}

// Step records one step.
func (r *Recorder) Step(st Step) {
	if r == nil {
		return
	}
	st.Kind = "step"
	r.s.send(func() { r.check(r.step(st)) })
}

// End records how the episode ended and closes its file.
func (r *Recorder) End(e End) {
	if r == nil {
		return
	}
	e.Kind = "end"
	r.s.send(func() {
		r.check(r.line(e))
		r.check(r.finish())
	})
}

func (r *Recorder) check(err error) {
	if err != nil {
		r.bad = true
		r.s.fail(fmt.Errorf("record %s: %w", filepath.Base(r.dir), err))
	}
}

func (r *Recorder) begin(h Header) error {
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.dir, FileName))
	if err != nil {
		return err
	}
	r.file, r.w = f, bufio.NewWriterSize(f, 64<<10)
	return r.line(h)
}

func (r *Recorder) step(st Step) error {
	if st.Observation != nil && st.Observation.Screenshot != nil {
		if err := r.attach(&st); err != nil {
			return err
		}
	}
	return r.line(st)
}

// attach writes the picture beside the lines: as JSON it would be a third larger and unreadable.
func (r *Recorder) attach(st *Step) error {
	shot := st.Observation.Screenshot
	st.Screenshot = fmt.Sprintf("%06d.%s", st.Step, shot.Format)
	without := *st.Observation
	without.Screenshot = &browser.Image{Format: shot.Format, Width: shot.Width, Height: shot.Height, Scale: shot.Scale}
	st.Observation = &without
	return os.WriteFile(filepath.Join(r.dir, st.Screenshot), shot.Data, 0o644)
}

func (r *Recorder) line(v any) error {
	if r.bad || r.w == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := r.w.Write(append(b, '\n')); err != nil {
		return err
	}
	return nil
}

func (r *Recorder) finish() error {
	if r.w == nil {
		return nil
	}
	err := r.w.Flush()
	err = errors.Join(err, r.file.Close())
	r.w = nil
	return err
}

// prune removes the oldest episodes. Ids begin with the time, so their order is their age.
func (s *Store) prune() {
	if s.keep <= 0 {
		return
	}
	names, err := episodeNames(s.dir)
	if err != nil {
		s.fail(err)
		return
	}
	for len(names) >= s.keep {
		if err := os.RemoveAll(filepath.Join(s.dir, names[0])); err != nil {
			s.fail(err)
			return
		}
		names = names[1:]
	}
}

func episodeNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was recorded yet
	}
	if err != nil {
		return nil, fmt.Errorf("list traces: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), FileName)); e.IsDir() && err == nil {
			names = append(names, e.Name())
		}
	}
	sort.Strings(names)
	return names, nil
}

// Now is the time stamp of records: UTC, so that traces from many machines sort together.
func Now() time.Time { return time.Now().UTC() }
