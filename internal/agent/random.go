package agent

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
)

// random clicks, types and chooses at random among what it sees. Its choices are
// a function of its seed, the task and the episode's seed.
type random struct{ seed int64 }

func (*random) View() gym.View { return gym.View{Elements: true} }
func (*random) Close() error   { return nil }

func (a *random) Play(ctx context.Context, e Episode) error {
	r := e.First()
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Info.Task))
	rng := rand.New(rand.NewPCG(uint64(a.seed)^h.Sum64(), uint64(r.Info.Seed)))
	words := strings.Fields(r.Instruction)
	for !r.Done() {
		next, err := e.Step(ctx, randomAction(rng, r.Observation, words))
		if err != nil {
			return err
		}
		r = next
	}
	return nil
}

func randomAction(rng *rand.Rand, o *gym.Observation, words []string) string {
	if o.Dialog != nil {
		return pick(rng, []string{"dialog_accept()", "dialog_dismiss()"})
	}
	if rng.IntN(40) == 0 {
		return pick(rng, []string{"go_back()", "go_forward()", "scroll(0, 400)", "noop()", "finish(" + action.Quote(pick(rng, words)) + ")"})
	}
	var live []gym.Element
	for _, el := range o.Elements {
		if el.Interactive && !slices.Contains(el.State, "disabled") {
			live = append(live, el)
		}
	}
	if len(live) == 0 {
		return "go_back()"
	}
	el := live[rng.IntN(len(live))]
	switch el.Tag {
	case "input", "textarea":
		if !slices.Contains([]string{"checkbox", "radio", "button", "submit"}, el.Role) {
			return "fill(" + action.Quote(el.Bid) + ", " + action.Quote(pick(rng, words)) + ")"
		}
	case "select":
		return "focus(" + action.Quote(el.Bid) + ")\npress(" + action.Quote(el.Bid) + ", " + action.Quote(pick(rng, []string{"ArrowDown", "ArrowUp"})) + ")"
	}
	return "click(" + action.Quote(el.Bid) + ")"
}

func pick(rng *rand.Rand, of []string) string {
	if len(of) == 0 {
		return ""
	}
	return of[rng.IntN(len(of))]
}
