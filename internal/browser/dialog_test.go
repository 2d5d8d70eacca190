package browser_test

import (
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

func TestDialogsWaitForTheAgent(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>dialogs</title><button id=del onclick="log.value+=confirm('Delete?')?'deleted ':'kept '">Delete</button>
<button id=nm onclick="log.value+='name='+prompt('Name?','x')+' '">Name</button><button id=storm onclick="for(let i=0;i<5;i++)alert(i);log.value+='calm '">Storm</button>
<button id=late onclick="setTimeout(()=>{alert('late');log.value+='late '},300)">Late</button><input id=f onchange="alert('changed')"><output id=log></output>
<button id=dirty onclick="onbeforeunload=e=>e.preventDefault()">Dirty</button><a id=away href="/away">away</a>`)
	s.Page("/away", `<title>away</title>`)
	s.Go("/")
	s.Fails(action.NoDialog, "dialog_accept()")
	s.OK(`click(selector="#del")`)
	o := s.See(browser.View{Elements: true, Screenshot: "png"})
	if o.Dialog == nil || o.Dialog.Type != "confirm" || o.Dialog.Message != "Delete?" || o.Title != "dialogs" || !strings.Contains(o.Text, "Delete?") {
		t.Fatalf("observation %+v", o)
	}
	s.Fails(action.DialogOpen, `click(selector="#del")`)
	s.Fails(action.DialogOpen, `noop()`)
	s.OK(`dialog_dismiss()`)
	s.OK(`click(selector="#del"); dialog_accept(); click(selector="#nm"); dialog_accept("Zoë"); click(selector="#nm"); dialog_accept(); click(selector="#nm"); dialog_dismiss()`)
	wantLog(t, s, "kept deleted name=Zoë name=x name=null ")
	run(t, s, "log.value=''")
	s.OK(`click(selector="#storm"); dialog_accept(); dialog_accept(); dialog_accept(); dialog_accept(); dialog_accept(); click(selector="#late"); dialog_accept()`)
	wantLog(t, s, "calm late ")
	// Leaving a page that does not want to be left.
	s.OK(`click(selector="#dirty"); click(selector="#away")`)
	if o := s.See(browser.View{}); o.Dialog == nil || o.Dialog.Type != "beforeunload" {
		t.Fatalf("observation %+v", o)
	}
	s.OK(`dialog_dismiss()`)
	if o := s.See(browser.View{}); o.Title != "dialogs" || o.Dialog != nil {
		t.Fatalf("dismissing did not keep the page: %+v", o)
	}
	s.OK(`click(selector="#away"); dialog_accept()`)
	if o := s.See(browser.View{}); o.Title != "away" {
		t.Fatalf("accepting did not leave the page: %+v", o)
	}
}

// A new episode asks no page for leave to begin.
func TestNavigateAnswersDialogsByItself(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<title>a</title><button id=b onclick="onbeforeunload=e=>e.preventDefault()">b</button><button id=c onclick="confirm('x')">c</button>`)
	s.Page("/hello", `<title>b</title><script>alert('hello')</script>`)
	s.Go("/")
	s.OK(`click(selector="#b"); click(selector="#c")`)
	s.Go("/hello")
	if o := s.See(browser.View{}); o.Title != "b" || o.Dialog != nil {
		t.Fatalf("observation %+v", o)
	}
	if err := s.ClearState(browsertest.Context(t)); err != nil {
		t.Fatal(err)
	}
}
