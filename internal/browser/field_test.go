package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

const fields = `<!doctype html><input id=text value=old><input id=num type=number><input id=date type=date><input id=range type=range min=0 max=10><input id=color type=color>
<input id=ro readonly value=x><input id=dis disabled><textarea id=area></textarea><div id=ce contenteditable>old <b>text</b></div><input id=max maxlength=3>
<input id=up oninput="this.value=this.value.toUpperCase()"><input id=cb type=checkbox><input id=rb type=radio name=r><label id=lb>hidden box <input id=hid type=checkbox style="display:none"></label>
<select id=sel><option>One<option value=2>Two</select><div id=sw role=switch aria-checked=false tabindex=0 onclick="this.setAttribute('aria-checked',this.getAttribute('aria-checked')!=='true')">sw</div>
<input id=stuck type=checkbox onclick="return false"><output id=log></output><script>
for(const t of ['input','change','keydown'])addEventListener(t,e=>{log.value+=t[0]+(e.isTrusted?'':'!')+':'+(e.target.id||e.target.localName)+' '},true)</script>`

func TestFields(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", fields)
	s.Go("/")
	for _, c := range []struct{ id, text, want string }{
		{"text", "new \U0001F469\u200D\U0001F680 \"q\"", "new \U0001F469\u200D\U0001F680 \"q\""},
		{"text", "", ""}, {"num", "-1.5e3", "-1.5e3"}, {"date", "2024-02-09", "2024-02-09"}, {"range", "7", "7"},
		{"color", "#FF0000", "#ff0000"}, {"area", "a\nb\n", "a\nb\n"}, {"max", "abc", "abc"}, {"up", "shout", "SHOUT"},
	} {
		s.OK(fmt.Sprintf("fill(selector=%s, value=%s)", action.Quote("#"+c.id), action.Quote(c.text)))
		if got := value(t, s, c.id+".value"); got != c.want {
			t.Errorf("%s holds %q, want %q", c.id, got, c.want)
		}
	}
	s.OK("fill(selector='#ce', value='one\\ntwo')")
	if got := value(t, s, "ce.innerText"); got != "one\ntwo" {
		t.Errorf("the editable element holds %q", got)
	}
	s.OK("clear(selector='#ce')")
	if got := value(t, s, "ce.innerText.trim()"); got != "" {
		t.Errorf("the cleared element holds %q", got)
	}
	for kind, calls := range map[action.ErrorKind][]string{
		action.NotEditable:  {`fill(selector="#ro", value="y")`, `fill(selector="#cb", value="y")`, `fill(selector="#sel", value="y")`, `fill(selector="#sw", value="y")`, `check(selector="#text")`, `select_option(selector="#text", options="x")`},
		action.Disabled:     {`fill(selector="#dis", value="y")`},
		action.InvalidValue: {`fill(selector="#num", value="abc")`, `fill(selector="#date", value="2024-02-30")`, `fill(selector="#text", value="a\nb")`, `fill(selector="#color", value="red")`, `fill(selector="#range", value="99")`, `check(selector="#stuck")`, `uncheck(selector="#rb"); check(selector="#rb"); uncheck(selector="#rb")`},
		action.NoSuchOption: {`select_option(selector="#sel", options="Three")`},
	} {
		for _, c := range calls {
			s.Fails(kind, c)
		}
	}
	if out := s.OK(`fill(selector="#max", value="abcdef")`); !strings.Contains(strings.Join(out.Notes, " "), "cut to") {
		t.Errorf("notes %q", out.Notes)
	}
}

func TestCheckboxes(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", fields)
	s.Go("/")
	s.OK(`check(selector="#cb"); check(selector="#cb"); check(selector="#hid"); check(selector="#sw"); check(selector="#rb")`)
	if got := value(t, s, "[cb.checked,hid.checked,sw.ariaChecked,rb.checked]"); got != "true,true,true,true" {
		t.Fatalf("after check: %s", got)
	}
	s.OK(`uncheck(selector="#cb"); click(selector="#lb"); uncheck(selector="#sw")`)
	if got := value(t, s, "[cb.checked,hid.checked,sw.ariaChecked]"); got != "false,false,false" {
		t.Fatalf("after uncheck: %s", got)
	}
}

func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<form onsubmit="log.value+='submit ';return false"><input id=a><input id=b><button></button></form><output id=log></output><script>
addEventListener('keydown',e=>{if(e.key.length>1)log.value+=(e.ctrlKey?'C':'')+(e.shiftKey?'S':'')+e.key+' '})</script>`)
	s.Go("/")
	s.OK(`click(selector="#a"); keyboard_type("Ab1! ü€")`)
	if got := value(t, s, "a.value"); got != "Ab1! ü€" {
		t.Fatalf("typed %q", got)
	}
	s.OK(`keyboard_press("Control+a"); keyboard_insert_text("x"); keyboard_press("Tab"); keyboard_type("y"); press(selector="#b", key_comb="Enter")`)
	if got := value(t, s, "a.value+'/'+b.value+'/'+document.activeElement.id"); got != "x/y/b" {
		t.Fatalf("fields are %s", got)
	}
	s.OK(`keyboard_down("Shift"); keyboard_press("ArrowLeft"); keyboard_up("Shift"); keyboard_press("Delete")`)
	if got := value(t, s, "b.value"); got != "" {
		t.Fatalf("after selecting with Shift and deleting the field holds %q", got)
	}
	if log := value(t, s, "log.value"); !strings.Contains(log, "submit") || !strings.Contains(log, "CControl") {
		t.Fatalf("log %q", log)
	}
	s.Fails(action.InvalidValue, `keyboard_press("Bogus")`)
	s.Fails(action.InvalidValue, `press(selector="#a", key_comb="Hyper+x")`)
	s.Fails(action.NotFound, `press(selector="#nope", key_comb="Enter")`)
}

func TestUploadOnlyFromItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bill.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := browsertest.NewSite(t, func(c *browser.Config) { c.UploadDir = dir })
	s.Page("/", `<input type=file id=f onchange="f.files[0].text().then(x=>{log.value+=f.files[0].name+'='+x})"><output id=log></output>`)
	s.Go("/")
	for _, name := range []string{"/etc/passwd", "../x", "a/../../x", dir, "..", "", "x\x00"} {
		s.Fails(action.InvalidValue, fmt.Sprintf("upload_file(selector='#f', file=%s)", action.Quote(name)))
	}
	s.OK(`upload_file(selector="#f", file="bill.txt")`)
	wantLog(t, s, "bill.txt=hello")
	s.Fails(action.InvalidValue, `upload_file(selector="#f", file=["bill.txt", "bill.txt"])`)
	s.Fails(action.InvalidValue, `upload_file(selector="#f", file="missing.txt")`)
	wantLog(t, s, "bill.txt=hello")
	if out := s.OK(`click(selector="#f")`); !strings.Contains(strings.Join(out.Notes, " "), "upload_file") {
		t.Errorf("clicking a file field says %q", out.Notes)
	}
}
