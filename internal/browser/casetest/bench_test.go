package casetest

import (
	"testing"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

// BenchmarkObserve reads a page of 650 elements: a form, a table of 30 rows and 24 cards.
func BenchmarkObserve(b *testing.B) {
	for name, v := range map[string]browser.View{"text": {}, "elements": {Elements: true}, "html": {HTML: true}, "axtree": {AXTree: true}} {
		b.Run(name, func(b *testing.B) {
			s := newSite(b)
			p := browsertest.Launch(b, s.URL)
			br, err := browser.Open(b.Context(), p.Conn, browser.Config{Allow: []string{s.URL}})
			if err != nil {
				b.Fatal(err)
			}
			defer br.Close()
			if err := br.Navigate(b.Context(), s.URL+"/listing.html"); err != nil {
				b.Fatal(err)
			}
			for range 100 { // the engine compiles what it sees often
				if _, err := br.Observe(b.Context(), browser.View{}); err != nil {
					b.Fatal(err)
				}
			}
			var bytes int
			for b.Loop() {
				o, err := br.Observe(b.Context(), v)
				if err != nil {
					b.Fatal(err)
				}
				bytes = len(o.Text) + len(o.HTML) + len(o.AXTree)
			}
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}
