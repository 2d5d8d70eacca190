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

// restless shows everything of a page that could differ from run to run.
const restless = `<!doctype html><title>restless</title><ul id=u></ul><button id=b>go</button> <a href="/?next">next</a> <input id=i><iframe srcdoc="<p id=p></p><script>p.textContent=Math.random()+' '+Date.now()</script>"></iframe><script>
const add=t=>{const l=document.createElement('li');l.textContent=t;u.append(l)};
const look=()=>[new Date().toISOString(),Date.now(),performance.now(),performance.timeOrigin,Math.random(),crypto.randomUUID(),[...crypto.getRandomValues(new Uint8Array(6))]].join(' ');
add(look());add(Date());add(new Date(2020,1,1).getTime());
let n=0;setInterval(()=>n++,30);
setTimeout(()=>add('late '+look()),430);
(function loop(k){if(k)requestAnimationFrame(t=>{if(k===1)add('frame '+t);loop(k-1)})})(3);
Promise.all([1,2,3].map(i=>fetch('/item/'+i).then(r=>r.json()).then(j=>j.n))).then(a=>add('all='+a+' '+n));
b.onclick=e=>{add('click '+e.timeStamp+' '+n);const x=new XMLHttpRequest();x.open('GET','/item/9');x.onload=()=>{add('xhr '+x.responseText+' '+look());setTimeout(()=>add('after '+performance.now()+' '+n),120)};x.send()};
i.oninput=e=>add('input '+i.value+' '+e.timeStamp);
</script>`

func restlessSite(t *testing.T) *browsertest.Site {
	s := browsertest.NewSite(t)
	s.Page("/", restless)
	s.Mux.HandleFunc("/item/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		time.Sleep(time.Duration(time.Now().UnixNano()%7) * time.Millisecond) // a server is never on time
		fmt.Fprintf(w, `{"n":%q}`, strings.TrimPrefix(r.URL.Path, "/item/"))
	})
	return s
}

// story plays one episode and returns all that was seen, without the server's port.
func story(t *testing.T, s *browsertest.Site, seed uint64) string {
	t.Helper()
	ctx := browsertest.Context(t)
	if err := s.ClearState(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.SetEpisode(ctx, seed, time.Date(2025, 3, 10, 9, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	s.Go("/")
	var seen []string
	look := func() {
		o := s.See(browser.View{Elements: true})
		seen = append(seen, fmt.Sprint(o.Text, o.Elements, o.VirtualTimeMS))
	}
	look()
	for _, a := range []string{`click(selector="#b")`, `fill(selector="#i", value="abc")`, `click(selector="#b")`, `noop(700)`, `click(selector="text=next")`, `click(selector="#b")`} {
		s.OK(a)
		look()
	}
	return strings.ReplaceAll(strings.Join(seen, "\n"), s.URL, "http://world")
}

func TestSameSeedSameEpisode(t *testing.T) {
	t.Parallel()
	a := restlessSite(t)
	// A document's random numbers depend on its address, which has the port in it.
	first := story(t, a, 7)
	for i := range 3 {
		time.Sleep(time.Duration(i) * 30 * time.Millisecond) // real time is of no account
		if again := story(t, a, 7); again != first {
			t.Fatalf("run %d differs: %s", i+2, difference(first, again))
		}
	}
	if other := story(t, a, 8); other == first {
		t.Fatal("another seed makes the same episode")
	}
	for _, want := range []string{"2025-03-10T09:00:00", "all=1,2,3", "after ", "frame "} {
		if !strings.Contains(first, want) {
			t.Errorf("the episode lacks %q:\n%s", want, first)
		}
	}
}

func difference(a, b string) string {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range la {
		if i >= len(lb) || la[i] != lb[i] {
			return fmt.Sprintf("line %d\n%s\n%s", i, la[i], lb[min(i, len(lb)-1)])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(la), len(lb))
}

// What is put in place of the page's own functions must look like them.
func TestNothingToBeSeenInThePage(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>t</title><script>
const native=Object.getOwnPropertyNames(window).length;
const tests={
 names: Object.getOwnPropertyNames(window).filter(n=>/^x[0-9a-f]{8}|pommel|^P$/i.test(n)).join(),
 symbols: Object.getOwnPropertySymbols(window).map(String).filter(n=>!/toStringTag/.test(n)).join(),
 fetch: fetch.toString(), name: fetch.name, length: fetch.length,
 own: Object.keys(Object.getOwnPropertyDescriptor(window,'fetch')).join(),
 random: Math.random.toString(), now: Date.now.toString(), date: Date.toString(), self: Function.prototype.toString.toString(),
 ctor: new Date().constructor===Date, inst: new Date() instanceof Date, date2: typeof Date(), sub: (class extends Date{}).prototype instanceof Date,
 subinst: new (class X extends Date{x(){return 1}})().x(), timeout: setTimeout.toString(), err: (()=>{try{Math.random.call.call(1)}catch(e){return e.constructor.name}})(),
 proto: Object.keys(Element.prototype).includes('attachShadow'), closed: (()=>{const d=document.createElement('div');d.attachShadow({mode:'closed'});return d.shadowRoot})(),
 attrs: [...document.querySelectorAll('*')].some(e=>e.attributes.length), stack: (()=>{try{null.x}catch(e){return /agent|pommel/.test(e.stack)}})(),
};
</script>`)
	s.Go("/")
	s.See(browser.View{Elements: true})
	want := map[string]string{
		"names": "", "symbols": "", "fetch": "function fetch() { [native code] }", "name": "fetch", "length": "1", "own": "value,writable,enumerable,configurable",
		"random": "function random() { [native code] }", "now": "function now() { [native code] }", "date": "function Date() { [native code] }",
		"self": "function toString() { [native code] }", "ctor": "true", "inst": "true", "date2": "string", "sub": "true", "subinst": "1",
		"timeout": "function setTimeout() { [native code] }", "err": "TypeError", "proto": "true", "closed": "null", "attrs": "false", "stack": "false",
	}
	for name, w := range want {
		if got := value(t, s, "tests["+fmt.Sprintf("%q", name)+"]"); got != w {
			t.Errorf("%s is %q, want %q", name, got, w)
		}
	}
}
