package browser

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/cdp"
)

// download is a file that a page has sent.
type download struct{ name string }

// onDownload notes downloads for the step's report. It runs on the reader.
func (b *Browser) onDownload(ev cdp.Event) {
	var v struct {
		GUID              string `json:"guid"`
		FrameID           string `json:"frameId"`
		SuggestedFilename string `json:"suggestedFilename"`
		State             string `json:"state"`
	}
	if json.Unmarshal(ev.Params, &v) != nil {
		return
	}
	b.update(func() {
		if ev.Method == "Browser.downloadWillBegin" {
			b.downloads++
			b.loads[v.GUID] = download{name: v.SuggestedFilename}
			for _, p := range b.tabs {
				delete(p.loading, v.FrameID) // what was to be a document is a file
			}
			return
		}
		d, known := b.loads[v.GUID]
		switch {
		case !known:
		case v.State == "completed":
			b.notes = append(b.notes, "downloaded "+action.Quote(d.name))
			delete(b.loads, v.GUID)
		case v.State == "canceled":
			b.notes = append(b.notes, "the download of "+action.Quote(d.name)+" was refused")
			delete(b.loads, v.GUID)
		}
	})
}

// downloadWait bounds the wait for a navigation that led nowhere to turn into a download.
const downloadWait = 300 * time.Millisecond

// downloads waits for files that the step has asked for. The browser tells of one a
// moment after it has told that the navigation has ended.
func (s *settler) downloads(ctx context.Context) error {
	var nowhere, begun bool
	s.b.read(func() {
		nowhere = s.p.departures > s.departures && s.p.commits == s.arrivals && !s.p.closed
		begun = s.b.downloads > s.downloadsBefore
	})
	if !nowhere && !begun {
		return nil
	}
	wait, cancel := context.WithTimeoutCause(ctx, downloadWait, errCapped)
	err := s.b.until(wait, "wait for a download", func() bool { return s.b.downloads > s.downloadsBefore })
	cancel()
	if errors.Is(err, errCapped) {
		return nil // it had no answer to show: 204, or a rule stopped it
	}
	if err != nil {
		return err
	}
	wait, cancel = context.WithDeadlineCause(ctx, s.began.Add(s.b.cfg.Cap), errCapped)
	defer cancel()
	err = s.b.until(wait, "wait for a download", func() bool { return len(s.b.loads) == 0 })
	if errors.Is(err, errCapped) {
		s.capped()
		return nil
	}
	return err
}
