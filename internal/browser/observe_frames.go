package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// foreignFrame is an iframe of another origin as the observer of the page around it
// reports it: it shows that there is a frame, and cannot look inside.
type foreignFrame struct {
	Bid string `json:"bid"`
	// Line is the line of the text that the frame's own text follows, Depth its indentation.
	Line  int `json:"line"`
	Depth int `json:"depth"`
	// Path leads to the frame from the window that reported it.
	Path []int      `json:"path"`
	X    float64    `json:"x"`
	Y    float64    `json:"y"`
	Clip [4]float64 `json:"clip"`
}

// maxForeign bounds the frames of other origins that are asked in one observation.
const maxForeign = 16

// errNoFrame: a frame has gone, or has no world of ours yet.
var errNoFrame = errors.New("the frame cannot be read")

// frameWorlds evaluates in frames that the main frame's world cannot enter.
type frameWorlds interface {
	agentWorld
	// evalFrame evaluates in the frame that path leads to from the main one.
	evalFrame(ctx context.Context, path []int, expr string, out any) error
}

// readFrames asks the frames of other origins in a page that has been read, and puts
// what they say in its place. A frame that goes away meanwhile stays empty.
func readFrames(ctx context.Context, w frameWorlds, v View, o *Observation, frames []foreignFrame, base []int) error {
	lines := strings.Split(o.Text, "\n")
	// From the last to the first, so that the numbers of earlier lines stay right.
	for i := len(frames) - 1; i >= 0; i-- {
		f := frames[i]
		at := f.Line + 1
		if len(base) == 0 {
			at++ // the line of the root
		}
		if i >= maxForeign || at > len(lines) {
			o.Truncated = true
			continue
		}
		path := append(append([]int{}, base...), f.Path...)
		inner, err := readFrame(ctx, w, v, f, path, max(textLimit(v)-len(o.Text), 2000))
		if errors.Is(err, errNoFrame) {
			continue
		}
		if err != nil {
			return err
		}
		insertFrame(o, &lines, at, f.Bid, inner)
	}
	o.Text = strings.Join(lines, "\n")
	return nil
}

func insertFrame(o *Observation, lines *[]string, at int, bid string, inner *Observation) {
	if inner.Text != "" {
		rest := append([]string{}, (*lines)[at:]...)
		*lines = append(append((*lines)[:at], strings.Split(inner.Text, "\n")...), rest...)
	}
	o.Truncated = o.Truncated || inner.Truncated
	if o.FocusedBid == bid && inner.FocusedBid != "" {
		o.FocusedBid = inner.FocusedBid
	}
	for i := range o.Elements {
		if o.Elements[i].Bid == bid {
			rest := append([]Element{}, o.Elements[i+1:]...)
			o.Elements = append(append(o.Elements[:i+1], inner.Elements...), rest...)
			return
		}
	}
}

func readFrame(ctx context.Context, w frameWorlds, v View, f foreignFrame, path []int, limit int) (*Observation, error) {
	opts, err := json.Marshal(map[string]any{
		"max": limit, "elements": v.Elements, "proof": v.proof, "prefix": f.Bid, "depth": f.Depth, "x": f.X, "y": f.Y, "clip": f.Clip,
	})
	if err != nil {
		return nil, fmt.Errorf("observe frame %s: %w", f.Bid, err)
	}
	var raw string
	if err := w.evalFrame(ctx, path, "P.observe("+string(opts)+")", &raw); err != nil {
		return nil, fmt.Errorf("observe frame %s: %w", f.Bid, err)
	}
	var inner Observation
	frames, err := decodePage(raw, nil, &inner)
	if err != nil {
		return nil, fmt.Errorf("observe frame %s: %w", f.Bid, err)
	}
	v.MaxText = limit
	if len(frames) > 0 && len(path) < 16 {
		if err := readFrames(ctx, w, v, &inner, frames, path); err != nil {
			return nil, err
		}
	}
	return &inner, nil
}

// evalFrame evaluates in the agent's world of a frame below the main one. The part of
// the agent that is in every frame cannot read a page; the rest is put there when it is
// first needed.
func (p *page) evalFrame(ctx context.Context, path []int, expr string, out any) error {
	id, err := p.frameContext(ctx, path)
	if err != nil {
		return err
	}
	eval := func(expr string, out any) error {
		raw, err := p.await(ctx, p.s.Send("Runtime.evaluate", evalParams(id, expr)))
		if contextGone(err) {
			return errNoFrame
		}
		if err != nil {
			return err
		}
		return decodeEval(raw, out)
	}
	var there bool
	if err := eval("!!P.observe", &there); err != nil {
		return err
	}
	if !there {
		if err := eval("{"+source().rest+"}", nil); err != nil {
			return err
		}
	}
	return eval(expr, out)
}

// frameContext finds our world in the frame that path leads to.
func (p *page) frameContext(ctx context.Context, path []int) (int64, error) {
	raw, err := p.await(ctx, p.s.Send("Page.getFrameTree", nil))
	if err != nil {
		return 0, err
	}
	var v struct {
		FrameTree frameTree `json:"frameTree"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return 0, fmt.Errorf("read frame tree: %w", err)
	}
	f := v.FrameTree
	for _, i := range path {
		if i >= len(f.Children) {
			return 0, errNoFrame
		}
		f = f.Children[i]
	}
	var id int64
	p.b.read(func() {
		for n, c := range p.contexts {
			if c.frame == f.Frame.ID {
				id = max(id, n)
			}
		}
	})
	if id == 0 {
		return 0, errNoFrame
	}
	return id, nil
}
