package feature

import (
	"github.com/pommelgym/pommel/internal/learn/candidate"
	"github.com/pommelgym/pommel/internal/learn/instruction"
)

// Where the groups of columns begin.
const (
	atRoles     = int(candidate.NumOps)
	atPlaces    = atRoles + 9
	atCondition = atPlaces + 9
	atOverlap   = atCondition + 9
	atKinds     = atOverlap + 12
	atSlot      = atKinds + int(instruction.NumKinds)
	atHistory   = atSlot + 13
	atForm      = atHistory + 6
	atOrder     = atForm + 4
	atAsked     = atOrder + 6
)

// sharpness says how much the prior is trusted.
const sharpness = 1.4

// Prior are first weights of the dense columns: common sense of anybody who has used a web
// page, so that early tries are not blind. It names no word, no page and no task: what the
// instruction mentions is worth a look; what was tried is not; a value is typed once; behind
// the last filled field stands the button that sends the form.
func Prior() []float64 {
	w := make([]float64, Columns)
	for at, x := range map[int]float64{
		int(candidate.Back): -2.5, int(candidate.Wait): -2, int(candidate.Reload): -2, int(candidate.Answer): -0.5,
		int(candidate.Fill): 0.3, int(candidate.Search): 0.7, int(candidate.Select): 0.3,
		atPlaces + 4:    -1,                      // the footer
		atCondition:     -1.5,                    // checked already
		atCondition + 1: -1,                      // a link to this page
		atCondition + 8: -1.5,                    // the field holds a value of the instruction already
		atOverlap + 2:   1.5, atOverlap + 3: 0.7, // the name is, or holds, what is asked for
		atOverlap + 5: 1, atOverlap + 6: -1.2, // the row or card that speaks of it, and those that do not
		atOverlap + 7: 1.5, atOverlap + 8: 0.5, // words in common
		atSlot: 0.5, atSlot + 1: 1, atSlot + 2: 0.7, atSlot + 3: 1, // the value fits the field's label
		atSlot + 4: -1.5, atSlot + 6: -0.7, atSlot + 7: -1, // used, a part of another, a field that was filled
		atSlot + 8: 1.5, atSlot + 9: 1,
		atHistory: -1, atHistory + 1: -1.5, atHistory + 2: -0.5, atHistory + 4: 0.7, atHistory + 5: 0.7,
		atForm: 1.2, atForm + 1: -0.3, atForm + 3: 0.7,
		atOrder + 1: 1.5, atOrder + 2: 1,
	} {
		w[at] = sharpness * x
	}
	return w
}
