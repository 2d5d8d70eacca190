// Package ppo holds the losses that the policy learns from, as gradients by its scores.
package ppo

import (
	"math"

	"github.com/pommelgym/pommel/internal/learn/feature"
	"github.com/pommelgym/pommel/internal/learn/net"
)

// Step is one decision of an episode and what came of it.
type Step struct {
	In     *feature.Input
	Choice int
	// LogP and Value are what the policy said when it chose.
	LogP, Value float64
	Reward      float64
	// Advantage and Return are computed when the episode is over.
	Advantage, Return float64
}

// Settings weigh the parts of the loss.
type Settings struct {
	Gamma, Lambda float64
	Clip          float64
	Entropy       float64
	ValueWeight   float64
}

// Estimate fills in the advantages and returns of one episode: generalised advantage
// estimation, Schulman et al., "High-Dimensional Continuous Control Using Generalized
// Advantage Estimation", 2016, arXiv:1506.02438, eq. 11, 12 and 16. last is the value of the state
// behind the last step: 0 where the episode ended, the network's where a limit cut it off.
// Return is the discounted sum of rewards as it happened, which self-imitation needs.
func Estimate(steps []Step, last float64, s Settings) {
	advantage, value, sum := 0.0, last, last
	for i := len(steps) - 1; i >= 0; i-- {
		st := &steps[i]
		delta := st.Reward + s.Gamma*value - st.Value
		advantage = delta + s.Gamma*s.Lambda*advantage
		sum = st.Reward + s.Gamma*sum
		st.Advantage, st.Return = advantage, sum
		value = st.Value
	}
}

// least is the smallest deviation that advantages are divided by: before the first success
// all that differs is small change, which must not be blown up to a signal.
const least = 0.2

// Normalise gives the advantages of a batch mean 0 and deviation 1, or less if they hardly differ.
func Normalise(steps []Step) {
	if len(steps) < 2 {
		return
	}
	mean, dev := 0.0, 0.0
	for i := range steps {
		mean += steps[i].Advantage
	}
	mean /= float64(len(steps))
	for i := range steps {
		d := steps[i].Advantage - mean
		dev += d * d
	}
	dev = max(least, math.Sqrt(dev/float64(len(steps))))
	for i := range steps {
		steps[i].Advantage = (steps[i].Advantage - mean) / dev
	}
}

// Learner adds up gradients; it is for one caller at a time.
type Learner struct {
	Net    *net.Net
	Grad   *net.Grad
	pass   net.Pass
	dScore []float64
}

// NewLearner makes one for a network.
func NewLearner(n *net.Net) *Learner { return &Learner{Net: n, Grad: net.NewGrad()} }

func (l *Learner) forward(in *feature.Input) {
	l.Net.Forward(in, &l.pass)
	if cap(l.dScore) < in.N {
		l.dScore = make([]float64, 2*in.N)
	}
	l.dScore = l.dScore[:in.N]
	clear(l.dScore)
}

// logPGrad adds d(weight · log π(choice)) by the scores: weight · (1[i = choice] - π_i).
func (l *Learner) logPGrad(choice int, weight float64) {
	for i, lp := range l.pass.LogP {
		l.dScore[i] -= weight * math.Exp(lp)
	}
	l.dScore[choice] += weight
}

// Improve adds the gradient of the clipped surrogate loss for one step: Schulman et al.,
// "Proximal Policy Optimization Algorithms", 2017, arXiv:1707.06347, eq. 7 and 9, with the
// squared error of the value against advantage + old value and an entropy bonus. It returns
// how undecided the policy is, from 0 to 1.
func (l *Learner) Improve(st *Step, target float64, s Settings, weight float64) (entropy float64) {
	l.forward(st.In)
	ratio := math.Exp(l.pass.LogP[st.Choice] - st.LogP)
	clipped := st.Advantage >= 0 && ratio > 1+s.Clip || st.Advantage < 0 && ratio < 1-s.Clip
	if !clipped {
		// d ratio = ratio · d log π
		l.logPGrad(st.Choice, -weight*st.Advantage*ratio)
	}
	entropy = l.entropyGrad(weight * s.Entropy)
	l.Net.Backward(st.In, &l.pass, l.dScore, weight*s.ValueWeight*(l.pass.Value-target), l.Grad)
	return entropy
}

// entropyGrad adds the gradient of -weight · H(π): dH/ds_i = -π_i (log π_i + H).
// Spread is measured against its largest value, log of the number of candidates, so that pages
// with many candidates do not outweigh the others. It returns H by that measure.
func (l *Learner) entropyGrad(weight float64) float64 {
	n := len(l.pass.LogP)
	if n < 2 {
		return 0
	}
	h := 0.0
	for _, lp := range l.pass.LogP {
		h -= math.Exp(lp) * lp
	}
	most := math.Log(float64(n))
	for i, lp := range l.pass.LogP {
		l.dScore[i] += weight / most * math.Exp(lp) * (lp + h)
	}
	return h / most
}

// Imitate adds the gradient of -weight · log π(choice).
func (l *Learner) Imitate(in *feature.Input, choice int, weight float64) {
	l.forward(in)
	l.logPGrad(choice, -weight)
	l.Net.Backward(in, &l.pass, l.dScore, 0, l.Grad)
}

// Relive adds the gradient of self-imitation for one step of a good episode: Oh et al.,
// "Self-Imitation Learning", 2018, arXiv:1806.05332, eq. 2 and 3: what went better than
// expected is imitated. share keeps part of the weight where the value has caught up, because
// the value is learnt faster than the way to it.
func (l *Learner) Relive(st *Step, share, valueWeight, weight float64) {
	l.forward(st.In)
	gain := max(st.Return-l.pass.Value, 0)
	l.logPGrad(st.Choice, -weight*max(gain, share*st.Return))
	l.Net.Backward(st.In, &l.pass, l.dScore, -weight*valueWeight*gain, l.Grad)
}
