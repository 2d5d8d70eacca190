package rewind

import (
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// TestHelper: what two threads share is done once, and over when end has returned.
func TestHelper(t *testing.T) {
	h := startHelper()
	if h == nil {
		t.Skip("unsupported: there is one processor")
	}
	helped := 0
	for range 500 {
		var next, done, byHelper atomic.Int64
		work := func() {
			for next.Add(1) <= 100 {
				if uapi.Gettid() == h.tid {
					byHelper.Add(1)
				}
				done.Add(1)
			}
		}
		end := h.start(work)
		work()
		end()
		if done.Load() != 100 {
			t.Fatalf("%d of 100 pieces were done when both had ended", done.Load())
		}
		if byHelper.Load() > 0 {
			helped++
		}
	}
	t.Logf("the helper had a part in %d of 500", helped)
	var ran atomic.Bool
	h.start(func() { ran.Store(true) })
	waitFor(t, ran.Load) // what it alone is given
	h.dismiss()
	waitFor(t, func() bool {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(h.tid))
		return err != nil
	})
}

// TestCollectionsWhileOneWaits: who waits for the other thread by giving way must not keep the
// garbage collector, which has to stop everybody first, from beginning.
func TestCollectionsWhileOneWaits(t *testing.T) {
	h := startHelper()
	if h == nil {
		t.Skip("unsupported: there is one processor")
	}
	defer h.dismiss()
	limit := time.Now().Add(20 * time.Second)
	for i := range 50 {
		var began atomic.Bool
		end := h.start(func() {
			began.Store(true)
			runtime.GC()
		})
		for !began.Load() {
			uapi.Yield()
		}
		end()
		if time.Now().After(limit) {
			t.Fatalf("%d collections took 20 s", i+1)
		}
	}
}
