package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // to read the size of screenshots
	_ "image/png"
	"time"

	"github.com/pommelgym/pommel/internal/cdp"
)

// frame makes one frame without showing it: styles, layout, animation callbacks,
// observers. Only one tab may make a frame at a time, which the turn sees to.
func (p *page) frame(ctx context.Context) error {
	p.b.stats.Frames++
	_, err := p.await(ctx, p.s.Send("HeadlessExperimental.beginFrame", json.RawMessage(`{"noDisplayUpdates":true}`)))
	if refused(err) {
		return nil // the page is between two documents, or another frame is under way
	}
	return err
}

// fullFrame makes a frame that is also handed to the compositor, which scrolls by it.
func (p *page) fullFrame(ctx context.Context) error {
	p.b.stats.Frames++
	_, err := p.await(ctx, p.s.Send("HeadlessExperimental.beginFrame", nil))
	if refused(err) {
		return nil
	}
	return err
}

func refused(err error) bool {
	var r *cdp.Error
	return errors.As(err, &r)
}

// firstFrame makes the frame without which a new tab gets no input.
func (p *page) firstFrame(ctx context.Context) error {
	if p.firstDone {
		return nil
	}
	if err := p.frame(ctx); err != nil {
		return err
	}
	p.firstDone = true
	return nil
}

// Screenshot takes a picture ("png" or "jpeg") of a tab, in front or not. It is nil
// while a dialog is open or when the page has crashed: there is no picture then.
func (b *Browser) Screenshot(ctx context.Context, tab int, format string) (*Image, error) {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var p *page
	b.read(func() {
		if tab >= 0 && tab < len(b.tabs) {
			p = b.tabs[tab]
		}
	})
	if p == nil {
		return nil, nil
	}
	img, err := p.screenshot(ctx, format)
	if errors.Is(err, errDialog) || errors.Is(err, errCrashed) || errors.Is(err, errGone) {
		return nil, nil
	}
	return img, lost(err, "take screenshot")
}

func (p *page) screenshot(ctx context.Context, format string) (*Image, error) {
	if format != "jpeg" {
		format = "png"
	}
	p.b.stats.Screenshots++
	until, cancel := context.WithTimeout(ctx, p.b.cfg.NavigationCap)
	defer cancel()
	for {
		data, why := p.shoot(until, format)
		switch {
		case len(data) > 0:
			return p.image(format, data)
		case why != nil && !refused(why):
			return nil, why
		}
		// The first picture of a tab may come back empty: nothing was drawn before it. While
		// another frame is under way a picture is refused.
		pause := time.NewTimer(hop)
		select {
		case <-pause.C:
		case <-until.Done():
			pause.Stop()
			return nil, fmt.Errorf("the browser drew nothing: %w", errors.Join(why, context.Cause(until)))
		}
	}
}

// shoot makes a frame and takes its picture.
func (p *page) shoot(ctx context.Context, format string) ([]byte, error) {
	shot := json.RawMessage(fmt.Sprintf(`{"screenshot":{"format":%q,"optimizeForSpeed":true}}`, format))
	raw, err := p.await(ctx, p.s.Send("HeadlessExperimental.beginFrame", shot))
	if err != nil {
		return nil, err
	}
	var v struct {
		ScreenshotData []byte `json:"screenshotData"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("decode screenshot: %w", err)
	}
	return v.ScreenshotData, nil
}

func (p *page) image(format string, data []byte) (*Image, error) {
	size, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read screenshot: %w", err)
	}
	return &Image{
		Format: format, Width: size.Width, Height: size.Height,
		Scale: float64(size.Width) / float64(p.b.cfg.Width), Data: data,
	}, nil
}
