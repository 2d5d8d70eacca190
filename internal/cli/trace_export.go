package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/internal/trace"
	"github.com/pommelgym/pommel/internal/trace/export"
)

type traceExportCmd struct {
	jsonFlag
	Traces  []string `arg:"" optional:"" help:"Recorded episodes: folders, ids, or folders that hold some. Default: all that were recorded."`
	Parquet string   `help:"Write this Parquet file, one row a step."`
	JSONL   string   `name:"jsonl" help:"Write this file of JSON lines, one a step; - is standard output."`
	Success bool     `help:"Only episodes that succeeded."`
	Max     int      `default:"0" help:"Only the newest of a folder; 0 is all."`
}

// Validate refuses what cannot be meant.
func (c *traceExportCmd) Validate() error {
	if (c.Parquet == "") == (c.JSONL == "") {
		return errors.New("name one of --parquet FILE and --jsonl FILE")
	}
	if c.JSON && c.JSONL == "-" {
		return errors.New("--json and --jsonl - both write to standard output")
	}
	return nil
}

func (c *traceExportCmd) Run(s *State) error {
	paths, err := findTraces(c.Traces, c.Max)
	if err != nil {
		return usageError{err}
	}
	episodes, rows, skipped := 0, 0, 0
	write := func(w export.Writer) error {
		for _, p := range paths {
			t, err := trace.Read(p)
			if err != nil {
				s.say("%s: left out: %v", p, err)
				skipped++
				continue
			}
			if c.Success && (t.End == nil || !t.End.Success) {
				continue
			}
			list, err := export.Rows(t, folderOf(p))
			if err != nil {
				return err
			}
			if err := w.Write(list); err != nil {
				return err
			}
			episodes, rows = episodes+1, rows+len(list)
		}
		return w.Close()
	}
	if err := c.to(s, write); err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(map[string]any{"file": c.Parquet + c.JSONL, "episodes": episodes, "rows": rows, "skipped": skipped})
	}
	s.say("%d episodes, %d rows", episodes, rows)
	return nil
}

// to opens where the rows go. A file that could not be finished is removed.
func (c *traceExportCmd) to(s *State, write func(export.Writer) error) error {
	if c.JSONL == "-" {
		return write(export.JSONL(s.Stdout))
	}
	path, make := c.Parquet, export.Parquet
	if c.JSONL != "" {
		path, make = c.JSONL, export.JSONL
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".export-*")
	if err != nil {
		return usageError{fmt.Errorf("write %s: %w", path, err)}
	}
	defer os.Remove(f.Name())
	err = write(make(io.Writer(f)))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
