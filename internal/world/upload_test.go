package world_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/world"
)

// An agent uploads the files that the world's author offers, and no others; pictures have
// the scale that the author chose.
func TestUploadsAndScale(t *testing.T) {
	t.Parallel()
	s := scriptWorld(t, `mkdir /tmp/www && cd /tmp/www
echo '<title>up</title><input type=file id=f onchange="this.files[0].text().then(t=>document.title=t)">' > index.html
exec python3 -m http.server 8080 --bind 127.0.0.1`, `{http: "http://127.0.0.1:8080/", timeout: 20s}`, "")
	if err := os.Mkdir(filepath.Join(s.Dir, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "files", "invoice.txt"), []byte("what is in it"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Browser.Uploads, s.Browser.Scale = "files", 2
	img, err := world.BuildImage(testContext(t), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Start(testContext(t), img, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	do := func(text string) *action.Error {
		t.Helper()
		calls, err := action.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Browser().Do(testContext(t), calls)
		if err != nil {
			t.Fatal(err)
		}
		return out.Err
	}
	if err := do(`upload_file(selector="#f", file="invoice.txt")`); err != nil {
		t.Fatal(err)
	}
	o, err := w.Browser().Observe(testContext(t), browser.View{Screenshot: "png"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Title != "what is in it" || !strings.Contains(o.Text, "invoice.txt") {
		t.Errorf("title %q\n%s", o.Title, o.Text)
	}
	if o.Screenshot == nil || o.Screenshot.Width != 2560 || o.Screenshot.Scale != 2 {
		t.Errorf("got picture %+v", o.Screenshot)
	}
	for _, name := range []string{"../invoice.txt", "/etc/passwd", "missing.txt"} {
		if do(`upload_file(selector="#f", file="`+name+`")`) == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
