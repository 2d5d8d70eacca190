package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/version"
)

// root is the grammar of the command line.
type root struct {
	Demo       demoCmd       `cmd:"" help:"Boot worlds, let the oracle and a random agent work on every task, and print rewards read from PostgreSQL."`
	Doctor     doctorCmd     `cmd:"" help:"Tell what this host can do, and what to install or allow for the rest."`
	World      worldCmd      `cmd:"" help:"List, check, or look into worlds."`
	Image      imageCmd      `cmd:"" help:"Build what worlds start from."`
	Check      checkCmd      `cmd:"" help:"Prove the tasks of a world: solvable, not won by doing nothing, judged purely."`
	Run        runCmd        `cmd:"" help:"Let an agent play episodes, and add up what came of them."`
	Train      trainCmd      `cmd:"" help:"Train the reference policy on a world's tasks, live."`
	Experiment experimentCmd `cmd:"" help:"Compare policies trained with and without perturbations, over several seeds."`
	Serve      serveCmd      `cmd:"" help:"Serve a world's episodes over RPC."`
	Dashboard  dashboardCmd  `cmd:"" help:"Show recorded episodes and trainings in a browser, without running worlds."`
	MCP        mcpCmd        `cmd:"" name:"mcp" help:"Let one agent play one episode through MCP on standard input and output."`
	Bench      benchCmd      `cmd:"" help:"Measure steps, resets and throughput."`
	Soak       soakCmd       `cmd:"" help:"Begin many episodes with random actions, and hold each start against the first one of its kind."`
	Perturb    perturbCmd    `cmd:"" help:"List perturbations, and print what a profile will do."`
	Trace      traceCmd      `cmd:"" help:"List, print and export recorded episodes."`
	Replay     replayCmd     `cmd:"" help:"Play recorded episodes again and tell the first step that differs."`
	Actions    actionsCmd    `cmd:"" help:"Print the actions that agents can use."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

const description = `Pommel is a gym for agents that operate web applications: a real Chromium, a real
application, a real PostgreSQL; rewards are read from rows.

Standard output carries results only (--json: one object); progress and logs go to standard error.
Exit codes: 0 done and good, 1 done and not good, 2 wrong use, 3 the host cannot, 4 infrastructure fault, 130 interrupted.`

// errNotGood ends a command whose work was done with a bad result; its output says what.
var errNotGood = errors.New("not good")

// usageError is a mistake of the caller's.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exited is how kong's own exit (help, version) is caught.
type exited int

// helpVars are what several help texts say alike.
func helpVars() kong.Vars {
	drivers := strings.Join(gym.DriverNames(), ",")
	return kong.Vars{
		"tasks_help":  "Only these tasks (repeat or separate by commas).",
		"drivers":     drivers,
		"driver_help": "How worlds are reset: auto, " + strings.ReplaceAll(drivers, ",", ", ") + ".",
	}
}

// Main runs one command and returns its exit code.
func Main(ctx context.Context, s *State) (code int) {
	defer func() {
		// kong has no way to return from --help but its exit function.
		if e, ok := recover().(exited); ok {
			code = int(e)
		} else if r := recover(); r != nil {
			panic(r)
		}
	}()
	var r root
	parser, err := kong.New(&r, kong.Name("pommel"), kong.Description(description), kong.UsageOnError(),
		kong.Writers(s.Stdout, s.Stderr), kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Bind(s), kong.BindTo(ctx, (*context.Context)(nil)),
		helpVars())
	if err != nil {
		return s.report(err)
	}
	if len(s.Args) == 0 {
		s.Args = []string{"--help"}
	}
	kctx, err := parser.Parse(s.Args)
	if err != nil {
		return s.report(usageError{err})
	}
	return s.report(kctx.Run())
}

// report prints an error and its hint and chooses the exit code.
func (s *State) report(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errNotGood):
		return ExitNotGood
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.Stderr, "pommel: interrupted")
		return ExitInterrupted
	}
	fmt.Fprintln(s.Stderr, "pommel:", err)
	if hint := gym.ErrorHint(err); hint != "" {
		fmt.Fprintln(s.Stderr, "  hint:", hint)
	}
	if errors.As(err, &usage) {
		return ExitUsage
	}
	switch gym.ErrorKind(err) {
	case gym.InvalidArgument, gym.NotFound:
		return ExitUsage
	case gym.Unsupported:
		return ExitHostCannot
	case gym.WorldLost, gym.ResourceExhausted:
		return ExitInfrastructure
	}
	return ExitInfrastructure
}

type versionCmd struct{}

func (versionCmd) Run(s *State) error {
	fmt.Fprintln(s.Stdout, version.String())
	return nil
}
