package browser_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

// patient waits for half a minute of its own time, shows it by an animation, and asks a
// frame inside it for the time.
const patient = `<!doctype html><title>patient</title><style>@keyframes grow{from{width:10px}to{width:200px}}#bar{height:9px;animation:grow 2s forwards}</style>
<div id=bar></div><p id=o>waiting</p><p id=seen>unseen</p><button id=b>go</button><iframe srcdoc="<p id=p>frame</p><script>setTimeout(()=>p.textContent='frame '+Date.now(),20000)</script>"></iframe><script>
const zero=Date.now();bar.onanimationend=()=>document.title='grown';
new IntersectionObserver(e=>{if(e[0].isIntersecting)seen.textContent='seen'}).observe(b);
setTimeout(()=>{o.textContent='timer after '+(Date.now()-zero)+' and '+Math.round(performance.now())},30000);
</script>`

// Waiting takes the page's time and hardly any of ours, for timers, frames, animations
// and observers alike.
func TestWaitingIsForThePageOnly(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", patient)
	s.Go("/")
	before := s.See(browser.View{}).VirtualTimeMS
	start := time.Now()
	s.OK("noop(60000)")
	// The promise is far below a second; a minute would be a failure, whatever the machine does.
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("a minute of the page took %v", took)
	}
	o := s.See(browser.View{})
	if o.VirtualTimeMS-before < 60000 {
		t.Errorf("the page's time went from %v to %v", before, o.VirtualTimeMS)
	}
	for _, want := range []string{"timer after 30000 and 300", "seen", "frame 17415972"} {
		if !strings.Contains(o.Text, want) {
			t.Errorf("the page does not say %q:\n%s", want, o.Text)
		}
	}
	if o.Title != "grown" {
		t.Errorf("the animation has not ended: title %q", o.Title)
	}
}

// A request that is slow for real is waited for up to a bound, is named, and the step
// says that it did not wait longer.
func TestASlowRequestIsBoundedAndReported(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>t</title><button id=b onclick="fetch('/never')">go</button>`)
	s.Mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.Go("/")
	out := s.OK(`click(selector="#b")`)
	if !out.Settle.Capped || len(out.Settle.Running) == 0 || !strings.Contains(out.Settle.Running[0], "/never") {
		t.Errorf("settle = %+v", out.Settle)
	}
	// The next step does not wait for it again.
	if out := s.OK("noop(1000)"); out.Settle.Capped {
		t.Errorf("the step after it = %+v", out.Settle)
	}
}
