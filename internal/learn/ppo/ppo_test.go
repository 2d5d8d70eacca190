package ppo

import (
	"math"
	"testing"

	"github.com/pommelgym/pommel/internal/learn/feature"
	"github.com/pommelgym/pommel/internal/learn/net"
	"github.com/pommelgym/pommel/internal/learn/optimiser"
)

// TestEstimate works one episode out by hand.
func TestEstimate(t *testing.T) {
	t.Parallel()
	steps := []Step{{Value: 0.5, Reward: 0}, {Value: 0.2, Reward: 1}}
	Estimate(steps, 0, Settings{Gamma: 0.9, Lambda: 0.8})
	// δ1 = 1 - 0.2 = 0.8; δ0 = 0.9·0.2 - 0.5 = -0.32; A0 = δ0 + 0.72·0.8
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"advantage 1", steps[1].Advantage, 0.8}, {"advantage 0", steps[0].Advantage, -0.32 + 0.72*0.8},
		{"return 1", steps[1].Return, 1}, {"return 0", steps[0].Return, 0.9},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s is %g; expected %g", c.name, c.got, c.want)
		}
	}
	cut := []Step{{Value: 0.5, Reward: 0}}
	Estimate(cut, 2, Settings{Gamma: 0.9, Lambda: 0.8})
	if want := 0.9*2 - 0.5; math.Abs(cut[0].Advantage-want) > 1e-12 {
		t.Errorf("an episode that was cut off has advantage %g; expected %g", cut[0].Advantage, want)
	}
}

func bandit() *feature.Input {
	in := &feature.Input{N: 3, Dense: make([]float32, 3*feature.Columns), Words: [][]uint32{{1}, {2}, {3}}, State: make([]float32, feature.StateColumns)}
	return in
}

func probability(n *net.Net, in *feature.Input, i int) float64 {
	var p net.Pass
	n.Forward(in, &p)
	return math.Exp(p.LogP[i])
}

// TestImproveMovesAsFarAsTheClip: a good choice becomes likelier, but no further than the clip allows to matter.
func TestImproveMovesAsFarAsTheClip(t *testing.T) {
	t.Parallel()
	n, in := net.New(1), bandit()
	l, adam := NewLearner(n), optimiser.NewAdam()
	s := Settings{Clip: 0.2, ValueWeight: 0.5}
	st := Step{In: in, Choice: 1, LogP: math.Log(1.0 / 3), Advantage: 1}
	for range 200 {
		l.Grad.Reset()
		l.Improve(&st, 0.7, s, 1)
		adam.Step(n, l.Grad, optimiser.Rates{Dense: 0.001, Words: 0.001}, 10)
	}
	// Adam's momentum may carry it a little beyond.
	if p := probability(n, in, 1); p < 0.39 || p > 0.45 {
		t.Errorf("probability %g; expected just above 1.2/3", p)
	}
}

// TestEntropyLevels: with nothing but the bonus, the policy goes back to uniform.
func TestEntropyLevels(t *testing.T) {
	t.Parallel()
	n, in := net.New(1), bandit()
	l, adam := NewLearner(n), optimiser.NewAdam()
	step := func(f func()) {
		l.Grad.Reset()
		f()
		adam.Step(n, l.Grad, optimiser.Rates{Dense: 0, Words: 0.02}, 10)
	}
	for range 100 {
		step(func() { l.Imitate(in, 2, 1) })
	}
	if p := probability(n, in, 2); p < 0.8 {
		t.Fatalf("imitation gave probability %g; expected above 0.8", p)
	}
	first, entropy := 0.0, 0.0
	for i := range 1000 {
		step(func() {
			entropy = l.Improve(&Step{In: in, Choice: 0, LogP: -1}, 0, Settings{Clip: 0.2, Entropy: 1}, 1)
		})
		if i == 0 {
			first = entropy
		}
	}
	if first > 0.8 || entropy < 0.99 {
		t.Errorf("entropy went from %g to %g; expected from below 0.8 to 1", first, entropy)
	}
	if p := probability(n, in, 2); math.Abs(p-1.0/3) > 0.02 {
		t.Errorf("probability %g after the entropy bonus alone; expected 1/3", p)
	}
}

// TestReliveNeedsGain: what went worse than expected is not imitated.
func TestReliveNeedsGain(t *testing.T) {
	t.Parallel()
	n, in := net.New(1), bandit()
	l := NewLearner(n)
	l.Relive(&Step{In: in, Choice: 1, Return: -1}, 0, 0.5, 1)
	for _, at := range l.Grad.Touched {
		if l.Grad.G[at] != 0 {
			t.Fatal("a bad step left a gradient")
		}
	}
	l.Relive(&Step{In: in, Choice: 1, Return: 1}, 0, 0.5, 1)
	if len(l.Grad.Touched) == 0 {
		t.Fatal("a good step left no gradient")
	}
}
