// Package policy is the reference policy as a player: it looks, chooses, remembers.
package policy

import (
	"math"
	"math/rand/v2"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/candidate"
	"github.com/pommelgym/pommel/internal/learn/feature"
	"github.com/pommelgym/pommel/internal/learn/net"
)

// View is what the policy wants to see.
func View() gym.View { return gym.View{Elements: true} }

// Horizon is how many steps a policy reckons an episode to have, whatever the task allows:
// the longest that it is trained on.
const Horizon = 20

// Player plays one episode with a network. It is for one caller; the network is only read.
type Player struct {
	net  *net.Net
	mem  *feature.Memory
	rng  *rand.Rand // nil: always the best candidate
	pass net.Pass
	list []candidate.Candidate
}

// Choice is one decision.
type Choice struct {
	In     *feature.Input
	Index  int
	LogP   float64
	Value  float64
	Action string
}

// NewPlayer begins an episode. Without rng the player takes the best candidate; with it,
// it draws from the policy.
func NewPlayer(n *net.Net, instruction string, rng *rand.Rand) *Player {
	return &Player{net: n, mem: feature.NewMemory(instruction, Horizon), rng: rng}
}

// See takes in an observation. It must be called once for each, before Choose.
func (p *Player) See(o *gym.Observation) []candidate.Candidate {
	p.list = p.mem.See(o)
	return p.list
}

// Spot names the kind of page that was seen last, and whether it looks new in this episode.
func (p *Player) Spot() (kind string, novel bool) { return p.mem.Kind, p.mem.Novel() }

// Look is a hash of what the page shows.
func (p *Player) Look() uint64 { return p.mem.Look() }

// Choose decides.
func (p *Player) Choose() Choice {
	in := p.mem.Encode(p.list)
	p.net.Forward(in, &p.pass)
	return p.take(in, p.pick())
}

// Take decides for the given candidate: how demonstrations are followed.
func (p *Player) Take(index int) Choice {
	in := p.mem.Encode(p.list)
	p.net.Forward(in, &p.pass)
	return p.take(in, index)
}

func (p *Player) take(in *feature.Input, index int) Choice {
	c := p.list[index]
	p.mem.Act(c)
	return Choice{In: in, Index: index, LogP: p.pass.LogP[index], Value: p.pass.Value, Action: c.Action}
}

// Value is what the network expects from the state that was seen last.
func (p *Player) Value() float64 {
	p.net.Forward(p.mem.Encode(p.list), &p.pass)
	return p.pass.Value
}

func (p *Player) pick() int {
	if p.rng == nil {
		best := 0
		for i, lp := range p.pass.LogP {
			if lp > p.pass.LogP[best] {
				best = i
			}
		}
		return best
	}
	u := p.rng.Float64()
	for i, lp := range p.pass.LogP {
		if u -= math.Exp(lp); u < 0 {
			return i
		}
	}
	return len(p.pass.LogP) - 1
}

// Bid is the bid of the element of candidate i of what was seen last, "" without one.
func (p *Player) Bid(i int) string { return p.mem.BidOf(p.list[i]) }
