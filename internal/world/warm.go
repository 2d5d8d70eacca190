package world

import (
	"context"
	"fmt"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
)

// warmPage has something for each kind of action. It comes from nowhere, so that the
// application never hears of the warm-up.
const warmPage = `data:text/html,<title>warm</title><h1>Warm</h1><form onsubmit="return false"><label>Name <input id=a></label>` +
	`<select id=b><option>one<option>two</select><label><input id=c type=checkbox>Yes</label><button id=d>Go</button></form>` +
	`<ul><li>first<li>second<li>third</ul><div style="height:3000px">tall</div>`

// warmActions are done on it.
const warmActions = `fill(selector="#a", value="warm")
select_option(selector="#b", options="two")
check(selector="#c")
click(selector="#d")
hover(selector="h1")
press(selector="#a", key_comb="Tab")
scroll(0, 400)`

// warmRounds is how often: what runs often is compiled, and what is compiled is saved.
const warmRounds = 4

// warmUp has the browser do what episodes make it do: what is slow only at the first time
// is then part of the snapshot. The start page comes after it, as in a world without.
func (w *World) warmUp(ctx context.Context) error {
	b := w.Browser()
	calls, err := action.Parse(warmActions)
	if err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for i := range warmRounds {
		if err := b.SetEpisode(ctx, 0, w.img.Spec.Clock); err != nil {
			return err
		}
		if err := b.Navigate(ctx, warmPage); err != nil {
			return err
		}
		out, err := b.Do(ctx, calls)
		if err != nil {
			return err
		}
		if out.Err != nil {
			return fmt.Errorf("warm up: %w", out.Err)
		}
		view := browser.View{Elements: true}
		if i == 0 {
			view.Screenshot = "png"
		}
		if _, err := b.Observe(ctx, view); err != nil {
			return err
		}
	}
	return b.ClearState(ctx)
}
