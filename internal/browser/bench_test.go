package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

// listing is a page of about 500 elements: a form and a table of 40 rows.
func listing() string {
	var b strings.Builder
	b.WriteString(`<!doctype html><title>Orders</title><style>body{font:14px sans-serif}td{padding:4px 8px;border-bottom:1px solid #ddd}</style>
<h1>Orders</h1><form onsubmit="return false">`)
	for i := range 12 {
		fmt.Fprintf(&b, `<label>Field %d <input id=f%d name=f%d></label>`, i, i, i)
	}
	b.WriteString(`<button id=add type=button>Add</button></form><p id=status>idle</p><table><tbody id=rows>`)
	for i := range 40 {
		fmt.Fprintf(&b, `<tr><td>%d</td><td><a href="#o%d">Order %d</a></td><td>Customer %d</td><td>%d.00</td><td>open</td><td><button class=del>Delete</button></td></tr>`, i, i, i, i, i*3)
	}
	b.WriteString(`</tbody></table><script>let n=0;add.onclick=()=>{status.textContent='added '+(++n);document.getElementById('status').textContent='added '+n}</script>`)
	return b.String()
}

func BenchmarkStep(b *testing.B) {
	for name, text := range map[string]string{
		"click": `click(selector="#add")`,
		"fill":  `fill(selector="#f3", value="hello")`,
		"noop":  `noop(50)`,
	} {
		b.Run(name, func(b *testing.B) { benchStep(b, text) })
	}
}

func benchStep(b *testing.B, text string) {
	s := browsertest.NewSite(b)
	s.Page("/", listing())
	s.Go("/")
	calls, err := action.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	ctx := browsertest.Context(b)
	step := func() {
		out, err := s.Browser.Do(ctx, calls)
		if err != nil || out.Err != nil {
			b.Fatalf("%v %v", err, out.Err)
		}
		if _, err := s.Observe(ctx, browser.View{}); err != nil {
			b.Fatal(err)
		}
	}
	for range 100 {
		step()
	}
	var times []time.Duration
	for b.Loop() {
		t := time.Now()
		step()
		times = append(times, time.Since(t))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(times[0].Microseconds())/1000, "min-ms")
}
