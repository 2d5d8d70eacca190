package casetest

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pommelgym/pommel/internal/browser"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each page beside a .txt is shown exactly as the .txt says.
func TestText(t *testing.T) {
	t.Parallel()
	w := open(t)
	pages, err := filepath.Glob("testdata/text/*.html")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	pages = append(pages, "testdata/listing.html")
	for _, page := range pages {
		w.load(strings.TrimPrefix(page, "testdata"))
		o := w.look(browser.View{Elements: true})
		golden := strings.TrimSuffix(page, ".html") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(o.Text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if o.Text+"\n" != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", page, o.Text, want)
		}
		if strings.Contains(o.Text, "no: ") {
			t.Errorf("%s: something hidden is shown:\n%s", page, o.Text)
		}
		sameNodes(t, page, o)
		if again := w.text(); again != o.Text {
			t.Errorf("%s: a second look differs:\n%s", page, again)
		}
	}
}

// sameNodes checks that text and elements tell of the same nodes.
func sameNodes(t *testing.T, page string, o browser.Observation) {
	t.Helper()
	var fromText, fromElements []string
	for line := range strings.Lines(o.Text) {
		line = strings.TrimLeft(line, "\t")
		if rest, ok := strings.CutPrefix(line, "["); ok {
			bid, rest, _ := strings.Cut(rest, "] ")
			role, _, _ := strings.Cut(rest, " ")
			fromText = append(fromText, bid+" "+role)
		}
	}
	for _, e := range o.Elements {
		fromElements = append(fromElements, e.Bid+" "+e.Role)
	}
	if a, b := strings.Join(fromText, ","), strings.Join(fromElements, ","); a != b {
		t.Errorf("%s: text and elements disagree:\n%s\n%s", page, a, b)
	}
}

// Streams, polls and clocks of the page do not hold a step up; what the step asked for does.
func TestNeverQuiet(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c14_never_quiet.html")
	w.sees("idle")
	w.ok(`click(selector="#b")`)
	w.sees("saved")
}

// Routes of the page itself are in the URL, and their view has been drawn.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c15_routes.html")
	check := func(path string) {
		t.Helper()
		o := w.look(browser.View{})
		if href := w.value("location.href"); o.URL != href || href != w.site.URL+path {
			t.Errorf("want %s, the observation says %s, the page %s", path, o.URL, href)
		}
		if !strings.Contains(o.Text, "heading '"+path+"'") {
			t.Errorf("the view of %s is not drawn:\n%s", path, o.Text)
		}
	}
	w.ok(`click(selector="#r")`)
	check("/orders/7")
	w.ok(`click(selector="#h")`)
	check("/orders/7#part")
	w.ok("go_back()")
	check("/orders/7")
	w.ok("go_back()")
	check("/c15_routes.html")
	w.ok("goto(%q)", w.site.URL+"/c15_routes.html#part")
	check("/c15_routes.html#part")
}

// Names come from wherever the accessible name rules find them, and every line has a handle.
func TestNames(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c16_names.html")
	for _, n := range []struct{ role, name string }{
		{"button", "Add item"}, {"textbox", "Search orders"}, {"spinbutton", "Quantity"}, {"textbox", "City"},
		{"button", "Close panel"}, {"button", "Send it"}, {"image", "Logo of shop"}, {"checkbox", "All rows"}, {"link", "Cart, 2 items"},
	} {
		w.handle(n.role, n.name)
	}
	w.sees("checkbox 'All rows', checked='mixed'")
	ax := w.look(browser.View{AXTree: true}).AXTree
	for _, name := range []string{"Add item", "Search orders", "Quantity", "City", "Close panel", "Send it", "Logo of shop", "All rows", "Cart, 2 items"} {
		if !bytes.Contains(ax, []byte(`"`+name+`"`)) {
			t.Errorf("the browser's own tree lacks %q", name)
		}
	}
}

// A tab behind another can be pictured, and pixels lead to points.
func TestPictures(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *browser.Config) { c.Scale = 2 })
	w.load("/c17_pictures.html")
	w.ok("new_tab()")
	img, err := w.b.Screenshot(w.ctx(), 0, "png")
	if err != nil {
		t.Fatalf("picture of the tab behind: %v", err)
	}
	redCentre(t, img)
	w.ok("tab_focus(0)")
	shot := w.look(browser.View{Screenshot: "png"}).Screenshot
	if shot == nil {
		t.Fatal("want a picture, got none")
	}
	if shot.Scale != 2 || shot.Width != 2560 || shot.Height != 1440 {
		t.Errorf("want 2560x1440 at scale 2, got %dx%d at %g", shot.Width, shot.Height, shot.Scale)
	}
	x, y := redCentre(t, shot)
	w.ok("mouse_click(%g, %g)", x/shot.Scale, y/shot.Scale)
	w.logged("hit ")
}

// redCentre is the middle of the red pixels of a picture.
func redCentre(t *testing.T, shot *browser.Image) (x, y float64) {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(shot.Data))
	if err != nil {
		t.Fatalf("decode picture: %v", err)
	}
	if b := img.Bounds(); b.Dx() != shot.Width || b.Dy() != shot.Height {
		t.Errorf("the picture is %v, it says %dx%d", b, shot.Width, shot.Height)
	}
	box := image.Rectangle{}
	for py := range img.Bounds().Dy() {
		for px := range img.Bounds().Dx() {
			c, ok := color.RGBAModel.Convert(img.At(px, py)).(color.RGBA)
			if ok && c.R > 200 && c.G < 60 && c.B < 60 {
				box = box.Union(image.Rect(px, py, px+1, py+1))
			}
		}
	}
	if box.Empty() {
		t.Fatal("there is no red in the picture")
	}
	return float64(box.Min.X+box.Max.X) / 2, float64(box.Min.Y+box.Max.Y) / 2
}

// Depth, length and nesting are bounded and marked.
func TestDeepAndWidePages(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c18_deep.html?deep=1")
	w.sees("button 'here'", "bottom")
	w.ok(`click(selector="#b")`)

	w.load("/c18_deep.html?wide=1")
	o := w.look(browser.View{Elements: true})
	if !o.Truncated || !strings.Contains(o.Text, "(cut: ") || !strings.Contains(o.Text, "row 0'") {
		t.Errorf("the long page is not marked as cut: %v, %d bytes", o.Truncated, len(o.Text))
	}
	if n := len(o.Text); n > browser.DefaultMaxText+1024 || n < browser.DefaultMaxText/2 {
		t.Errorf("the text has %d bytes, the limit is %d", n, browser.DefaultMaxText)
	}
	if o = w.look(browser.View{MaxText: 2000}); len(o.Text) > 2500 || !o.Truncated {
		t.Errorf("with a limit of 2000 the text has %d bytes", len(o.Text))
	}
	w.ok(`click(selector="#b")`)
	w.logged("ok ")

	w.load("/c18_deep.html?nest=1")
	o = w.look(browser.View{})
	if !o.Truncated || !strings.Contains(o.Text, "not read: more than 8 iframes deep") {
		t.Errorf("the nest of frames is not marked as cut:\n%s", o.Text)
	}
	w.ok(`click("0")`)
	w.logged("ok ")
}

// Whatever a page holds, an observation is valid text of bounded size.
func TestOddText(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c36_odd_text.html")
	o := w.look(browser.View{Elements: true, HTML: true})
	for name, s := range map[string]string{"text": o.Text, "html": o.HTML, "title": o.Title} {
		if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
			t.Errorf("%s is not clean UTF-8: %q", name, s)
		}
	}
	for _, want := range []string{"half \ufffd smile \ufffd end", "nul\ufffd and \uffff"} {
		if !strings.Contains(o.Text, want) {
			t.Errorf("the text lacks %q:\n%q", want, o.Text)
		}
	}
	w.load("/c36_odd_text.html?big")
	o = w.look(browser.View{HTML: true})
	if !strings.Contains(o.Text, "characters)") || len(o.Text) > browser.DefaultMaxText+1024 || !utf8.ValidString(o.HTML) {
		t.Errorf("the long text is not cut with a mark: %d bytes", len(o.Text))
	}
	for path, want := range map[string]string{"/text/header": "Привет", "/text/meta": "Привет"} {
		w.load(path)
		w.sees(want)
	}
	w.load("/text/bare")
	if shown := w.value("document.body.textContent.trim()"); !strings.Contains(w.text(), shown) {
		t.Errorf("the page without a charset is not read as the browser shows it: %q", shown)
	}
}

// Noise is what packs worst: a picture of a window full of it is whole and valid.
func TestPictureOfNoise(t *testing.T) {
	t.Parallel()
	for _, size := range []int{720, 4000} {
		w := open(t, func(c *browser.Config) { c.Width, c.Height = size, size })
		w.load("/c36_noise.html")
		for _, format := range []string{"png", "jpeg"} {
			shot := w.look(browser.View{Screenshot: format}).Screenshot
			if shot == nil {
				t.Fatalf("there is no %s of %d x %d", format, size, size)
			}
			img, kind, err := image.Decode(bytes.NewReader(shot.Data))
			if err != nil || kind != format {
				t.Fatalf("the picture is %s, %v; want %s", kind, err, format)
			}
			if b := img.Bounds(); b.Dx() != size || b.Dy() != size || shot.Width != size || shot.Height != size {
				t.Errorf("the %s is %v and says %d x %d, want %d squared", format, b, shot.Width, shot.Height, size)
			}
			if format == "png" && len(shot.Data) < size*size {
				t.Errorf("%d bytes do not hold the noise of %d squared", len(shot.Data), size)
			}
		}
		w.ok(`click(selector="canvas")`)
		w.sees("button 'hit'")
	}
}

// Every channel follows the rule of docs/observations.md.
func TestHiddenText(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.load("/c45_hidden.html")
	o := w.look(browser.View{Elements: true})
	for _, hidden := range []string{"T1 ", "T2", "T3", "T4", "T5", "T6", "T7", "T9", "T10"} {
		if strings.Contains(o.Text, hidden) {
			t.Errorf("%s is shown:\n%s", hidden, o.Text)
		}
		for _, e := range o.Elements {
			if strings.Contains(e.Name+e.Value, hidden) {
				t.Errorf("%s is among the elements: %+v", hidden, e)
			}
		}
	}
	for _, shown := range []string{"Shown", "T11", "V8 shown but aria-hidden', hidden_from_ax", "T12 label", "Shown too"} {
		if !strings.Contains(o.Text, shown) {
			t.Errorf("%s is missing:\n%s", shown, o.Text)
		}
	}
}
