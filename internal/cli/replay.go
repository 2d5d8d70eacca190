package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/crew"
	"github.com/pommelgym/pommel/internal/replay"
	"github.com/pommelgym/pommel/internal/trace"
)

type replayCmd struct {
	jsonFlag
	Traces   []string `arg:"" help:"Recorded episodes: folders, ids, or a folder that holds some."`
	World    string   `default:"" help:"Name or folder of the world. Default: the one that each record names."`
	Driver   string   `default:"auto" help:"${driver_help}"`
	Parallel int      `default:"1" help:"How many worlds run at the same time."`
	Max      int      `default:"0" help:"Only the newest of a folder; 0 is all."`
	Log      bool     `help:"Log what worlds do to standard error."`
}

// Validate refuses what cannot be meant.
func (c *replayCmd) Validate() error {
	if c.Parallel < 1 || c.Max < 0 {
		return errors.New("--parallel takes 1 or more, --max 0 or more")
	}
	return nil
}

// replayResult is the result of replay. The fields of a single record stand at the top too.
type replayResult struct {
	Trace           string                 `json:"trace,omitempty"`
	OK              bool                   `json:"ok"`
	Steps           int                    `json:"steps"`
	FirstDifference *replay.StepDifference `json:"first_difference"`
	Equal           int                    `json:"equal"`
	Of              int                    `json:"of"`
	Traces          []*replay.Report       `json:"traces"`
}

func (c *replayCmd) Run(ctx context.Context, s *State) error {
	paths, err := findTraces(c.Traces, c.Max)
	if err != nil {
		return usageError{err}
	}
	byWorld := map[string][]record{}
	for _, p := range paths {
		t, err := trace.Read(p)
		if err != nil {
			return usageError{err}
		}
		world := t.Header.World
		if c.World != "" {
			world = c.World
		}
		byWorld[world] = append(byWorld[world], record{path: p, trace: t})
	}
	bar := s.progress("replay", len(paths))
	res := replayResult{Of: len(paths), OK: true, Traces: []*replay.Report{}}
	for _, world := range slices.Sorted(maps.Keys(byWorld)) {
		reports, err := c.playAll(ctx, s, world, byWorld[world], bar)
		if err != nil {
			bar.end()
			return err
		}
		res.Traces = append(res.Traces, reports...)
	}
	bar.end()
	return c.show(s, res)
}

func (c *replayCmd) show(s *State, res replayResult) error {
	for _, r := range res.Traces {
		res.Steps += r.Steps
		res.OK = res.OK && r.OK
		if r.OK {
			res.Equal++
		}
	}
	if len(res.Traces) == 1 {
		res.Trace, res.FirstDifference = res.Traces[0].Trace, res.Traces[0].FirstDifference
	}
	if c.JSON {
		if err := s.printJSON(res); err != nil {
			return err
		}
	} else {
		printReplays(s, res)
	}
	if !res.OK {
		return errNotGood
	}
	return nil
}

func printReplays(s *State, res replayResult) {
	for _, r := range res.Traces {
		state := "equal"
		if !r.OK {
			state = "DIFFERENT"
		}
		fmt.Fprintf(s.Stdout, "%s  %s seed %d: %s, %d steps\n", filepath.Base(r.Trace), r.Task, r.Seed, state, r.Steps)
		if r.Note != "" {
			fmt.Fprintln(s.Stdout, "  note:", r.Note)
		}
		if d := r.FirstDifference; d != nil {
			fmt.Fprintf(s.Stdout, "step %d %s\n%s", d.Step, d.Action, replay.Text(d.Differences))
		}
	}
	fmt.Fprintf(s.Stdout, "%d of %d equal\n", res.Equal, res.Of)
}

// record is a trace and where it lies.
type record struct {
	path  string
	trace *trace.Trace
}

// playAll plays the records of one world.
func (c *replayCmd) playAll(ctx context.Context, s *State, world string, records []record, bar *progress) ([]*replay.Report, error) {
	f := worldFlags{World: world, Driver: c.Driver, Traces: "off", Log: c.Log}
	n := min(c.Parallel, len(records))
	g, err := f.openProof(ctx, s, n)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	out := make([]*replay.Report, len(records))
	err = crew.Run(ctx, n, len(records), func(ctx context.Context, _ int, next iter.Seq[int]) error {
		env := g.NewEnv()
		defer env.Close()
		for i := range next {
			r, err := playOne(ctx, g, env, records[i])
			if err != nil {
				return fmt.Errorf("%s: %w", records[i].path, err)
			}
			out[i] = r
			bar.step("")
		}
		return nil
	})
	return out, err
}

func playOne(ctx context.Context, g *gym.Gym, env *gym.Env, rec record) (*replay.Report, error) {
	r, err := replay.Play(ctx, env, rec.trace, folderOf(rec.path))
	if err != nil {
		return nil, err
	}
	r.Trace = rec.path
	if was, is := rec.trace.Header.Image, g.Describe().Image; was != is && r.Note == "" {
		r.Note = fmt.Sprintf("the world has changed since: it was image %s and is %s", was, is)
	}
	return r, nil
}
