package cli

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/trace"
)

type traceCmd struct {
	List   traceListCmd   `cmd:"" help:"List recorded episodes, newest last."`
	Show   traceShowCmd   `cmd:"" help:"Print one recorded episode."`
	Export traceExportCmd `cmd:"" help:"Write recorded episodes as a table, one row a step: Parquet or JSON lines."`
}

type traceListCmd struct {
	jsonFlag
	Dir string `default:"" help:"Folder of recorded episodes. Default: below the user's state folder."`
	Max int    `default:"50" help:"How many of the newest."`
}

// traceLine is one episode of a listing.
type traceLine struct {
	ID      string  `json:"id"`
	Task    string  `json:"task"`
	Seed    int64   `json:"seed"`
	Steps   int     `json:"steps"`
	Reward  float64 `json:"reward"`
	Success bool    `json:"success"`
	End     string  `json:"end"`
}

func (c *traceListCmd) Run(s *State) error {
	dir := c.Dir
	if dir == "" {
		dir = gym.DefaultTraceDir()
	}
	names, err := trace.List(dir)
	if err != nil {
		return usageError{err}
	}
	if len(names) > c.Max {
		names = names[len(names)-c.Max:]
	}
	lines := []traceLine{}
	for _, n := range names {
		t, err := trace.Read(filepath.Join(dir, n))
		if err != nil {
			s.say("%s: %v", n, err)
			continue
		}
		l := traceLine{ID: n, Task: t.Header.Task, Seed: t.Header.Seed, Steps: max(0, len(t.Steps)-1), End: "cut off"}
		if t.End != nil {
			l.End, l.Success, l.Reward = t.End.Reason, t.End.Success, t.End.Reward
		}
		lines = append(lines, l)
	}
	if c.JSON {
		return s.printJSON(map[string]any{"dir": dir, "traces": lines})
	}
	var rows [][]string
	for _, l := range lines {
		rows = append(rows, []string{l.ID, l.Task, strconv.FormatInt(l.Seed, 10), strconv.Itoa(l.Steps), fmt.Sprintf("%.2f", l.Reward), l.End})
	}
	table(s.Stdout, "EPISODE|TASK|SEED|STEPS|REWARD|END", rows...)
	return nil
}

type traceShowCmd struct {
	jsonFlag
	Trace string `arg:"" help:"Folder of the episode, or its id."`
	Text  bool   `help:"Print the observations' texts too."`
}

func (c *traceShowCmd) Run(s *State) error {
	paths, err := findTraces([]string{c.Trace}, 1)
	if err != nil {
		return usageError{err}
	}
	t, err := trace.Read(paths[0])
	if err != nil {
		return usageError{err}
	}
	if c.JSON {
		return s.printJSON(map[string]any{"header": t.Header, "steps": t.Steps, "end": t.End})
	}
	h := t.Header
	fmt.Fprintf(s.Stdout, "%s  world %s  task %s  seed %d\n%s\n", h.EpisodeID, h.World, h.Task, h.Seed, h.Instruction)
	for _, st := range t.Steps {
		fmt.Fprintf(s.Stdout, "%3d  %+.2f  %-60s %s\n", st.Step, st.Reward, st.Action, st.Observation.URL)
		if e := st.Observation.LastActionError; e != nil {
			fmt.Fprintf(s.Stdout, "            %v\n", e)
		}
		if c.Text {
			fmt.Fprintln(s.Stdout, st.Observation.Text)
		}
	}
	if t.End != nil {
		fmt.Fprintf(s.Stdout, "end: %s, success %v, reward %.2f\n", t.End.Reason, t.End.Success, t.End.Reward)
	}
	return nil
}
