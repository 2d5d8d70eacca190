package perturb_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
	"github.com/pommelgym/pommel/internal/perturb"
	"github.com/pommelgym/pommel/internal/perturb/plan"
	"github.com/pommelgym/pommel/internal/perturb/profile"
)

const reachPage = `<!doctype html><title>reach</title><button id=b>measure</button><output id=o></output><iframe src=/inner></iframe><script>
const ws = new WebSocket('ws://' + location.host + '/echo'), ready = new Promise((r) => ws.onopen = r);
const took = async (f) => { const s = performance.now(); await f(); return Math.round(performance.now() - s); };
b.onclick = async () => { o.textContent = 'busy'; await ready; o.textContent = JSON.stringify({
  fetch: await took(() => fetch('/ping')), frame: await took(() => frames[0].fetch('/ping')),
  socket: await took(() => new Promise((r) => { ws.onmessage = r; ws.send('x'); }))}); };
</script>`

// TestReachOfLatency: what is held, in a page that was open before and in a new tab, and
// what is not: an open web socket (C32). No wall time is spent: what is held adds up to more
// than the test may take.
func TestReachOfLatency(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/reach", reachPage)
	s.Page("/inner", "<!doctype html><p>inner")
	s.Mux.HandleFunc("/ping", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pong") })
	s.Mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
	s.Go("/reach")
	if err := s.SetEpisode(browsertest.Context(t), 1, time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.Go("/reach")
	const delay = 40_000
	check := func(where string, held bool) {
		t.Helper()
		s.OK("click(selector='#b')")
		var got struct{ Fetch, Frame, Socket int }
		read := func() error { return json.Unmarshal([]byte(output(s.See(browser.View{}))), &got) }
		for tries := 0; read() != nil; tries++ {
			if tries == 20 {
				t.Fatalf("%s: no result:\n%s", where, s.See(browser.View{}).Text)
			}
			s.OK("wait(ms=10000)")
		}
		for what, ms := range map[string]int{"fetch": got.Fetch, "frame": got.Frame} {
			if held != (ms >= delay) || !held && ms > 100 {
				t.Errorf("%s: a request of %s took %d ms of virtual time", where, what, ms)
			}
		}
		// Its answer comes in real time, during which the page's clock may go on by a wait or two.
		if got.Socket >= delay {
			t.Errorf("%s: the web socket took %d ms", where, got.Socket)
		}
	}
	check("without friction", false)
	p, err := profile.Parse("p.yaml", fmt.Appendf(nil, "name: p\nrecovery: {steps: 500, tries: 100}\nrules:\n  - {kind: http.latency, probability: 1, limit: 100, targets: {urls: [/ping]}, with: {delay: %dms}}\n", delay), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := perturb.New(plan.Make(p, "task", 1))
	if err := s.SetFriction(browsertest.Context(t), d); err != nil {
		t.Fatal(err)
	}
	check("in the open page", true)
	s.OK("new_tab()")
	s.OK("goto(" + action.Quote(s.URL+"/reach") + ")")
	check("in a new tab", true)
	total := 0
	for _, e := range d.Take() {
		total += e.Numbers["delay"]
	}
	if total != 4*delay {
		t.Errorf("requests were held for %d ms in all", total)
	}
	if err := s.SetFriction(browsertest.Context(t), nil); err != nil {
		t.Fatal(err)
	}
	check("after it was taken away", false)
}

// output is the result that the page shows.
func output(o *browser.Observation) string {
	from, to := strings.Index(o.Text, "{"), strings.LastIndex(o.Text, "}")
	if from < 0 || to < from {
		return ""
	}
	return o.Text[from : to+1]
}
