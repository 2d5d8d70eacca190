package browser

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/action"
)

// target is the element that the call names.
func (a *act) target() string {
	t, _ := a.call.Target("bid")
	return spec(t)
}

// doClick presses and releases the mouse on the element itself, and makes sure that
// it was the element that got it.
func (a *act) doClick(ctx context.Context) error {
	button := a.call.Text("button")
	mods, err := modifierBits(a.call.Texts("modifiers"))
	if err != nil {
		return fail(action.InvalidAction, "%v", err)
	}
	clicks := 1
	if a.call.Name == "dblclick" {
		clicks = 2
	}
	return a.clickOn(ctx, a.target(), button, clicks, mods)
}

func (a *act) clickOn(ctx context.Context, target, button string, clicks, mods int) error {
	expr := "P.press(" + target + ",{enabled:true})"
	for try := 0; ; try++ {
		f, err := a.ready(ctx, expr)
		if err != nil {
			return err
		}
		a.began()
		w, err := a.pressAndAsk(ctx, f.at(), button, clicks, mods)
		if err != nil {
			return err
		}
		got := w.Arrived
		switch {
		case a.moved() || got == nil || got.Down > 0 && got.Cover == "":
			return a.s.run(ctx, w)
		case got.Cover != "":
			return fail(action.Obscured, "%s was covered by %s when it was pressed; close or move that first", got.Label, got.Cover)
		case try == 0:
			// Nothing at all arrived: the browser drops input before a document's first frame.
			if err := a.p.frame(ctx); err != nil {
				return err
			}
		default:
			return fail(action.Timeout, "the browser did not deliver the click to %s; try again", got.Label)
		}
	}
}

// pressAndAsk clicks and asks what the page has to do because of it. The question is sent
// together with the input: as a rule the page meets it right after the input, and its answer
// saves a way to the page and back. One that overtook the input says so, and is put again.
func (a *act) pressAndAsk(ctx context.Context, at point, button string, clicks, mods int) (work, error) {
	var id int64
	a.b.read(func() { id, a.p.dirty = a.p.agentCtx, false })
	calls := a.p.sendPress(at, button, clicks, mods)
	if a.in != nil || id == 0 {
		if err := a.p.awaitInput(ctx, calls...); err != nil {
			return work{}, err
		}
		return a.s.ask(ctx, "P.state(1)")
	}
	early := a.p.s.Send("Runtime.evaluate", evalParams(id, "P.after("+strconv.Itoa(clicks)+")"))
	if err := a.p.awaitInput(ctx, calls...); err != nil {
		return work{}, err
	}
	var w work
	raw, err := a.p.await(ctx, early)
	if err == nil {
		err = decodeEval(raw, &w)
	}
	if err == nil && !w.Again {
		a.b.read(func() { a.p.title = w.Title })
		return w, nil
	}
	ended := w.Ended
	if w, err = a.s.ask(ctx, "P.state(1)"); err == nil {
		w.Ended += ended
	}
	return w, err
}

func (a *act) doHover(ctx context.Context) error {
	f, err := a.ready(ctx, "P.press("+a.target()+",{})")
	if err != nil {
		return err
	}
	a.began()
	if err := a.p.hover(ctx, f.at(), 0, 0); err != nil {
		return err
	}
	a.s.frame = true
	_, err = a.settle(ctx)
	return err
}

// filled is what a field holds after typing.
type filled struct {
	Gone, Same, Cut bool
	Max             int
	Got             string
	Label           string
}

// doFill replaces the text of a field by typing over what is selected in it.
func (a *act) doFill(ctx context.Context) error {
	value := a.call.Text("value") // absent for clear
	for try := 0; ; try++ {
		f, err := a.ready(ctx, "P.prepare("+a.target()+","+encode(value)+")")
		if err != nil {
			return err
		}
		a.began()
		if f.Set {
			_, err := a.settle(ctx)
			return err
		}
		if err := a.typeOver(ctx, f, value); err != nil {
			return err
		}
		var r struct {
			work
			Filled filled `json:"filled"`
		}
		if err := a.eval(ctx, "P.filledState("+encode(value)+")", &r); err != nil {
			return err
		}
		if try == 0 && !r.Filled.Same && !r.Filled.Gone && r.Arrived != nil && r.Arrived.Input == 0 && r.Arrived.Key == 0 {
			if err := a.p.frame(ctx); err != nil { // see clickOn
				return err
			}
			continue
		}
		w := r.work
		if w.Again {
			if w, err = a.s.ask(ctx, "P.state()"); err != nil {
				return err
			}
			w.Ended += r.Ended
		}
		if err := a.s.run(ctx, w); err != nil {
			return err
		}
		return a.report(r.Filled, value)
	}
}

// typeOver types over the selection.
func (a *act) typeOver(ctx context.Context, f found, value string) error {
	if value == "" {
		if f.Empty {
			return nil
		}
		return a.p.pressKey(ctx, "Delete")
	}
	if !f.Lines {
		return a.p.insertText(ctx, value)
	}
	// In an editable element a line break is a key: editors make paragraphs of it.
	for i, line := range strings.Split(strings.ReplaceAll(value, "\r\n", "\n"), "\n") {
		if i > 0 {
			if err := a.p.pressKey(ctx, "Enter"); err != nil {
				return err
			}
		}
		if line == "" {
			continue
		}
		if err := a.p.insertText(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// report compares what was typed with what is there.
func (a *act) report(r filled, value string) error {
	switch {
	case r.Gone || r.Same:
		return nil
	case r.Cut:
		a.b.note("%s takes %d characters: the text was cut to %s", r.Label, r.Max, action.Quote(r.Got))
	case r.Got == "" && value != "":
		return fail(action.InvalidValue, "%s did not take %s", r.Label, action.Quote(value))
	default:
		a.b.note("%s now holds %s", r.Label, action.Quote(r.Got))
	}
	return nil
}

func (a *act) doSelect(ctx context.Context) error {
	f, err := a.ready(ctx, "P.choose("+a.target()+","+encode(a.call.Texts("options"))+")")
	if err != nil {
		return err
	}
	a.began()
	if !f.Changed {
		a.b.note("%s was selected already", action.Quote(f.Value))
	}
	_, err = a.settle(ctx)
	return err
}

// doCheck clicks if the state is not the wanted one, and looks whether that helped.
func (a *act) doCheck(ctx context.Context) error {
	want := a.call.Name == "check"
	f, err := a.ready(ctx, "P.checked("+a.target()+")")
	if err != nil {
		return err
	}
	if f.Checked == want {
		a.b.note("it was %sed already", a.call.Name)
		a.sent = true
		return a.p.evalAgent(ctx, "P.begin()", nil)
	}
	if f.Radio && !want {
		return fail(action.InvalidValue, "a radio button cannot be unchecked; check another one of its group")
	}
	if err := a.clickOn(ctx, a.target(), "left", 1, 0); err != nil {
		return err
	}
	if a.moved() {
		return nil
	}
	var now found
	if err := a.eval(ctx, "P.checked("+a.target()+")", &now); err != nil || now.Error != nil {
		return err // it has left the page: the click had its effect
	}
	if now.Checked != want {
		return fail(action.InvalidValue, "the click did not %s it: the page set it back", a.call.Name)
	}
	return nil
}

func (a *act) doFocus(ctx context.Context) error {
	if _, err := a.ready(ctx, "P.focusOn("+a.target()+")"); err != nil {
		return err
	}
	a.began()
	_, err := a.settle(ctx)
	return err
}

func (a *act) doPress(ctx context.Context) error {
	combo := a.call.Text("key_comb")
	if _, _, err := parseCombo(combo); err != nil {
		return fail(action.InvalidValue, "%v", err)
	}
	if _, err := a.ready(ctx, "P.focusOn("+a.target()+")"); err != nil {
		return err
	}
	return a.keys(ctx, func() error { return a.p.pressKey(ctx, combo) })
}

// keys sends keys and makes sure that they arrived.
func (a *act) keys(ctx context.Context, send func() error) error {
	a.began()
	if err := send(); err != nil {
		return err
	}
	w, err := a.s.ask(ctx, "P.state(1)")
	if err != nil {
		return err
	}
	if got := w.Arrived; got != nil && got.Key+got.Input == 0 && !a.moved() {
		if err := a.p.frame(ctx); err != nil { // see clickOn
			return err
		}
		if err := a.eval(ctx, "P.listen()", nil); err != nil {
			return err
		}
		if err := send(); err != nil {
			return err
		}
		if w, err = a.s.ask(ctx, "P.state(1)"); err != nil {
			return err
		}
		if got := w.Arrived; got != nil && got.Key+got.Input == 0 && !a.moved() {
			return fail(action.Timeout, "the browser did not deliver the key; click the field first")
		}
	}
	return a.s.run(ctx, w)
}

// doUpload chooses files. Only those of the world's upload folder can be named.
func (a *act) doUpload(ctx context.Context) error {
	files, refuse := a.b.uploads(a.call.Texts("file"))
	if refuse != nil {
		return refuse
	}
	target := a.target()
	if a.call.Name == "mouse_upload_file" {
		target = fmt.Sprintf("{x:%g,y:%g}", a.call.Number("x"), a.call.Number("y"))
	}
	if _, err := a.ready(ctx, fmt.Sprintf("P.findFileInput(%s,%d)", target, len(files))); err != nil {
		return err
	}
	// A file that is not there would only be missed by the page, so it is tried first.
	if err := a.setFiles(ctx, "P.trial", files); err != nil {
		return err
	}
	var readable bool
	if err := a.eval(ctx, "P.readable()", &readable); err != nil {
		return err
	}
	if !readable {
		return fail(action.InvalidValue, "this world offers no file %s", strings.Join(a.call.Texts("file"), ", "))
	}
	a.began()
	if err := a.setFiles(ctx, "P.chosen", files); err != nil {
		return err
	}
	_, err := a.settle(ctx)
	return err
}

// setFiles puts files into the input that an expression names.
func (a *act) setFiles(ctx context.Context, expr string, files []string) error {
	object, err := a.object(ctx, expr)
	if err != nil {
		return err
	}
	_, err = a.p.await(ctx, a.p.s.Send("DOM.setFileInputFiles", map[string]any{"files": files, "objectId": object}))
	if refused(err) {
		return fail(action.InvalidValue, "the browser could not read %s", strings.Join(a.call.Texts("file"), ", "))
	}
	return err
}

// uploads turns names into paths below the upload folder.
func (b *Browser) uploads(names []string) ([]string, error) {
	if b.cfg.UploadDir == "" {
		return nil, fail(action.InvalidValue, "this world offers no files to upload")
	}
	var out []string
	for _, n := range names {
		inside := strings.TrimPrefix(n, b.cfg.UploadDir+"/")
		if strings.ContainsRune(inside, 0) || inside == "." || path.Clean("/"+inside) != "/"+inside {
			return nil, fail(action.InvalidValue, "%s is not the name of a file that this world offers", action.Quote(n))
		}
		out = append(out, b.cfg.UploadDir+"/"+inside)
	}
	return out, nil
}
