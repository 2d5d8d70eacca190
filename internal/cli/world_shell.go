package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/gym"
)

type worldShellCmd struct {
	World  string `arg:"" default:"shop" help:"Name or folder of the world."`
	Driver string `default:"auto" help:"${driver_help}"`
	Task   string `default:"" help:"Task to start with. Default: the first."`
	Seed   int64  `default:"0" help:"Its seed."`
}

const shellHelp = `  click('12')            any action or several: see docs/actions.md
  :reset [TASK] [SEED]   start an episode
  :obs                   print the observation again
  :judge                 print the judge's verdict
  :sql SELECT ...        read the world's database as the judge
  :shot FILE.png         save a screenshot
  :oracle                let the task's oracle play on
  :tasks                 list the tasks
  :quit                  end (or end of input)`

// shell is a world worked by hand, one line a command.
type shell struct {
	s    *State
	g    *gym.Gym
	env  *gym.Env
	task string
	seed int64
	last *gym.Observation
}

func (c *worldShellCmd) Run(ctx context.Context, s *State) error {
	g, err := worldFlags{World: c.World, Driver: c.Driver, Traces: "off"}.open(ctx, s, 1)
	if err != nil {
		return err
	}
	defer g.Close()
	tasks, err := g.Select("", "", nil)
	if err != nil {
		return err
	}
	sh := &shell{s: s, g: g, env: g.NewEnv(), task: c.Task, seed: c.Seed}
	defer sh.env.Close()
	if sh.task == "" {
		sh.task = tasks[0].ID
	}
	if err := sh.reset(ctx, nil); err != nil {
		return err
	}
	fmt.Fprintln(s.Stdout, shellHelp)
	return sh.loop(ctx)
}

func (sh *shell) loop(ctx context.Context) error {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(sh.s.Stdin)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		fmt.Fprint(sh.s.Stderr, "pommel> ")
		select {
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			if err := sh.do(ctx, strings.TrimSpace(line)); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				sh.s.report(err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (sh *shell) do(ctx context.Context, line string) error {
	command, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch command {
	case "":
		return nil
	case ":quit", ":q", "exit":
		return io.EOF
	case ":help", "help", "?":
		fmt.Fprintln(sh.s.Stdout, shellHelp)
		return nil
	case ":reset":
		return sh.reset(ctx, strings.Fields(rest))
	case ":obs":
		sh.show(sh.last)
		return nil
	case ":judge":
		v, err := sh.env.Judge(ctx)
		return sh.print(v, err)
	case ":sql":
		v, err := sh.env.Query(ctx, rest)
		return sh.print(v, err)
	case ":shot":
		return sh.shot(ctx, rest)
	case ":tasks":
		return (&worldListCmd{Tasks: sh.g.Describe().World}).tasks(sh.s)
	case ":oracle":
		return sh.env.Oracle(ctx, func(ctx context.Context, action string) (*gym.Result, error) {
			fmt.Fprintln(sh.s.Stdout, ">", action)
			return sh.step(ctx, action)
		})
	}
	if strings.HasPrefix(command, ":") {
		return usagef("%s is not known\n%s", command, shellHelp)
	}
	_, err := sh.step(ctx, line)
	return err
}

func (sh *shell) reset(ctx context.Context, args []string) error {
	if len(args) > 0 {
		sh.task = args[0]
	}
	if len(args) > 1 {
		seed, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return usagef("seed %q is not a number", args[1])
		}
		sh.seed = seed
	}
	r, err := sh.env.Reset(ctx, gym.Request{Task: sh.task, Seed: sh.seed})
	if err != nil {
		return err
	}
	fmt.Fprintf(sh.s.Stdout, "task %s, seed %d: %s\n", sh.task, sh.seed, r.Instruction)
	sh.show(r.Observation)
	return nil
}

func (sh *shell) step(ctx context.Context, action string) (*gym.Result, error) {
	r, err := sh.env.Step(ctx, action)
	if err != nil {
		return nil, err
	}
	sh.show(r.Observation)
	fmt.Fprintf(sh.s.Stdout, "step %d: reward %+.2f, potential %.2f, terminated %v, truncated %v, success %v (%.1f ms)\n",
		r.Step, r.Reward, r.Info.Potential, r.Terminated, r.Truncated, r.Info.Success, r.Info.Timing.TotalMS)
	return r, nil
}

func (sh *shell) show(o *gym.Observation) {
	sh.last = o
	fmt.Fprintf(sh.s.Stdout, "%s\n%s  (%s)\n", o.Text, o.Title, o.URL)
	if o.Dialog != nil {
		fmt.Fprintf(sh.s.Stdout, "dialog %s: %s\n", o.Dialog.Type, o.Dialog.Message)
	}
	if o.LastActionError != nil {
		fmt.Fprintf(sh.s.Stdout, "error %v\n", o.LastActionError)
	}
}

func (sh *shell) print(v json.RawMessage, err error) error {
	if err != nil {
		return err
	}
	var out any
	if err := json.Unmarshal(v, &out); err != nil {
		return err
	}
	enc := json.NewEncoder(sh.s.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func (sh *shell) shot(ctx context.Context, file string) error {
	if file == "" {
		return usagef(":shot needs a file name")
	}
	o, err := sh.env.Observe(ctx, gym.View{Screenshot: "png"})
	if err != nil {
		return err
	}
	return os.WriteFile(file, o.Screenshot.Data, 0o644)
}
