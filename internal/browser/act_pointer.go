package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pommelgym/pommel/internal/action"
)

// inView says whether a point can be pressed.
func (a *act) inView(x, y string) (point, error) {
	at := point{a.call.Number(x), a.call.Number(y)}
	if at.X < 0 || at.Y < 0 || at.X >= float64(a.b.cfg.Width) || at.Y >= float64(a.b.cfg.Height) {
		return at, fail(action.InvalidValue, "the point (%g, %g) lies outside of the viewport of %d x %d", at.X, at.Y, a.b.cfg.Width, a.b.cfg.Height)
	}
	return at, nil
}

// doMouse carries out mouse actions at points.
func (a *act) doMouse(ctx context.Context) error {
	at, err := a.inView("x", "y")
	if err != nil {
		return err
	}
	if err := a.p.evalAgent(ctx, "P.listen()", nil); err != nil {
		return err
	}
	button := a.call.Text("button")
	send := func() error {
		switch a.call.Name {
		case "mouse_click":
			return a.p.press(ctx, at, button, 1, 0)
		case "mouse_dblclick":
			return a.p.press(ctx, at, button, 2, 0)
		case "mouse_down":
			a.p.moveMouse(at, 0, 0)
			a.b.held = button
			return a.p.awaitInput(ctx, a.p.mouseEvent("mousePressed", at, button, buttonBits[button], 1, 0))
		case "mouse_up":
			a.p.moveMouse(at, buttonBits[a.b.held], 0)
			a.b.held = ""
			return a.p.awaitInput(ctx, a.p.mouseEvent("mouseReleased", at, button, 0, 1, 0))
		}
		return a.p.hover(ctx, at, buttonBits[a.b.held], 0)
	}
	a.began()
	if err := send(); err != nil {
		return err
	}
	if a.call.Name == "mouse_move" {
		a.s.frame = true
	}
	_, err = a.settle(ctx)
	return err
}

// dragSteps are how many moves a drag is made of: libraries start dragging only after
// the pointer has moved a few pixels.
const dragSteps = 5

// doDrag drags from one element or point to another. A page's own (HTML) drag is
// noticed by the browser and carried on as such.
func (a *act) doDrag(ctx context.Context) error {
	from, to, err := a.dragEnds(ctx)
	if err != nil {
		return err
	}
	if err := a.p.s.Call(ctx, "Input.setInterceptDrags", map[string]any{"enabled": true}, nil); err != nil {
		return err
	}
	defer a.p.s.Send("Input.setInterceptDrags", map[string]any{"enabled": false})
	a.b.read(func() { a.p.drag = nil })
	a.began()
	if err := a.p.hover(ctx, from, 0, 0); err != nil {
		return err
	}
	if err := a.p.awaitInput(ctx, a.p.mouseEvent("mousePressed", from, "left", 1, 1, 0)); err != nil {
		return err
	}
	for i := 1; i <= dragSteps; i++ {
		k := float64(i) / dragSteps
		at := point{from.X + (to.X-from.X)*k, from.Y + (to.Y-from.Y)*k}
		if err := a.dragTo(ctx, at); err != nil {
			return err
		}
	}
	if err := a.drop(ctx, to); err != nil {
		return err
	}
	a.s.frame = true
	_, err = a.settle(ctx)
	return err
}

// dragEnds finds both ends. Bringing the second into view may move the first, so the
// first is looked up again.
func (a *act) dragEnds(ctx context.Context) (from, to point, err error) {
	if a.call.Name == "mouse_drag_and_drop" {
		if from, err = a.inView("from_x", "from_y"); err == nil {
			to, err = a.inView("to_x", "to_y")
		}
		if err == nil {
			err = a.p.evalAgent(ctx, "P.listen()", nil)
		}
		return from, to, err
	}
	source, _ := a.call.Target("from_bid")
	dest, _ := a.call.Target("to_bid")
	for range 2 {
		f, err := a.ready(ctx, "P.press("+spec(dest)+",{})")
		if err != nil {
			return from, to, err
		}
		to = f.at()
		if f, err = a.ready(ctx, "P.press("+spec(source)+",{enabled:true})"); err != nil {
			return from, to, err
		}
		from = f.at()
		if !f.Scrolled {
			break
		}
	}
	return from, to, a.p.evalAgent(ctx, "P.arm(null)", nil)
}

func (a *act) dragged() (data json.RawMessage) {
	a.b.read(func() { data = a.p.drag })
	return data
}

func (a *act) dragTo(ctx context.Context, at point) error {
	if data := a.dragged(); data != nil {
		a.b.mouse = at
		if err := a.dragEvent(ctx, "dragEnter", at, data); err != nil {
			return err
		}
		return a.dragEvent(ctx, "dragOver", at, data)
	}
	return a.moveDragging(ctx, at)
}

// moveDragging moves with the button down. When the page starts a drag of its own the
// move is never answered.
func (a *act) moveDragging(ctx context.Context, at point) error {
	move := a.p.moveMouse(at, 1, 0)
	if move == nil {
		return nil
	}
	if err := a.p.frame(ctx); err != nil {
		return err
	}
	wait, cancel := context.WithTimeoutCause(ctx, time.Second, errCapped)
	defer cancel()
	return a.b.until(wait, "wait for the drag", func() bool {
		select {
		case <-move.Done():
			return true
		default:
			return a.p.drag != nil || a.p.trouble() != nil
		}
	})
}

func (a *act) dragEvent(ctx context.Context, kind string, at point, data json.RawMessage) error {
	_, err := a.p.await(ctx, a.p.s.Send("Input.dispatchDragEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "data": data}))
	if refused(err) {
		return nil
	}
	return err
}

func (a *act) drop(ctx context.Context, at point) error {
	if data := a.dragged(); data != nil {
		if err := a.dragEvent(ctx, "drop", at, data); err != nil {
			return err
		}
	}
	return a.p.awaitInput(ctx, a.p.mouseEvent("mouseReleased", at, "left", 0, 1, 0))
}

// doScroll turns the wheel over an element, a point, or the middle of the view, and
// says how far things moved.
func (a *act) doScroll(ctx context.Context) error {
	dx, dy := a.call.Number("delta_x"), a.call.Number("delta_y")
	target := "null"
	if t, ok := a.call.Target("bid"); ok {
		target = spec(t)
	}
	if a.call.Name == "scroll_at" {
		at, err := a.inView("x", "y")
		if err != nil {
			return err
		}
		target = fmt.Sprintf("{x:%g,y:%g}", at.X, at.Y)
	}
	f, err := a.ready(ctx, fmt.Sprintf("P.scrollAt(%s,%g,%g)", target, dx, dy))
	if err != nil {
		return err
	}
	a.began()
	if err := a.wheel(ctx, f.at(), dx, dy); err != nil {
		return err
	}
	a.s.frame = true
	if _, err := a.settle(ctx); err != nil {
		return err
	}
	var m struct {
		X, Y float64
		What string
		More bool
	}
	if err := a.eval(ctx, fmt.Sprintf("P.scrolled(%g,%g)", dx, dy), &m); err != nil {
		return err
	}
	switch {
	case m.X == 0 && m.Y == 0 && m.More:
		a.b.note("%s scrolled by (0, 0): the page kept it where it is", m.What)
	case m.X == 0 && m.Y == 0:
		a.b.note("%s scrolled by (0, 0): it is at its end", m.What)
	default:
		a.b.note("%s scrolled by (%g, %g)%s", m.What, m.X, m.Y, map[bool]string{false: "; it is at its end"}[m.More])
	}
	return nil
}

// wheel sends a real turn of the wheel. It is the compositor that scrolls, so it is told
// first where things are.
func (a *act) wheel(ctx context.Context, at point, dx, dy float64) error {
	a.p.moveMouse(at, 0, 0)
	if err := a.p.fullFrame(ctx); err != nil {
		return err
	}
	turn := a.p.s.Send("Input.dispatchMouseEvent", map[string]any{
		"type": "mouseWheel", "x": at.X, "y": at.Y, "deltaX": dx, "deltaY": dy,
	})
	wait, cancel := context.WithTimeoutCause(ctx, a.b.cfg.NavigationCap, errCapped)
	defer cancel()
	err := a.p.framesUntil(wait, turn, a.p.fullFrame)
	if errors.Is(err, errCapped) && ctx.Err() == nil {
		a.s.capped()
		return nil
	}
	return err
}

// doKeyboard sends keys to whatever has the focus.
func (a *act) doKeyboard(ctx context.Context) error {
	name := a.call.Text("key")
	var k key
	switch a.call.Name {
	case "keyboard_press":
		if _, _, err := parseCombo(name); err != nil {
			return fail(action.InvalidValue, "%v", err)
		}
	case "keyboard_down", "keyboard_up":
		var ok bool
		if k, ok = keyNamed(name); !ok {
			return fail(action.InvalidValue, "there is no key %s", action.Quote(name))
		}
	}
	if err := a.p.evalAgent(ctx, "P.listen()", nil); err != nil {
		return err
	}
	switch a.call.Name {
	case "keyboard_press":
		return a.keys(ctx, func() error { return a.p.pressKey(ctx, name) })
	case "keyboard_type":
		return a.keys(ctx, func() error { return a.p.typeText(ctx, a.call.Text("text")) })
	case "keyboard_insert_text":
		return a.keys(ctx, func() error { return a.p.insertText(ctx, a.call.Text("text")) })
	case "keyboard_down":
		if m, ok := modifierKeys[k.key]; ok {
			a.b.heldKeys |= m.bit
		}
		a.began()
		if err := a.p.awaitInput(ctx, a.p.keyEvent("keyDown", k, a.b.heldKeys)); err != nil {
			return err
		}
	case "keyboard_up":
		if m, ok := modifierKeys[k.key]; ok {
			a.b.heldKeys &^= m.bit
		}
		a.began()
		if err := a.p.awaitInput(ctx, a.p.keyEvent("keyUp", k, a.b.heldKeys)); err != nil {
			return err
		}
	}
	_, err := a.settle(ctx)
	return err
}
