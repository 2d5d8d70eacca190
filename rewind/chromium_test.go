package rewind

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// chromium is a browser that is spoken to over its debugging pipe.
type chromium struct {
	t    *testing.T
	cmd  *exec.Cmd
	w, r *os.File
	id   int
	buf  []byte
	sid  string
	seen []message
	dir  string
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    any             `json:"params,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
}

const leanFlags = `--no-sandbox --no-zygote --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --window-size=1280,720 --hide-scrollbars --mute-audio --disable-extensions --disable-default-apps --disable-breakpad --disable-background-timer-throttling --disable-backgrounding-occluded-windows --disable-renderer-backgrounding --force-color-profile=srgb --disable-hang-monitor --disable-ipc-flooding-protection --disable-checker-imaging --disable-features=DeferRendererTasksAfterInput,Translate,PaintHolding,BackForwardCache,SpareRendererForSitePerProcess,ProcessPerSiteUpToMainFrameThreshold,RenderDocument,V8CodeCache,OptimizationHints,MediaRouter,IsolateOrigins,site-per-process --enable-features=NetworkServiceInProcess2 --in-process-gpu --disable-site-isolation-trials --num-raster-threads=1 --renderer-process-limit=1 --process-per-site --remote-debugging-pipe`

func startChromium(t *testing.T, flags ...string) *chromium {
	t.Helper()
	bin := tool(t, "/usr/lib/chromium/chromium-headless-shell", "chromium-headless-shell", "chrome-headless-shell")
	dir := filepath.Join(workDir(), "browser")
	for _, d := range []string{dir, dir + "/profile", dir + "/tmp"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	theirsR, ourW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourR, theirsW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &chromium{t: t, w: ourW, r: ourR, dir: dir}
	c.cmd = exec.Command(bin, append(append(strings.Fields(leanFlags), "--user-data-dir="+dir+"/profile"), append(flags, "about:blank")...)...)
	c.cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir + "/tmp", "PATH=" + os.Getenv("PATH")}
	c.cmd.ExtraFiles = []*os.File{theirsR, theirsW}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirsR.Close(), theirsW.Close()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_, _ = c.cmd.Process.Wait()
		_, _ = c.w.Close(), c.r.Close()
	})
	return c
}

// receive reads one message; ok is false when none came in time.
func (c *chromium) receive(wait time.Duration) (m message, ok bool) {
	c.t.Helper()
	for {
		if i := bytes.IndexByte(c.buf, 0); i >= 0 {
			if err := json.Unmarshal(c.buf[:i], &m); err != nil {
				c.t.Fatalf("message %q: %v", c.buf[:i], err)
			}
			c.buf = c.buf[i+1:]
			return m, true
		}
		_ = c.r.SetReadDeadline(time.Now().Add(wait))
		b := make([]byte, 1<<20)
		n, err := c.r.Read(b)
		if err != nil {
			if os.IsTimeout(err) {
				return m, false
			}
			c.t.Fatalf("read from the browser: %v", err)
		}
		c.buf = append(c.buf, b[:n]...)
	}
}

func (c *chromium) send(method string, params map[string]any) int {
	c.t.Helper()
	c.id++
	b, err := json.Marshal(message{ID: c.id, Method: method, Params: params, SessionID: c.sid})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.w.Write(append(b, 0)); err != nil {
		c.t.Fatalf("write to the browser: %v", err)
	}
	return c.id
}

func (c *chromium) call(method string, params map[string]any) json.RawMessage {
	c.t.Helper()
	id := c.send(method, params)
	for {
		m, ok := c.receive(60 * time.Second)
		if !ok {
			c.t.Fatalf("%s is not answered", method)
		}
		if m.ID == id {
			if m.Error != nil {
				c.t.Fatalf("%s: %s", method, m.Error)
			}
			return m.Result
		}
		c.seen = append(c.seen, m)
	}
}

func (c *chromium) event(name string) {
	c.t.Helper()
	for {
		for i, m := range c.seen {
			if m.Method == name {
				c.seen = append(c.seen[:i], c.seen[i+1:]...)
				return
			}
		}
		m, ok := c.receive(60 * time.Second)
		if !ok {
			c.t.Fatalf("event %s does not come", name)
		}
		c.seen = append(c.seen, m)
	}
}

// forget drops what the browser had sent before it was rewound, down to the half of a message.
func (c *chromium) forget() {
	c.t.Helper()
	c.seen, c.buf = nil, nil
	raw, err := c.r.SyscallConn()
	if err != nil {
		c.t.Fatal(err)
	}
	b := make([]byte, 1<<16)
	_ = c.r.SetReadDeadline(time.Time{})
	if err := raw.Read(func(fd uintptr) bool {
		for {
			if n, err := unix.Read(int(fd), b); n <= 0 || err != nil {
				return true
			}
		}
	}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chromium) js(expr string) string {
	c.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	raw := c.call("Runtime.evaluate", map[string]any{"expression": expr, "returnByValue": true, "awaitPromise": true})
	if err := json.Unmarshal(raw, &r); err != nil || r.ExceptionDetails != nil {
		c.t.Fatalf("evaluate %s: %s", expr, raw)
	}
	return string(r.Result.Value)
}

func (c *chromium) navigate(url string) {
	c.t.Helper()
	c.seen = nil
	c.call("Page.navigate", map[string]any{"url": url})
	c.event("Page.loadEventFired")
}

func (c *chromium) open(url string) {
	c.t.Helper()
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	_ = json.Unmarshal(c.call("Target.getTargets", nil), &targets)
	for _, x := range targets.TargetInfos {
		if x.Type == "page" {
			var s struct{ SessionID string }
			_ = json.Unmarshal(c.call("Target.attachToTarget", map[string]any{"targetId": x.TargetID, "flatten": true}), &s)
			c.sid = s.SessionID
		}
	}
	c.call("Page.enable", nil)
	c.call("Runtime.enable", nil)
	c.navigate(url)
}

func (c *chromium) click(x, y int) {
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		c.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})
	}
}

const testPage = `<!doctype html><title>T0</title><style>#b{position:absolute;left:10px;top:10px;width:100px;height:40px}#name{position:absolute;left:10px;top:80px;width:200px;height:20px}</style>
<button id=b>go</button><input id=name><ul id=list></ul><canvas id=cv width=200 height=100></canvas>
<script>window.st={clicks:0,ticks:0};b.onclick=()=>{st.clicks++;document.title='T'+st.clicks;let li=document.createElement('li');li.textContent=document.getElementById('name').value;list.appendChild(li);cv.getContext('2d').fillRect(st.clicks*7,10,5,5)};localStorage.k='0'</script>`

const pageState = `JSON.stringify([st.clicks,document.title,location.href,history.length,document.getElementById("name").value,list.children.length,document.body.children.length,localStorage.k,document.cookie,cv.toDataURL().length,scrollY,typeof window.zz,performance.timeOrigin])`

func servePage(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/data" {
			fmt.Fprint(w, `{"v":1}`)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, testPage)
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return "http://" + l.Addr().String() + "/"
}

func TestChromium(t *testing.T)              { chromiumTest(t) }
func TestChromiumSingleProcess(t *testing.T) { chromiumTest(t, "--single-process") }

func chromiumTest(t *testing.T, flags ...string) {
	t.Helper()
	if !inside(t) {
		return
	}
	url := servePage(t)
	c := startChromium(t, flags...)
	c.open(url)
	ops := []struct {
		name string
		do   func()
	}{
		{"form", func() {
			c.click(60, 90)
			c.call("Input.insertText", map[string]any{"text": "abc"})
			c.click(50, 30)
		}},
		{"fetch", func() { c.js(`fetch("/data").then(r=>r.json()).then(j=>{st.f=j.v})`) }},
		{"dom", func() {
			c.js(`for(let i=0;i<3000;i++){let d=document.createElement("div");d.textContent="x"+i;document.body.appendChild(d)};scrollTo(0,5000);1`)
		}},
		{"storage", func() { c.js(`document.cookie="a=b; max-age=9999";localStorage.k="77";sessionStorage.q="1"`) }},
		{"indexeddb", func() {
			c.js(`new Promise((r,j)=>{let q=indexedDB.open("d1",1);q.onupgradeneeded=()=>q.result.createObjectStore("s");q.onerror=()=>j(q.error);q.onsuccess=()=>{let t=q.result.transaction("s","readwrite");for(let i=0;i<50;i++)t.objectStore("s").put({x:i,s:"y".repeat(1000)},i);t.oncomplete=()=>{q.result.close();r(1)}}})`)
		}},
		{"navigate", func() { c.navigate(url + "?2") }},
		{"back", func() {
			c.navigate(url + "?2")
			c.js(`history.back();1`)
			c.event("Page.loadEventFired")
		}},
		{"worker", func() {
			c.js(`new Promise(r=>{window.zz=new Worker(URL.createObjectURL(new Blob(["onmessage=e=>postMessage(e.data*2)"])));zz.onmessage=e=>r(e.data);zz.postMessage(4)})`)
		}},
		{"screenshot", func() { c.call("Page.captureScreenshot", nil) }},
		{"gc", func() { c.call("HeapProfiler.collectGarbage", nil) }},
		{"heap", func() {
			c.js(`window.zz=[];for(let i=0;i<200000;i++)zz.push({a:i,b:"s"+i});let s=0;for(const z of zz)s+=z.a;s`)
		}},
		{"iframe", func() {
			c.js(`new Promise(r=>{let f=document.createElement("iframe");f.src="/sub";f.onload=()=>r(1);document.body.appendChild(f)})`)
		}},
		{"interval", func() { c.js(`setInterval(()=>st.ticks++,1);new Promise(r=>setTimeout(r,30))`) }},
		{"alert", func() {
			c.send("Runtime.evaluate", map[string]any{"expression": `alert("hey")`})
			c.event("Page.javascriptDialogOpening")
		}},
		{"new tab", func() {
			sid := c.sid
			c.sid = ""
			c.call("Target.createTarget", map[string]any{"url": url + "tab"})
			c.sid = sid
		}},
	}
	for _, op := range ops { // the first time of each costs memory that later ones share
		if op.name == "form" || op.name == "fetch" || op.name == "screenshot" || op.name == "worker" {
			op.do()
		}
	}
	c.navigate(url)
	c.call("HeapProfiler.collectGarbage", nil)
	for range 50 {
		c.js(pageState)
	}
	c.forget()
	tree := attach(t, Options{Roots: []int{c.cmd.Process.Pid}, Dirs: []string{c.dir, "/dev/shm"}, Rearm: 10, Seal: true})
	s := snapshot(t, tree)
	want := c.js(pageState)
	var f, all figures
	for i := range soak(max(rounds, 10*len(ops))) {
		op := ops[i%len(ops)]
		op.do()
		if r := all.rewind(t, tree, s, i); r != nil && (op.name == "form" || op.name == "fetch") {
			f.add(r)
		}
		c.forget()
		if got := c.js(pageState); got != want {
			t.Fatalf("round %d, after %s: state\n%s\nwas\n%s", i, op.name, got, want)
		}
	}
	f.print(t, "chromium form and fetch")
	all.print(t, "chromium all")
}

// TestChromiumRenderer: the renderer dies in the episode and is made again. It had
// replaced its program after the fork, so it is made from a parent that runs another one.
func TestChromiumRenderer(t *testing.T) {
	if !inside(t) {
		return
	}
	url := servePage(t)
	c := startChromium(t)
	c.open(url)
	c.click(50, 30)
	c.call("Page.captureScreenshot", nil)
	c.navigate(url)
	for range 20 {
		c.js(pageState)
	}
	c.forget()
	tree := attach(t, Options{Roots: []int{c.cmd.Process.Pid}, Dirs: []string{c.dir, "/dev/shm"}})
	s := snapshot(t, tree)
	tree.mu.Lock()
	tree.unwatch() // whoever is told of the death first decides: here it is the rewind
	tree.mu.Unlock()
	want := c.js(pageState)
	kids := children(c.cmd.Process.Pid, nil)
	if len(kids) != 1 {
		t.Fatalf("%d children, want the renderer alone", len(kids))
	}
	var f figures
	for i := range soak(20) {
		c.click(50, 30)
		if err := unix.Kill(kids[0], unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { s := taskState(kids[0], kids[0]); return s == 0 || s == 'Z' })
		r := mustVerify(t, tree, s)
		if r.ProcessesMade != 1 {
			t.Fatalf("round %d: %d processes made", i, r.ProcessesMade)
		}
		f.add(r)
		c.forget()
		if got := c.js(pageState); got != want {
			t.Fatalf("round %d: state\n%s\nwas\n%s", i, got, want)
		}
	}
	f.print(t, "chromium, renderer made again")
}
