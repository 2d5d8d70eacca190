// Package net is the small network of the reference policy.
//
// A candidate with dense vector x and words W gets the score
//
//	s = a·x + u·tanh(Bx + b) + Σ_{w∈W} T[w]
//
// and the policy is the softmax over the scores of the candidates of a state: a pointer
// into a list of any length (Vinyals, Fortunato, Jaitly, "Pointer Networks", 2015,
// arXiv:1506.03134, eq. 3, with the query folded into x). The value of a state is
// v = c·z + d + Σ V[w] over its own vector z and words.
//
// All arithmetic is in float64 and in one fixed order: the same inputs give the same bits.
package net

import (
	"math"
	"math/rand/v2"

	"github.com/pommelgym/pommel/internal/learn/feature"
)

// Hidden is the number of hidden units.
const Hidden = 32

// Offsets of the parts in the flat vector of parameters.
const (
	atA     = 0                            // a
	atB     = atA + feature.Columns        // B, one row of Hidden a column of x
	atBias  = atB + feature.Columns*Hidden // b
	atU     = atBias + Hidden              // u
	atC     = atU + Hidden                 // c
	atD     = atC + feature.StateColumns   // d
	atWords = atD + 1                      // T
	atValue = atWords + feature.Table      // V
	// Size is the number of parameters; those from Sparse on are touched a few at a time.
	Size   = atValue + feature.Table
	Sparse = atWords
)

// Net is the network: its parameters in one flat vector.
type Net struct{ P []float64 }

// New makes a network whose policy is uniform and whose values are 0.
func New(seed uint64) *Net {
	n := &Net{P: make([]float64, Size)}
	rng := rand.New(rand.NewPCG(seed, 0x6e6574))
	// Glorot & Bengio 2010 for B; u = 0 keeps the first policy uniform.
	scale := math.Sqrt(2 / float64(feature.Columns+Hidden))
	for i := atB; i < atBias; i++ {
		n.P[i] = rng.NormFloat64() * scale
	}
	return n
}

// Lean sets the first weights of the dense columns.
func (n *Net) Lean(weights []float64) { copy(n.P[atA:atB], weights) }

// Pass is what one forward pass leaves behind. Reusing it saves allocations; it is for one
// caller at a time.
type Pass struct {
	LogP   []float64 // of each candidate
	Value  float64
	hidden []float64
	back   []float64
}

// Forward computes the policy and the value of a state.
func (n *Net) Forward(in *feature.Input, p *Pass) {
	p.LogP = grow(p.LogP, in.N)
	p.hidden = grow(p.hidden, in.N*Hidden)
	for i := range in.N {
		p.LogP[i] = n.score(in.Dense[i*feature.Columns:(i+1)*feature.Columns], in.Words[i], p.hidden[i*Hidden:(i+1)*Hidden])
	}
	logSoftmax(p.LogP)
	p.Value = n.P[atD]
	for k, z := range in.State {
		p.Value += n.P[atC+k] * float64(z)
	}
	for _, w := range in.StateWords {
		p.Value += n.P[atValue+int(w)]
	}
}

func grow(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	return s[:n]
}

func (n *Net) score(x []float32, words []uint32, hidden []float64) float64 {
	copy(hidden, n.P[atBias:atU])
	s := 0.0
	for k, v := range x {
		if v == 0 {
			continue // most columns are: flags that are off
		}
		f := float64(v)
		s += n.P[atA+k] * f
		row := n.P[atB+k*Hidden:][:Hidden]
		for j := range hidden {
			hidden[j] += row[j] * f
		}
	}
	u := n.P[atU:][:Hidden]
	for j := range hidden {
		hidden[j] = math.Tanh(hidden[j])
		s += u[j] * hidden[j]
	}
	for _, w := range words {
		s += n.P[atWords+int(w)]
	}
	return s
}

func logSoftmax(s []float64) {
	top := math.Inf(-1)
	for _, x := range s {
		top = max(top, x)
	}
	sum := 0.0
	for _, x := range s {
		sum += math.Exp(x - top)
	}
	shift := top + math.Log(sum)
	for i := range s {
		s[i] -= shift
	}
}

// Grad gathers the gradient of a loss.
type Grad struct {
	G []float64
	// Touched are the sparse places with a gradient, in the order of their first touch.
	Touched []int
	seen    []bool
}

// NewGrad makes an empty gradient.
func NewGrad() *Grad { return &Grad{G: make([]float64, Size), seen: make([]bool, Size)} }

// Reset empties the gradient.
func (g *Grad) Reset() {
	clear(g.G[:Sparse])
	for _, at := range g.Touched {
		g.G[at] = 0
		g.seen[at] = false
	}
	g.Touched = g.Touched[:0]
}

func (g *Grad) sparse(at int, d float64) {
	if !g.seen[at] {
		g.seen[at] = true
		g.Touched = append(g.Touched, at)
	}
	g.G[at] += d
}

// Backward adds the gradient of a loss to g, from the loss's derivatives by the scores
// (before the softmax) and by the value. p must be the pass of this input.
func (n *Net) Backward(in *feature.Input, p *Pass, dScore []float64, dValue float64, g *Grad) {
	p.back = grow(p.back, Hidden)
	for i := range in.N {
		if dScore[i] != 0 {
			n.backScore(in.Dense[i*feature.Columns:(i+1)*feature.Columns], in.Words[i], p.hidden[i*Hidden:(i+1)*Hidden], dScore[i], p.back, g)
		}
	}
	if dValue == 0 {
		return
	}
	g.G[atD] += dValue
	for k, z := range in.State {
		g.G[atC+k] += dValue * float64(z)
	}
	for _, w := range in.StateWords {
		g.sparse(atValue+int(w), dValue)
	}
}

func (n *Net) backScore(x []float32, words []uint32, hidden []float64, d float64, back []float64, g *Grad) {
	u := n.P[atU:][:Hidden]
	gu, gb := g.G[atU:][:Hidden], g.G[atBias:][:Hidden]
	for j, h := range hidden {
		gu[j] += d * h
		back[j] = d * u[j] * (1 - h*h)
		gb[j] += back[j]
	}
	for k, v := range x {
		if v == 0 {
			continue
		}
		f := float64(v)
		g.G[atA+k] += d * f
		row := g.G[atB+k*Hidden:][:Hidden]
		for j := range back {
			row[j] += back[j] * f
		}
	}
	for _, w := range words {
		g.sparse(atWords+int(w), d)
	}
}
