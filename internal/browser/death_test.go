package browser_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
	"github.com/pommelgym/pommel/internal/fault"
)

// A tab that dies in a step ends the step, at once and as a fault; the next episode works.
func TestDeadTab(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>alive</title><button id=b>b</button><button id=loop onclick="for(;;);">loop</button>`)
	s.Go("/")
	calls, err := action.Parse(`click(selector="#loop")`)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Browser.Do(browsertest.Context(t), calls)
		done <- err
	}()
	for _, pid := range s.Process.Renderers() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		if fault.KindOf(err) != fault.WorldLost {
			t.Fatalf("err %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the step did not end with the tab")
	}
	ctx := browsertest.Context(t)
	if err := s.ClearState(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.SetEpisode(ctx, 3, time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.Go("/")
	s.OK(`click(selector="#b"); noop(500)`)
	if o := s.See(browser.View{}); o.Title != "alive" || len(o.Tabs) != 1 {
		t.Fatalf("observation %+v", o)
	}
	before := value(t, s, "Date.now()")
	s.OK("noop(1000)")
	if d := value(t, s, "Date.now()-"+before); d != "1000" {
		t.Fatalf("the new page's clock went on by %s", d)
	}
}

func TestDeadBrowser(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>alive</title>`)
	s.Go("/")
	s.Process.Kill()
	if _, err := s.Observe(browsertest.Context(t), browser.View{}); fault.KindOf(err) != fault.WorldLost {
		t.Fatalf("err %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A caller that gives up gets its error at once, and the next call finds the page in order.
func TestCanceledStep(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<button id=loop onclick="const t=performance.now();for(let i=0;i<3e8;i++);">loop</button><button id=b onclick="log.value+='b '">b</button><output id=log></output>`)
	s.Go("/")
	calls, err := action.Parse(`click(selector="#loop")`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Browser.Do(ctx, calls); err != nil && fault.KindOf(err) != fault.Canceled {
		t.Fatalf("err %v", err)
	}
	s.OK(`click(selector="#b")`)
	wantLog(t, s, "b ")
}
