package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/task"
)

// maxInstructions ends a script that computes for ever: some seconds of work.
const maxInstructions = 20_000_000

// Obs is what a script sees after an action.
type Obs struct {
	URL, Title, Text string
	// Error is the failure of the last action, or "".
	Error    string
	Elements []Element
	// Done says that the episode is over.
	Done bool
}

// Element is one node of the page.
type Element struct {
	Bid, Role, Name, Value, Tag string
	State                       []string
}

// Step carries out one action, as the agent would.
type Step func(ctx context.Context, action string) (Obs, error)

// Report tells what a script did.
type Report struct {
	Actions []string
	Printed []string
	// Last is the last observation.
	Last Obs
}

// Error is the failure of a script, with its place in the task file.
type Error struct {
	File      string
	Line, Col int
	Msg       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: oracle: %s", e.File, e.Line, e.Col, e.Msg)
}

// Run runs the oracle of an instance. first is the observation at the start of the
// episode. An *Error is the script's fault; any other error comes from step or ctx. The
// report is never nil.
func Run(ctx context.Context, inst *task.Instance, first Obs, step Step) (*Report, error) {
	r := &runner{ctx: ctx, inst: inst, step: step, report: &Report{Last: first}}
	if strings.TrimSpace(inst.Oracle.Source) == "" {
		return r.report, fault.New(fault.InvalidArgument, "task %s has no oracle", inst.ID)
	}
	thread := &starlark.Thread{Name: "oracle", Print: func(_ *starlark.Thread, msg string) {
		r.report.Printed = append(r.report.Printed, msg)
	}}
	thread.SetMaxExecutionSteps(maxInstructions)
	stop := context.AfterFunc(ctx, func() { thread.Cancel("cancelled") })
	defer stop()
	_, err := starlark.ExecFileOptions(dialect(), thread, inst.Oracle.File, r.source(), r.globals())
	switch {
	case r.outside != nil:
		return r.report, r.outside
	case ctx.Err() != nil:
		return r.report, fault.Wrap(fault.Canceled, context.Cause(ctx), "run the oracle of task %s", inst.ID)
	case err != nil:
		return r.report, r.place(err)
	}
	return r.report, nil
}

// Check compiles the oracle of an instance without running it.
func Check(inst *task.Instance) error {
	r := &runner{inst: inst, report: &Report{}}
	_, _, err := starlark.SourceProgramOptions(dialect(), inst.Oracle.File, r.source(), r.globals().Has)
	if err != nil {
		return r.place(err)
	}
	return nil
}

// dialect is Starlark with loops outside functions: a script is a list of steps.
func dialect() *syntax.FileOptions {
	return &syntax.FileOptions{TopLevelControl: true, GlobalReassign: true, While: true, Set: true}
}

type runner struct {
	ctx    context.Context
	inst   *task.Instance
	step   Step
	report *Report
	// lenient is above 0 inside try_.
	lenient int
	// outside is an error that is not the script's.
	outside error
}

// source puts the script on the line where it stands in its file.
func (r *runner) source() string {
	return strings.Repeat("\n", max(r.inst.Oracle.Line-1, 0)) + r.inst.Oracle.Source
}

// globals are the names that a script finds.
func (r *runner) globals() starlark.StringDict {
	g := starlark.StringDict{
		"p":    params(r.inst.Params),
		"obs":  starlark.NewBuiltin("obs", r.obs),
		"try_": starlark.NewBuiltin("try_", r.try),
	}
	for _, s := range action.Signatures() {
		g[s.Name] = starlark.NewBuiltin(s.Name, r.act)
	}
	return g
}

// act renders a call as an action and takes the step.
func (r *runner) act(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	text, err := render(b.Name(), args, kwargs)
	if err != nil {
		return nil, err
	}
	if r.report.Last.Done {
		return nil, fmt.Errorf("%s: the episode is over already", text)
	}
	if limit := r.inst.Limits.Steps; limit > 0 && len(r.report.Actions) >= limit {
		return nil, fmt.Errorf("%s: it would be step %d of a task with a limit of %d", text, len(r.report.Actions)+1, limit)
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	got, err := r.step(r.ctx, text)
	if err != nil {
		r.outside = err
		return nil, err
	}
	r.report.Actions = append(r.report.Actions, text)
	r.report.Last = got
	if got.Error != "" && r.lenient == 0 {
		return nil, fmt.Errorf("%s failed: %s", text, got.Error)
	}
	return observation{got}, nil
}

func (r *runner) obs(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	return observation{r.report.Last}, nil
}

// try calls a function in which failed actions are no errors: the observation tells.
func (r *runner) try(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, errors.New(`try_: expected a function and its arguments, as try_(click, selector = "#x")`)
	}
	r.lenient++
	defer func() { r.lenient-- }()
	return starlark.Call(thread, args[0], args[1:], kwargs)
}

// place turns an error of the interpreter into one with its place in the file.
func (r *runner) place(err error) error {
	out := &Error{File: r.inst.Oracle.File, Line: r.inst.Oracle.Line, Col: r.inst.Oracle.Col, Msg: err.Error()}
	var inSyntax syntax.Error
	var unresolved resolve.ErrorList
	var inRun *starlark.EvalError
	switch {
	case errors.As(err, &inSyntax):
		r.at(out, inSyntax.Pos)
		out.Msg = inSyntax.Msg
	case errors.As(err, &unresolved) && len(unresolved) > 0:
		r.at(out, unresolved[0].Pos)
		out.Msg = unresolved[0].Msg
	case errors.As(err, &inRun):
		out.Msg = inRun.Msg
		for _, frame := range slices.Backward(inRun.CallStack) {
			if frame.Pos.Filename() == r.inst.Oracle.File && frame.Pos.Line > 0 {
				r.at(out, frame.Pos)
				break
			}
		}
	}
	if strings.Contains(out.Msg, "too many steps") {
		out.Msg = "it computes for ever: stopped after so many instructions that no task needs them"
	}
	return out
}

// at takes over a position; the script is indented in its file.
func (r *runner) at(e *Error, pos syntax.Position) {
	e.Line, e.Col = int(pos.Line), int(pos.Col)+max(r.inst.Oracle.Col-1, 0)
}
