package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// List returns the episode folders below dir, oldest first.
func List(dir string) ([]string, error) { return episodeNames(dir) }

// Read reads the episode in a folder, or the given trace.jsonl itself.
func Read(path string) (*Trace, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, FileName)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	defer f.Close()
	t, err := parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parse(in io.Reader) (*Trace, error) {
	t := &Trace{}
	r := bufio.NewReaderSize(in, 256<<10)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			if perr := t.add(line); perr != nil {
				return nil, fmt.Errorf("line %d: %w", n, perr)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if t.Header.Kind == "" {
		return nil, errors.New("no header line: not a trace of Pommel, or an empty one")
	}
	return t, nil
}

func (t *Trace) add(line []byte) error {
	var k struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &k); err != nil {
		return fmt.Errorf("not a JSON object (was the recording cut off?): %w", err)
	}
	switch k.Kind {
	case "header":
		if err := json.Unmarshal(line, &t.Header); err != nil {
			return err
		}
		if t.Header.Format > FormatVersion {
			return fmt.Errorf("format %d is newer than %d, which this version reads", t.Header.Format, FormatVersion)
		}
	case "step":
		var s Step
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		t.Steps = append(t.Steps, s)
	case KindCheckpoint, KindRestore:
		m := Mark{After: len(t.Steps)}
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		t.Marks = append(t.Marks, m)
	case "end":
		t.End = &End{}
		return json.Unmarshal(line, t.End)
	}
	return nil
}
