package openenv

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
)

// resetArgs are what reset takes.
type resetArgs struct {
	gym.SessionRequest
	// name is what the caller wants to call the episode.
	name string
}

// resetFields are the members of a reset, in the order of the documentation.
var resetFields = []string{
	"task", "seed", "episode_id", "max_steps", "profile", "elements", "html", "axtree", "screenshot", "max_text", "client", "request_id",
}

// readReset reads the arguments of a reset and fills in what they leave open.
func (h *Handler) readReset(data json.RawMessage) (resetArgs, error) {
	f := readFields("", data, resetFields...)
	a := resetArgs{name: f.text("episode_id")}
	a.Task, a.Seed, a.Client = f.text("task"), f.number("seed"), f.text("client")
	a.MaxSteps, a.RequestID = int(f.number("max_steps")), f.text("request_id")
	a.Profile = f.text("profile")
	a.View = gym.View{
		Elements: f.flag("elements"), HTML: f.flag("html"), AXTree: f.flag("axtree"),
		Screenshot: f.text("screenshot"), MaxText: int(f.number("max_text")),
	}
	a.Wait = resetWait
	if !slices.Contains([]string{"", "png", "jpeg"}, a.View.Screenshot) {
		f.wrong("screenshot", "literal_error", "Input should be 'png' or 'jpeg'")
	}
	if len(a.name) > 255 {
		f.wrong("episode_id", "string_too_long", "String should have at most 255 characters")
	}
	if err := f.err(); err != nil {
		return a, err
	}
	if !f.has("seed") {
		a.Seed = trainingSeed()
	}
	if a.Task == "" {
		return a, h.chooseTask(&a)
	}
	return a, nil
}

// trainingSeed is a random seed of the training split: seed % 10 is 0 to 6.
func trainingSeed() int64 { return rand.Int64N(1<<40)*10 + rand.Int64N(7) }

// chooseTask lets the seed choose among the training tasks, for callers that know nothing
// of tasks: the same seed is the same episode.
func (h *Handler) chooseTask(a *resetArgs) error {
	tasks, err := h.cfg.Sessions.Tasks("train", "")
	if err != nil || len(tasks) == 0 {
		return fault.Wrap(fault.InvalidArgument, err, "task is missing, and the world has no training task to choose")
	}
	// Neighbouring seeds should be different tasks, and the last digit chooses the split.
	r := rand.New(rand.NewPCG(uint64(a.Seed), 0))
	a.Task = tasks[r.IntN(len(tasks))].ID
	return nil
}

// stepArgs are what step takes.
type stepArgs struct {
	action string
	n      int // number of the step, 0 for the next one
}

// readAction reads an action: {"action_str": "..."}; step makes a repetition harmless.
func readAction(at string, data json.RawMessage) (stepArgs, error) {
	f := readFields(at, data, "action_str", "step", "metadata")
	a := stepArgs{action: f.text("action_str"), n: int(f.number("step"))}
	if !f.has("action_str") {
		f.wrong("action_str", "missing", `Field required: an action string such as click("a12")`)
	}
	if meta := f.values["metadata"]; f.has("metadata") && !strings.HasPrefix(strings.TrimSpace(string(meta)), "{") {
		f.wrong("metadata", "dict_type", "Input should be an object")
	}
	return a, f.err()
}
