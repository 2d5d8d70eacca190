package train

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
)

// Outcome is the result of a training.
type Outcome struct {
	World        string      `json:"world"`
	Profile      string      `json:"profile"`
	Seed         int64       `json:"seed"`
	Demos        int         `json:"demos"`
	HintAfter    int         `json:"hint_after"`
	Prior        bool        `json:"prior"`
	Steps        int         `json:"steps"`
	Updates      int         `json:"updates"`
	Episodes     int         `json:"episodes"`
	Seconds      float64     `json:"seconds"`
	StepsPerS    float64     `json:"steps_per_s"`
	SuccessStart float64     `json:"success_start"`
	SuccessEnd   float64     `json:"success_end"`
	Start        *Evaluation `json:"evaluation_start,omitempty"`
	End          *Evaluation `json:"evaluation_end,omitempty"`
	Lost         int         `json:"infra_failures"`
	// Digest is a hash of the network: equal digests are equal policies.
	Digest string     `json:"digest"`
	ByTask []TaskLine `json:"by_task"`
	Curve  []Point    `json:"curve"`
}

// TaskLine is one task of a training.
type TaskLine struct {
	Task       string  `json:"task"`
	Difficulty string  `json:"difficulty"`
	Episodes   int     `json:"episodes"` // of training
	Success    int     `json:"success"`
	Recent     float64 `json:"recent"` // success of late
	Hints      int     `json:"hints"`  // episodes of the oracle that were imitated
	Start      float64 `json:"success_start"`
	End        float64 `json:"success_end"`
}

// Outcome tells how training went so far.
func (t *Trainer) Outcome() *Outcome {
	o := &Outcome{
		World: t.c.World, Profile: cmp.Or(t.c.Profile, "none"), Seed: t.c.Seed, Demos: t.c.Demos, HintAfter: t.c.HintAfter, Prior: t.c.Prior, Steps: t.steps, Updates: t.updates, Episodes: t.episodes,
		Seconds: t.elapsed().Seconds(), Start: t.before, End: t.after, Lost: t.lost, Curve: t.curve, Digest: t.digest(),
	}
	if o.Seconds > 0 {
		o.StepsPerS = float64(o.Steps) / o.Seconds
	}
	for i, task := range t.c.Tasks {
		l := TaskLine{Task: task.ID, Difficulty: task.Difficulty, Episodes: t.plan.State.Played[i], Success: t.plan.State.Won[i], Recent: t.plan.Recent(i), Hints: t.plan.State.Hints[i] + t.c.Demos}
		l.Start, l.End = t.before.of(i), t.after.of(i)
		o.ByTask = append(o.ByTask, l)
	}
	if t.before != nil {
		o.SuccessStart = t.before.Rate
	}
	if t.after != nil {
		o.SuccessEnd = t.after.Rate
	}
	return o
}

// of is the success rate of task i; 0 without an evaluation.
func (v *Evaluation) of(i int) float64 {
	if v == nil || v.Tasks[i].Episodes == 0 {
		return 0
	}
	return float64(v.Tasks[i].Success) / float64(v.Tasks[i].Episodes)
}

func (t *Trainer) digest() string {
	h := sha256.New()
	var b [8]byte
	for _, x := range t.net.P {
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
		_, _ = h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
