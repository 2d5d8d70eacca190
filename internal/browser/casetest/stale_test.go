package casetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
)

// staleRounds is how often the page below is changed and looked at.
const staleRounds = 300

// What is remembered of one look must never show in the next. The page is changed at
// random in every way that the walk depends on, and the browser, set to prove its
// observations, makes each one afresh as well and fails if it differs.
func TestObservationIsNeverStale(t *testing.T) {
	t.Parallel()
	for seed := range 2 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := open(t)
			w.load("/stale.html")
			w.raw("stale", fmt.Sprintf("begin(%d)", seed+1), nil)
			began := time.Now()
			for i := range staleRounds {
				var did string
				w.raw("stale", "change()", &did)
				if i%8 == 0 { // in tasks of their own, so that observers are told of each by itself
					for _, f := range []string{"takeOut()", "alter()", "putBack()"} {
						w.raw("stale", f, nil)
					}
				}
				if _, err := w.b.Observe(w.ctx(), browser.View{Elements: i%3 == 0}); err != nil {
					t.Fatalf("round %d, after %s: %.3000v", i, did, err)
				}
				if i%20 == 0 {
					w.do("noop(20)")
				}
			}
			t.Logf("%d rounds in %v", staleRounds, time.Since(began))
		})
	}
}
