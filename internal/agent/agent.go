// Package agent holds the agents that Pommel brings along: the task's own oracle,
// a random one as the floor, policies that `pommel train` made, and any program that speaks JSON lines.
package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/gym"
)

// Episode is a running episode as an agent sees it.
type Episode interface {
	// First is the answer to Reset.
	First() *gym.Result
	// Step performs one action string.
	Step(ctx context.Context, action string) (*gym.Result, error)
	// Oracle plays the task's scripted solution; its actions go through step, or through
	// Step when that is nil.
	Oracle(ctx context.Context, step Step) error
}

// Step performs one action string.
type Step = func(ctx context.Context, action string) (*gym.Result, error)

// Rehearser is an agent that wants to see an episode without perturbations before it plays
// it with them.
type Rehearser interface {
	Rehearse(ctx context.Context, env *gym.Env, task string, seed int64) error
}

// Agent plays episodes, one after the other.
type Agent interface {
	// View says what the agent wants to see.
	View() gym.View
	// Play acts until the episode is done, or gives up by returning nil early.
	Play(ctx context.Context, e Episode) error
	Close() error
}

// Kinds lists what New takes, for help texts.
const Kinds = "oracle, plain-oracle (which does not get over perturbations), random, policy:FILE or cmd:PROGRAM"

// New makes an agent by name. Each parallel worker needs its own.
func New(name string, seed int64) (Agent, error) {
	if file, ok := strings.CutPrefix(name, "policy:"); ok {
		return readPolicy(file)
	}
	switch program, isCmd := strings.CutPrefix(name, "cmd:"); {
	case name == "oracle":
		return &recovering{}, nil
	case name == "plain-oracle":
		return oracle{}, nil
	case name == "random":
		return &random{seed: seed}, nil
	case isCmd && program != "":
		return startCommand(program)
	}
	return nil, fmt.Errorf("agent %q is not known; it takes %s", name, Kinds)
}

// oracle plays the script as it stands.
type oracle struct{}

func (oracle) View() gym.View                            { return gym.View{Elements: true} }
func (oracle) Play(ctx context.Context, e Episode) error { return e.Oracle(ctx, nil) }
func (oracle) Close() error                              { return nil }
