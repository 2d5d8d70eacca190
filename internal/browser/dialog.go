package browser

import (
	"context"
	"errors"

	"github.com/pommelgym/pommel/internal/cdp"
)

// answerDialog answers the open dialog and takes up what it held back. Another dialog
// may be open at once: then the error is errDialog again.
func (p *page) answerDialog(ctx context.Context, accept bool, text string) error {
	params := map[string]any{"accept": accept}
	if text != "" {
		params["promptText"] = text
	}
	var opened int
	p.b.read(func() { opened = p.dialogs })
	err := p.s.Call(ctx, "Page.handleJavaScriptDialog", params, nil)
	if err != nil && !refused(err) {
		return err
	}
	err = p.b.until(ctx, "wait for the dialog to close", func() bool {
		return p.dialog == nil || p.dialogs > opened || p.closed || p.crashed
	})
	if err != nil {
		return err
	}
	return p.resume(ctx)
}

// resume waits for the commands that a dialog held back. What they answer no longer
// matters to anybody; that they are over does.
func (p *page) resume(ctx context.Context) error {
	parked := p.parked
	p.parked = nil
	for i, c := range parked {
		_, err := p.await(ctx, c)
		switch {
		case errors.Is(err, errDialog):
			p.parked = append(p.parked, parked[i+1:]...)
			return err
		case errors.Is(err, cdp.ErrClosed), ctx.Err() != nil, errors.Is(err, errCrashed), errors.Is(err, errGone):
			return err
		}
	}
	return nil
}
