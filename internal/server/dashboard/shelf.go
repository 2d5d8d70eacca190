package dashboard

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/trace"
)

// shelf is the folder of recorded episodes. It remembers the first and the last line of
// each, so that a long list costs a glance at the folder.
type shelf struct {
	dir string

	mu    sync.Mutex
	known map[string]card // guarded by mu
}

// card is a record's entry; it holds as long as size and time are the same.
type card struct {
	size int64
	time time.Time
	head head
}

func newShelf(dir string) *shelf { return &shelf{dir: dir, known: map[string]card{}} }

// heads are the recorded episodes, newest first.
func (s *shelf) heads() ([]head, error) {
	if s.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was recorded yet
	}
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "read the folder of recorded episodes")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]head, 0, len(entries))
	there := make(map[string]card, len(entries))
	for _, e := range slices.Backward(entries) {
		if c, ok := s.card(e.Name()); ok && e.IsDir() {
			there[e.Name()] = c
			out = append(out, c.head)
		}
	}
	s.known = there // what was removed is forgotten
	slices.SortStableFunc(out, func(a, b head) int { return strings.Compare(b.ID, a.ID) })
	return out, nil
}

// card reads an entry unless it is known. Preconditions: s.mu is held.
func (s *shelf) card(name string) (card, bool) {
	path := filepath.Join(s.dir, name, trace.FileName)
	st, err := os.Stat(path)
	if err != nil {
		return card{}, false
	}
	if c, ok := s.known[name]; ok && c.size == st.Size() && c.time.Equal(st.ModTime()) {
		return c, true
	}
	h, err := glance(path)
	if err != nil {
		return card{}, false // empty while it is being recorded, or none of ours
	}
	h.ID = name // it is asked for by the name of its folder
	return card{size: st.Size(), time: st.ModTime(), head: h}, true
}

// tailSize is more than an end line needs.
const tailSize = 16 << 10

// glance reads a record's first and last line.
func glance(path string) (head, error) {
	f, err := os.Open(path)
	if err != nil {
		return head{}, err
	}
	defer f.Close()
	first, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return head{}, err
	}
	var h trace.Header
	if err := json.Unmarshal(first, &h); err != nil || h.Kind != "header" {
		return head{}, fmt.Errorf("%s begins with no header: %w", path, err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return head{}, err
	}
	tail := make([]byte, min(size, tailSize))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return head{}, err
	}
	tail = bytes.TrimRight(tail, "\n")
	var end trace.End
	if json.Unmarshal(tail[bytes.LastIndexByte(tail, '\n')+1:], &end) != nil || end.Kind != "end" {
		return headOf(&h, nil), nil
	}
	return headOf(&h, &end), nil
}

// read reads a whole record.
func (s *shelf) read(id string) (*trace.Trace, error) {
	path, err := s.path(id)
	if err != nil {
		return nil, err
	}
	t, err := trace.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "no episode %q was recorded here", id)
	}
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the record of %q cannot be read", id)
	}
	t.Header.EpisodeID = id
	return t, nil
}

// path is a record's folder. Ids come from strangers.
func (s *shelf) path(id string) (string, error) {
	if s.dir == "" || id == "" || id == "." || id == ".." || strings.ContainsAny(id, "/\\\x00") {
		return "", fault.New(fault.NotFound, "no episode %q was recorded here", id)
	}
	return filepath.Join(s.dir, id), nil
}

// attachment opens a picture of a record. The root keeps names and links inside.
func (s *shelf) attachment(id, file string) ([]byte, error) {
	dir, err := s.path(id)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.New(fault.NotFound, "no episode %q was recorded here", id)
	}
	defer root.Close()
	data, err := root.ReadFile(file)
	if err != nil {
		return nil, fault.New(fault.NotFound, "episode %q has no picture %q", id, file)
	}
	return data, nil
}
