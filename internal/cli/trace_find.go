package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/trace"
)

// findTraces finds the records that were named: by folder, by id, or as a folder that
// holds some, of which it takes the newest max (0: all). No name means all records.
func findTraces(names []string, max int) ([]string, error) {
	if len(names) == 0 {
		names = []string{gym.DefaultTraceDir()}
	}
	var out []string
	for _, name := range names {
		at := name
		if _, err := os.Stat(at); err != nil {
			at = filepath.Join(gym.DefaultTraceDir(), name)
		}
		if _, err := os.Stat(at); err != nil {
			return nil, fmt.Errorf("%s: no such record; `pommel trace list` names those that there are", name)
		}
		inside, err := trace.List(at)
		if err != nil || len(inside) == 0 {
			out = append(out, at)
			continue
		}
		if max > 0 && len(inside) > max {
			inside = inside[len(inside)-max:]
		}
		for _, id := range inside {
			out = append(out, filepath.Join(at, id))
		}
	}
	return out, nil
}

// folderOf is the folder of a record that was named by its folder or by its file of lines.
func folderOf(path string) string {
	if st, err := os.Stat(path); err == nil && !st.IsDir() {
		return filepath.Dir(path)
	}
	return path
}
