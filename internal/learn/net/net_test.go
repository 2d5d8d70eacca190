package net

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pommelgym/pommel/internal/learn/feature"
)

// sample makes an input with random content.
func sample(rng *rand.Rand, n int) *feature.Input {
	in := &feature.Input{N: n, Dense: make([]float32, n*feature.Columns), Words: make([][]uint32, n), State: make([]float32, feature.StateColumns), StateWords: []uint32{3, 77}}
	for i := range in.Dense {
		if rng.IntN(3) == 0 {
			in.Dense[i] = rng.Float32()
		}
	}
	for i := range in.Words {
		in.Words[i] = []uint32{uint32(rng.IntN(feature.Table)), 9}
	}
	for i := range in.State {
		in.State[i] = rng.Float32()
	}
	return in
}

func noisy(rng *rand.Rand) *Net {
	n := New(1)
	for i := range n.P {
		n.P[i] += rng.NormFloat64() * 0.1
	}
	return n
}

// TestGradient compares the gradient with differences of the loss.
func TestGradient(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	n := noisy(rng)
	in := sample(rng, 4)
	// loss = -log π(1) + v²/2
	loss := func() float64 {
		var p Pass
		n.Forward(in, &p)
		return -p.LogP[1] + p.Value*p.Value/2
	}
	var p Pass
	n.Forward(in, &p)
	d := make([]float64, in.N)
	for i, lp := range p.LogP {
		d[i] = math.Exp(lp)
	}
	d[1]--
	g := NewGrad()
	n.Backward(in, &p, d, p.Value, g)
	places := append([]int{atA, atB + 5, atBias + 3, atU + 2, atC + 1, atD, atWords + 9, atValue + 77}, g.Touched...)
	for range 40 {
		places = append(places, rng.IntN(Sparse))
	}
	for _, i := range places {
		const h = 1e-6
		was := n.P[i]
		n.P[i] = was + h
		up := loss()
		n.P[i] = was - h
		down := loss()
		n.P[i] = was
		if want := (up - down) / (2 * h); math.Abs(want-g.G[i]) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("parameter %d: gradient %g, by differences %g", i, g.G[i], want)
		}
	}
	g.Reset()
	for i, x := range g.G {
		if x != 0 {
			t.Fatalf("parameter %d has gradient %g after Reset", i, x)
		}
	}
}

// TestFirstPolicyIsUniform: training from nothing begins with no opinion.
func TestFirstPolicyIsUniform(t *testing.T) {
	t.Parallel()
	in := sample(rand.New(rand.NewPCG(3, 4)), 5)
	var p Pass
	New(7).Forward(in, &p)
	for i, lp := range p.LogP {
		if math.Abs(math.Exp(lp)-0.2) > 1e-12 {
			t.Errorf("candidate %d has probability %g; expected 0.2", i, math.Exp(lp))
		}
	}
	if p.Value != 0 {
		t.Errorf("value %g; expected 0", p.Value)
	}
}

func BenchmarkForwardBackward(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := noisy(rng)
	in := sample(rng, 40)
	g := NewGrad()
	var p Pass
	d := make([]float64, in.N)
	for i := range d {
		d[i] = 0.01
	}
	for b.Loop() {
		n.Forward(in, &p)
		n.Backward(in, &p, d, 0.1, g)
	}
}
