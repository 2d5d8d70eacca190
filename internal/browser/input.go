package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pommelgym/pommel/internal/cdp"
)

type point struct{ X, Y float64 }

// button bits as the protocol counts them.
var buttonBits = map[string]int{"left": 1, "right": 2, "middle": 4}

// mouse sends one mouse event. It is written by hand: it is sent thrice in every click.
func (p *page) mouseEvent(kind string, at point, button string, buttons, clicks, modifiers int) *cdp.Pending {
	b := make([]byte, 0, 192)
	b = append(b, `{"type":"`...)
	b = append(b, kind...)
	b = append(b, `","x":`...)
	b = strconv.AppendFloat(b, at.X, 'f', -1, 64)
	b = append(b, `,"y":`...)
	b = strconv.AppendFloat(b, at.Y, 'f', -1, 64)
	b = append(b, `,"button":"`...)
	b = append(b, button...)
	b = append(b, `","buttons":`...)
	b = strconv.AppendInt(b, int64(buttons), 10)
	b = append(b, `,"clickCount":`...)
	b = strconv.AppendInt(b, int64(clicks), 10)
	b = append(b, `,"modifiers":`...)
	b = strconv.AppendInt(b, int64(modifiers), 10)
	b = append(b, '}')
	return p.s.Send("Input.dispatchMouseEvent", json.RawMessage(b))
}

// moveMouse lets the page see the pointer come. A move is only answered in a frame, but
// it is delivered before whatever is pressed next.
func (p *page) moveMouse(at point, buttons, modifiers int) *cdp.Pending {
	if p.b.mouse == at {
		return nil
	}
	p.b.mouse = at
	button := "none"
	if buttons != 0 {
		button = "left"
	}
	return p.mouseEvent("mouseMoved", at, button, buttons, 0, modifiers)
}

// press clicks at a point: all events are sent at once and answered when the page has
// handled them.
func (p *page) press(ctx context.Context, at point, button string, clicks, modifiers int) error {
	return p.awaitInput(ctx, p.sendPress(at, button, clicks, modifiers)...)
}

func (p *page) sendPress(at point, button string, clicks, modifiers int) []*cdp.Pending {
	p.moveMouse(at, 0, modifiers)
	var calls []*cdp.Pending
	for n := 1; n <= clicks; n++ {
		calls = append(calls,
			p.mouseEvent("mousePressed", at, button, buttonBits[button], n, modifiers),
			p.mouseEvent("mouseReleased", at, button, 0, n, modifiers))
	}
	return calls
}

// awaitInput waits for input to be handled. A tab that closes because of it is no error.
func (p *page) awaitInput(ctx context.Context, calls ...*cdp.Pending) error {
	_, err := p.await(ctx, calls...)
	if refused(err) || errors.Is(err, errGone) {
		return nil
	}
	return err
}

// hover moves the pointer and makes the frame in which the page hears of it.
func (p *page) hover(ctx context.Context, at point, buttons, modifiers int) error {
	move := p.moveMouse(at, buttons, modifiers)
	if move == nil {
		return nil
	}
	return p.framesUntil(ctx, move, p.frame)
}

// framesUntil makes frames until input that is only answered in one has been handled. A
// frame and the input take different ways to the page: a frame that came first answers
// nothing, and the input waits for the next one.
func (p *page) framesUntil(ctx context.Context, input *cdp.Pending, frame func(context.Context) error) error {
	for {
		if err := frame(ctx); err != nil {
			return err
		}
		timer := time.NewTimer(moveWait)
		select {
		case <-input.Done():
		case <-ctx.Done():
		case <-timer.C:
			continue
		}
		timer.Stop()
		return p.awaitInput(ctx, input)
	}
}

// moveWait is how long, in real time, a frame gets to bring such input to the page.
const moveWait = 50 * time.Millisecond

// insertText types text in one go, as an input method does.
func (p *page) insertText(ctx context.Context, text string) error {
	b := appendString([]byte(`{"text":`), text)
	return p.awaitInput(ctx, p.s.Send("Input.insertText", json.RawMessage(append(b, '}'))))
}

// keyEvent sends one key going down or up.
func (p *page) keyEvent(kind string, k key, modifiers int) *cdp.Pending {
	v := map[string]any{
		"type": kind, "key": k.key, "code": k.code, "windowsVirtualKeyCode": k.vk,
		"nativeVirtualKeyCode": k.vk, "modifiers": modifiers, "location": k.location,
	}
	// Text makes the key type something; with Control or Alt it is a shortcut.
	if kind == "keyDown" {
		if k.text != "" && modifiers&^shift == 0 {
			v["text"] = k.text
		} else {
			v["type"] = "rawKeyDown"
		}
	}
	return p.s.Send("Input.dispatchKeyEvent", v)
}

// pressKey presses and releases a combination such as Control+Shift+a.
func (p *page) pressKey(ctx context.Context, combo string) error {
	mods, k, err := parseCombo(combo)
	if err != nil {
		return err
	}
	var calls []*cdp.Pending
	held := 0
	for _, m := range mods {
		held |= m.bit
		calls = append(calls, p.keyEvent("keyDown", m.key, held))
	}
	calls = append(calls, p.keyEvent("keyDown", k, held), p.keyEvent("keyUp", k, held))
	for i := len(mods) - 1; i >= 0; i-- {
		held &^= mods[i].bit
		calls = append(calls, p.keyEvent("keyUp", mods[i].key, held))
	}
	return p.awaitInput(ctx, calls...)
}

// typeText types character by character, with the keys of a US keyboard where it has
// them.
func (p *page) typeText(ctx context.Context, text string) error {
	var calls []*cdp.Pending
	for _, r := range text {
		k, known := keyForRune(r)
		if !known {
			calls = append(calls, p.s.Send("Input.insertText", map[string]string{"text": string(r)}))
			continue
		}
		mod := 0
		if k.shifted {
			mod = shift
		}
		calls = append(calls, p.keyEvent("keyDown", k, mod), p.keyEvent("keyUp", k, mod))
	}
	if err := p.awaitInput(ctx, calls...); err != nil {
		return fmt.Errorf("type: %w", err)
	}
	return nil
}
