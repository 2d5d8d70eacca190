// Package optimiser moves a network's parameters along a gradient.
package optimiser

import (
	"math"

	"github.com/pommelgym/pommel/internal/learn/net"
)

// Rates are the step sizes: one for the dense part of the network, one for its table of
// words, which sees each of its places rarely.
type Rates struct{ Dense, Words float64 }

// Adam is Kingma & Ba, "Adam: A Method for Stochastic Optimization", 2015, arXiv:1412.6980,
// algorithm 1. The table's places are moved only when they have a gradient, each with a
// count of its own for the bias correction.
type Adam struct {
	M, V []float64
	// T counts the updates of the dense part, Seen those of each sparse place.
	T    int
	Seen []uint32
}

const (
	beta1, beta2 = 0.9, 0.999
	// epsilon is large on purpose: where there is hardly a gradient, as long as nothing was won,
	// the policy must not wander at full pace.
	epsilon = 1e-3
)

// NewAdam makes an optimiser that has seen nothing.
func NewAdam() *Adam {
	return &Adam{M: make([]float64, net.Size), V: make([]float64, net.Size), Seen: make([]uint32, net.Size-net.Sparse)}
}

// Step moves the parameters against the gradient, which is first shortened to the norm
// clip if it is longer: Pascanu, Mikolov, Bengio, "On the difficulty of training recurrent
// neural networks", 2013, arXiv:1211.5063, algorithm 1. It returns the norm as it was.
func (a *Adam) Step(n *net.Net, g *net.Grad, r Rates, clip float64) float64 {
	norm := norm(g)
	scale := 1.0
	if norm > clip {
		scale = clip / norm
	}
	a.T++
	for i := range net.Sparse {
		a.move(n, i, g.G[i]*scale, r.Dense, a.T)
	}
	for _, i := range g.Touched {
		a.Seen[i-net.Sparse]++
		a.move(n, i, g.G[i]*scale, r.Words, int(a.Seen[i-net.Sparse]))
	}
	return norm
}

func (a *Adam) move(n *net.Net, i int, g, rate float64, t int) {
	a.M[i] = beta1*a.M[i] + (1-beta1)*g
	a.V[i] = beta2*a.V[i] + (1-beta2)*g*g
	m := a.M[i] / (1 - math.Pow(beta1, float64(t)))
	v := a.V[i] / (1 - math.Pow(beta2, float64(t)))
	n.P[i] -= rate * m / (math.Sqrt(v) + epsilon)
}

func norm(g *net.Grad) float64 {
	sum := 0.0
	for i := range net.Sparse {
		sum += g.G[i] * g.G[i]
	}
	for _, i := range g.Touched {
		sum += g.G[i] * g.G[i]
	}
	return math.Sqrt(sum)
}
