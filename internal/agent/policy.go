package agent

import (
	"context"
	"fmt"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/net"
	"github.com/pommelgym/pommel/internal/learn/policy"
)

// trained is a policy that `pommel train` wrote; it takes its best candidate at each step.
type trained struct{ net *net.Net }

func readPolicy(file string) (Agent, error) {
	_, n, _, err := policy.Read(file)
	if err != nil {
		return nil, err
	}
	return trained{n}, nil
}

func (trained) View() gym.View { return policy.View() }
func (trained) Close() error   { return nil }

// patience bounds an episode that never ends; tasks have limits of their own below it.
const patience = 200

func (a trained) Play(ctx context.Context, e Episode) error {
	r := e.First()
	p := policy.NewPlayer(a.net, r.Instruction, nil)
	for step := 0; !r.Done(); step++ {
		if step == patience {
			return fmt.Errorf("the policy came to no end in %d steps", patience)
		}
		p.See(r.Observation)
		next, err := e.Step(ctx, p.Choose().Action)
		if err != nil {
			return err
		}
		r = next
	}
	return nil
}
