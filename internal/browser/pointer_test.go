package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

func TestHoverAndMouse(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<style>body{margin:0}#menu{display:none}#m:hover #menu{display:block}</style><div id=m style="width:100px">menu<button id=menu onclick="log.value+='item '">item</button></div>
<div id=d style="position:absolute;left:200px;top:100px;width:50px;height:50px;background:red"></div><output id=log></output><script>
for(const t of ['mousedown','mouseup','dblclick','contextmenu','auxclick'])d.addEventListener(t,e=>{e.preventDefault();log.value+=t+e.button+(e.shiftKey?'S':'')+' '})</script>`)
	s.Go("/")
	s.OK(`hover(selector="#m")`)
	if o := s.See(browser.View{}); !strings.Contains(o.Text, "item") {
		t.Fatalf("the menu does not show:\n%s", o.Text)
	}
	s.OK(`click(selector="#menu")`)
	wantLog(t, s, "item ")
	run(t, s, "log.value=''")
	s.OK(`mouse_down(210, 110); mouse_move(220, 120); mouse_up(220, 120); mouse_dblclick(210, 110)`)
	wantLog(t, s, "mousedown0 mouseup0 mousedown0 mouseup0 mousedown0 mouseup0 dblclick0 ")
	run(t, s, "log.value=''")
	s.OK(`click(selector="#d", button="right", modifiers=["Shift"])`)
	wantLog(t, s, "mousedown2S contextmenu2S mouseup2S auxclick2S ")
	s.Fails(action.InvalidValue, "mouse_click(5000, 10)")
}

func TestDragging(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<div id=a draggable=true style="width:60px;height:40px;background:red">a</div><div style="height:80px"></div><div id=z style="width:200px;height:80px;background:blue">z</div>
<div id=p style="position:absolute;left:400px;top:20px;width:30px;height:30px;background:green">p</div><output id=log></output><script>
a.ondragstart=e=>e.dataTransfer.setData('text/plain','hello');z.ondragover=e=>e.preventDefault();z.ondrop=e=>{e.preventDefault();log.value+='drop='+e.dataTransfer.getData('text/plain')+' '};
let on=false;p.onpointerdown=e=>{on=true;p.setPointerCapture(e.pointerId)};p.onpointermove=e=>{if(on)p.style.left=e.clientX-15+'px'};p.onpointerup=()=>{on=false;log.value+='at='+Math.round(p.getBoundingClientRect().x+15)+' '}</script>`)
	s.Go("/")
	s.OK(`drag_and_drop(from_selector="#a", to_selector="#z")`)
	wantLog(t, s, "drop=hello ")
	s.OK(`mouse_drag_and_drop(415, 35, 600, 35)`)
	wantLog(t, s, "drop=hello at=600 ")
	s.OK(`click(selector="#p")`) // the mouse works as before
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<button id=s onclick="log.value+='s '">Save</button><button onclick="log.value+='d '">Save draft</button><button style="display:none">Save</button>
<a href="#x" class=twin>one</a><a href="#y" class=twin>two</a><x-card></x-card><output id=log></output><script>
customElements.define('x-card',class extends HTMLElement{connectedCallback(){this.attachShadow({mode:'closed'}).innerHTML='<button id=in>inside</button>';}})</script>`)
	s.Go("/")
	s.OK(`click(selector="text=save"); click(selector='text="Save draft"'); click(selector='role=button[name="Save"]'); click(selector="css=#s"); click("#s"); click(selector="#in")`)
	wantLog(t, s, "s d s s s ")
	err := s.Fails(action.Ambiguous, `click(selector=".twin")`)
	if !strings.Contains(err.Message, `"one"`) || !strings.Contains(err.Message, "[") {
		t.Errorf("message %q names no matches", err.Message)
	}
	s.Fails(action.Ambiguous, `click(selector="role=link")`)
	s.Fails(action.InvalidSelector, `click(selector="button[")`)
	s.Fails(action.InvalidSelector, `click(selector="role=button[level=2]")`)
	s.Fails(action.NotFound, `click(selector="text=nowhere")`)
	s.Fails(action.NotFound, `click("999")`)
	o := s.See(browser.View{Elements: true})
	bid := ""
	for _, e := range o.Elements {
		if e.Name == "inside" {
			bid = e.Bid
		}
	}
	s.OK(fmt.Sprintf("click(%q)", bid))
	run(t, s, "document.querySelector('x-card').remove()")
	s.Fails(action.Stale, fmt.Sprintf("click(%q)", bid))
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := browsertest.NewSite(t, func(c *browser.Config) { c.DownloadDir = dir })
	s.Page("/", `<a id=d href="/file">get</a>`)
	s.Mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=report.csv")
		fmt.Fprint(w, "a,b")
	})
	s.Go("/")
	out := s.OK(`click(selector="#d")`)
	if !strings.Contains(strings.Join(out.Notes, " "), "report.csv") {
		t.Errorf("notes %q", out.Notes)
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.csv"))
	if err != nil || string(b) != "a,b" {
		t.Fatalf("file holds %q, %v", b, err)
	}
}
