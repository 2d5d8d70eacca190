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
	// Oracle plays the task's scripted solution.
	Oracle(ctx context.Context) error
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
const Kinds = "oracle, random, policy:FILE or cmd:PROGRAM"

// New makes an agent by name. Each parallel worker needs its own.
func New(name string, seed int64) (Agent, error) {
	if file, ok := strings.CutPrefix(name, "policy:"); ok {
		return readPolicy(file)
	}
	switch program, isCmd := strings.CutPrefix(name, "cmd:"); {
	case name == "oracle":
		return oracle{}, nil
	case name == "random":
		return &random{seed: seed}, nil
	case isCmd && program != "":
		return startCommand(program)
	}
	return nil, fmt.Errorf("agent %q is not known; it takes %s", name, Kinds)
}

type oracle struct{}

func (oracle) View() gym.View                            { return gym.View{Elements: true} }
func (oracle) Play(ctx context.Context, e Episode) error { return e.Oracle(ctx) }
func (oracle) Close() error                              { return nil }
