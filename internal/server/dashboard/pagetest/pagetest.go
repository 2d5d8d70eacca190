// Package pagetest opens the dashboard's pages in a real browser, for tests: one whose
// clock runs, unlike those of worlds.
package pagetest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/cdp"
)

// Patience bounds every wait for a page.
const Patience = time.Minute

// Page is a tab of a browser that ends with its test.
type Page struct {
	tb      testing.TB
	session *cdp.Session

	mu       sync.Mutex
	problems []string // guarded by mu: exceptions, refused scripts, errors of the console
}

// Open starts a browser with a window of the given size and opens an address in it.
func Open(tb testing.TB, address string, width, height int) *Page {
	tb.Helper()
	conn := launch(tb, width, height)
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	var target struct {
		TargetID string `json:"targetId"`
	}
	must(tb, conn.Session("").Call(ctx, "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	must(tb, conn.Session("").Call(ctx, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached))
	p := &Page{tb: tb, session: conn.Session(attached.SessionID)}
	p.session.Handle(p.event)
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		must(tb, p.session.Call(ctx, domain+".enable", nil, nil))
	}
	must(tb, p.session.Call(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil))
	p.Go(address)
	return p
}

func launch(tb testing.TB, width, height int) *cdp.Conn {
	tb.Helper()
	bin, err := browser.FindChromium()
	must(tb, err)
	dir := tb.TempDir()
	inR, inW, err := os.Pipe()
	must(tb, err)
	outR, outW, err := os.Pipe()
	must(tb, err)
	cmd := exec.Command(bin, "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
		"--disable-breakpad", "--user-data-dir="+filepath.Join(dir, "profile"), fmt.Sprintf("--window-size=%d,%d", width, height), "--lang=en-US",
		"--force-color-profile=srgb", "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "TZ=UTC", "DBUS_SESSION_BUS_ADDRESS=disabled:")
	cmd.ExtraFiles = []*os.File{inR, outW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(tb, cmd.Start())
	_, _ = inR.Close(), outW.Close()
	conn := cdp.New(inW, outR)
	tb.Cleanup(func() {
		_ = conn.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed: the error says only that
	})
	return conn
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// event keeps what a page must not have.
func (p *Page) event(e cdp.Event) {
	var m struct {
		ExceptionDetails struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
		Entry struct {
			Level string `json:"level"`
			Text  string `json:"text"`
			URL   string `json:"url"`
		} `json:"entry"`
	}
	if json.Unmarshal(e.Params, &m) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Method == "Runtime.exceptionThrown":
		p.problems = append(p.problems, m.ExceptionDetails.Text+" "+m.ExceptionDetails.Exception.Description)
	case e.Method == "Log.entryAdded" && m.Entry.Level == "error":
		p.problems = append(p.problems, m.Entry.Text+" "+m.Entry.URL)
	}
}

// Problems are the exceptions and errors of the page so far.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Clean fails the test when the page had problems other than those that hold one of the
// given words.
func (p *Page) Clean(but ...string) {
	p.tb.Helper()
	for _, problem := range p.Problems() {
		if !slices.ContainsFunc(but, func(word string) bool { return strings.Contains(problem, word) }) {
			p.tb.Errorf("the page had a problem: %s", problem)
		}
	}
}

func (p *Page) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Patience)
}

// Go opens an address.
func (p *Page) Go(address string) {
	p.tb.Helper()
	ctx, cancel := p.context()
	defer cancel()
	var out struct {
		ErrorText string `json:"errorText"`
	}
	must(p.tb, p.session.Call(ctx, "Page.navigate", map[string]any{"url": address}, &out))
	if out.ErrorText != "" {
		p.tb.Fatalf("open %s: %s", address, out.ErrorText)
	}
}

// Route goes to a page of the dashboard and waits until it has opened.
func (p *Page) Route(hash string) {
	p.tb.Helper()
	text, err := json.Marshal(hash)
	must(p.tb, err)
	p.Wait("document.querySelector('main[aria-busy=false]')")
	p.Eval(fmt.Sprintf("document.querySelector('main').removeAttribute('aria-busy'); location.hash = '#/-'; location.hash = %s", text), nil)
	p.Wait("document.querySelector('main[aria-busy=false]')")
}

// Password is what the browser says when a server asks for one.
func (p *Page) Password(password string) {
	p.tb.Helper()
	ctx, cancel := p.context()
	defer cancel()
	head := map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("any:"+password))}
	must(p.tb, p.session.Call(ctx, "Network.setExtraHTTPHeaders", map[string]any{"headers": head}, nil))
}

// Eval evaluates an expression, waits for it if it is a promise, and decodes its value.
func (p *Page) Eval(expression string, out any) {
	p.tb.Helper()
	must(p.tb, p.eval(expression, out))
}

func (p *Page) eval(expression string, out any) error {
	ctx, cancel := p.context()
	defer cancel()
	var res struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct {
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := p.session.Call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &res); err != nil {
		return err
	}
	if res.ExceptionDetails != nil {
		return fmt.Errorf("%s: %s", expression, res.ExceptionDetails.Exception.Description)
	}
	if out == nil || len(res.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(res.Result.Value, out)
}

// Wait waits until an expression is true. It is asked again at each change of the document.
func (p *Page) Wait(expression string) {
	p.tb.Helper()
	watch := fmt.Sprintf(`new Promise((resolve) => {
		const ask = () => { try { return Boolean(%s) } catch { return false } };
		if (ask()) return resolve(true);
		const end = (v) => { seen.disconnect(); clearInterval(tick); resolve(v) };
		const seen = new MutationObserver(() => ask() && end(true));
		seen.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		const tick = setInterval(() => ask() && end(true), 200);
		setTimeout(() => end(false), %d);
	})`, expression, (Patience / 2).Milliseconds())
	for began := time.Now(); ; {
		var ok bool
		// A navigation takes the document away that was asked; the next one is asked then.
		if err := p.eval(watch, &ok); err == nil && ok {
			return
		} else if time.Since(began) > Patience/2 {
			var body string
			_ = p.eval("location.href + '\\n' + document.body.innerText.slice(0, 3000)", &body)
			p.tb.Fatalf("waited for %s (%v); problems: %q; the page says:\n%s", expression, err, p.Problems(), body)
		}
	}
}

// Has waits until the page's text holds all of the words.
func (p *Page) Has(words ...string) {
	p.tb.Helper()
	for _, w := range words {
		text, err := json.Marshal(w)
		must(p.tb, err)
		p.Wait(fmt.Sprintf("document.body.innerText.includes(%s)", text))
	}
}

// Press presses keys, one after another: a letter, or a name such as ArrowLeft.
func (p *Page) Press(keys ...string) {
	p.tb.Helper()
	ctx, cancel := p.context()
	defer cancel()
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key}
		if len(key) == 1 {
			down["text"] = key
		}
		if key == "Escape" {
			down["windowsVirtualKeyCode"] = 27 // by its name alone it closes no dialog
		}
		must(p.tb, p.session.Call(ctx, "Input.dispatchKeyEvent", down, nil))
		must(p.tb, p.session.Call(ctx, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil))
	}
}

// Click clicks the first element that a selector names.
func (p *Page) Click(selector string) {
	p.tb.Helper()
	text, err := json.Marshal(selector)
	must(p.tb, err)
	p.Wait(fmt.Sprintf("document.querySelector(%s)", text))
	p.Eval(fmt.Sprintf("document.querySelector(%s).click()", text), nil)
}

// Dark has the page believe that its reader likes it dark, or light.
func (p *Page) Dark(dark bool) {
	p.tb.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	ctx, cancel := p.context()
	defer cancel()
	must(p.tb, p.session.Call(ctx, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil))
}

// Screenshot is the window as PNG.
func (p *Page) Screenshot() []byte {
	p.tb.Helper()
	ctx, cancel := p.context()
	defer cancel()
	var out struct {
		Data []byte `json:"data"`
	}
	must(p.tb, p.session.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &out))
	return out.Data
}
