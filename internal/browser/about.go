package browser

import (
	"context"

	"github.com/pommelgym/pommel/internal/action"
)

// About is an element as an observation names it.
type About struct {
	Role string `json:"role"`
	Name string `json:"name"`
	// Place is which of the elements with this role and name it is, from 0.
	Place int `json:"place"`
	// Index is which of the Of elements with this role it is.
	Index int    `json:"index"`
	Of    int    `json:"of"`
	Tag   string `json:"tag"`
}

// Describe tells about the element that an action would name; nil when there is none.
func (b *Browser) Describe(ctx context.Context, t action.Target) (*About, error) {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := b.tab(ctx)
	if err != nil {
		return nil, lost(err, "describe an element")
	}
	var out *About
	if err := p.evalAgent(ctx, "P.about("+spec(t)+")", &out); err != nil {
		return nil, lost(err, "describe an element")
	}
	return out, nil
}
