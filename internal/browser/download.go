package browser

import (
	"encoding/json"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/cdp"
)

// download is a file that a page has sent.
type download struct{ name string }

// onDownload notes downloads for the step's report. It runs on the reader.
func (b *Browser) onDownload(ev cdp.Event) {
	var v struct {
		GUID              string `json:"guid"`
		SuggestedFilename string `json:"suggestedFilename"`
		State             string `json:"state"`
	}
	if json.Unmarshal(ev.Params, &v) != nil {
		return
	}
	b.update(func() {
		if ev.Method == "Browser.downloadWillBegin" {
			b.loads[v.GUID] = download{name: v.SuggestedFilename}
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
