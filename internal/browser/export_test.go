package browser

import "context"

// EvalPage evaluates in the page's own world: tests read there what truly happened.
func (b *Browser) EvalPage(ctx context.Context, expr string, out any) error {
	p, err := b.tab(ctx)
	if err != nil {
		return err
	}
	raw, err := p.s.Send("Runtime.evaluate", map[string]any{"expression": expr, "returnByValue": true, "awaitPromise": true}).Wait(ctx)
	if err != nil {
		return err
	}
	return decodeEval(raw, out)
}

// EvalAgent evaluates in the world of the injected agent.
func (b *Browser) EvalAgent(ctx context.Context, expr string, out any) error {
	p, err := b.tab(ctx)
	if err != nil {
		return err
	}
	return p.evalAgent(ctx, expr, out)
}
