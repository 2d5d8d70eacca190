package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

// slow answers after a while of real time.
func slow(s *browsertest.Site) {
	s.Mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		d, _ := time.ParseDuration(r.FormValue("t"))
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "served")
	})
}

// A step ends when its consequences have: whatever the page does to bring them about.
func TestStepWaitsForConsequences(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	slow(s)
	for name, handler := range map[string]string{
		"at once":        `done()`,
		"microtask":      `Promise.resolve().then(done)`,
		"message":        `const c=new MessageChannel;c.port1.onmessage=done;c.port2.postMessage(0)`,
		"timer":          `setTimeout(done,900)`,
		"timers":         `setTimeout(()=>setTimeout(()=>setTimeout(done,200),200),200)`,
		"fetch":          `fetch('/slow?t=80ms').then(r=>r.text()).then(done)`,
		"fetch chain":    `fetch('/slow?t=20ms').then(()=>fetch('/slow?t=20ms')).then(()=>new Promise(r=>setTimeout(r,100))).then(()=>fetch('/slow?t=20ms')).then(done)`,
		"xhr":            `const x=new XMLHttpRequest;x.open('GET','/slow?t=60ms');x.onload=done;x.send()`,
		"timer to fetch": `setTimeout(()=>fetch('/slow?t=40ms').then(r=>r.text()).then(()=>setTimeout(done,50)),50)`,
		"image":          `const i=new Image;i.onerror=done;i.src='/slow?t=60ms'`,
		"script":         `const e=document.createElement('script');e.onerror=e.onload=done;e.src='/slow?t=60ms';document.body.append(e)`,
		"iframe":         `const e=document.createElement('iframe');e.onload=done;e.src='/slow?t=60ms';document.body.append(e)`,
		"frame":          `requestAnimationFrame(()=>requestAnimationFrame(done))`,
		"animation":      `const t0=performance.now();(function f(){performance.now()-t0>400?done():requestAnimationFrame(f)})()`,
		"visible":        `new IntersectionObserver((e,o)=>{o.disconnect();done()}).observe(document.body)`,
		"resize":         `new ResizeObserver((e,o)=>{o.disconnect();done()}).observe(document.body)`,
		"transition":     `box.addEventListener('transitionend',done);box.style.width='200px'`,
		"css animation":  `box.addEventListener('animationend',done);box.style.animation='grow .4s'`,
		"idle":           `requestIdleCallback(done)`,
		"frame's fetch":  `frame.contentWindow.fetch('/slow?t=60ms').then(r=>r.text()).then(done)`,
		"frame's timer":  `frame.contentWindow.setTimeout(done,600)`,
		"beacon":         `navigator.sendBeacon('/slow');done()`,
		"digest":         `crypto.subtle.digest('SHA-256',new Uint8Array(1e6)).then(done)`,
		"blob":           `new Blob(['x'.repeat(1e6)]).text().then(done)`,
		"file reader":    `const r=new FileReader;r.onload=done;r.readAsDataURL(new Blob(['x'.repeat(1e6)]))`,
		"database":       `const q=indexedDB.open('d');q.onupgradeneeded=()=>q.result.createObjectStore('s');q.onsuccess=()=>{const t=q.result.transaction('s','readwrite');t.objectStore('s').put(1,2);t.oncomplete=done}`,
		"cache":          `caches.open('c').then(c=>c.put('/x',new Response('y')).then(()=>c.match('/x'))).then(r=>r.text()).then(done)`,
		"picture":        `createImageBitmap(new ImageData(300,300)).then(done)`,
		"stream reader":  `fetch('/slow?t=20ms').then(async r=>{const d=r.body.getReader();for(let x;!(x=await d.read()).done;);done()})`,
	} {
		t.Run(name, func(t *testing.T) {
			s.Page("/"+strings.ReplaceAll(name, " ", "-"), `<style>@keyframes grow{to{height:90px}}#box{width:20px;height:20px;background:red;transition:width .3s}</style><div id=box></div><iframe id=frame></iframe><button id=b>b</button><output id=log></output><script>const done=()=>{log.value='done'};b.onclick=()=>{`+handler+`}</script>`)
			s.Go("/" + strings.ReplaceAll(name, " ", "-"))
			out := s.OK(`click(selector="#b")`)
			if got := value(t, s, "log.value"); got != "done" {
				t.Errorf("the page is %q after %+v", got, out.Settle)
			}
			if out.Settle.Capped {
				t.Errorf("the step ran into its bound: %+v", out.Settle)
			}
		})
	}
}

// What never ends must not hold a step, and is named.
func TestStreamsDoNotHoldAStep(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	slow(s)
	s.Mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: 1\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s.Page("/", `<button id=b>b</button><output id=log></output><script>
new EventSource('/sse');(function lp(){fetch('/slow?t=25s').then(lp,()=>setTimeout(lp,100))})();setInterval(()=>fetch('/slow'),300);
b.onclick=async()=>{log.value='saving';await fetch('/slow?t=300ms',{method:'POST'});setTimeout(()=>{log.value='saved'},50)}</script>`)
	s.Go("/")
	out := s.OK(`click(selector="#b")`)
	wantLog(t, s, "saved")
	if out.Settle.Capped || !strings.Contains(strings.Join(out.Settle.Running, " "), "/sse") {
		t.Errorf("settle %+v", out.Settle)
	}
	if out.Settle.Wall > 5*time.Second {
		t.Errorf("the step took %v", out.Settle.Wall)
	}
}

// A request that is not answered is given up at the cap, once: the next step knows it.
func TestRequestsAreGivenUpAtTheCap(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t, func(c *browser.Config) { c.Cap = 300 * time.Millisecond })
	slow(s)
	s.Page("/", `<button id=b onclick="fetch('/slow?t=1h')">b</button><button id=c onclick="log.value+='c '">c</button><output id=log></output>`)
	s.Go("/")
	out := s.OK(`click(selector="#b")`)
	if !out.Settle.Capped || !strings.Contains(strings.Join(out.Settle.Running, " "), "/slow") {
		t.Errorf("settle %+v", out.Settle)
	}
	out = s.OK(`click(selector="#c")`)
	if out.Settle.Capped {
		t.Errorf("the second step waited again: %+v", out.Settle)
	}
	wantLog(t, s, "c ")
}

// Time goes on only in steps, and no faster for a page that ticks.
func TestTimeStandsStillBetweenSteps(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<output id=log></output><script>let n=0;setInterval(()=>{log.value=++n},10)</script>`)
	s.Go("/")
	before := value(t, s, "n+' '+Date.now()")
	select {
	case <-time.After(200 * time.Millisecond): // there is no event for nothing happening
	case <-t.Context().Done():
	}
	if after := value(t, s, "n+' '+Date.now()"); after != before {
		t.Fatalf("the page went from %s to %s by itself", before, after)
	}
	a := value(t, s, "Date.now()")
	s.OK("noop(1000)")
	if d := value(t, s, "Date.now()-"+a); d != "1000" {
		t.Fatalf("noop(1000) took %s ms of the page's time", d)
	}
	if o := s.See(browser.View{}); o.VirtualTimeMS < 1000 {
		t.Fatalf("virtual time is %g", o.VirtualTimeMS)
	}
}

func TestEndlessLoopIsEnded(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t, func(c *browser.Config) { c.Watchdog = 2 * time.Second })
	s.Page("/", `<button id=b onclick="for(;;);">b</button><button id=c onclick="log.value+='c '">c</button><button id=d onclick="setTimeout(()=>{for(;;);},20)">d</button><output id=log></output>`)
	s.Go("/")
	for _, sel := range []string{"#b", "#d"} {
		out := s.OK(fmt.Sprintf("click(selector=%q)", sel))
		if len(out.Notes) == 0 || !strings.Contains(out.Notes[0], "was ended") {
			t.Errorf("%s: notes %q", sel, out.Notes)
		}
	}
	s.OK(`click(selector="#c")`)
	wantLog(t, s, "c ")
}
