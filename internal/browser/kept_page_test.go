package browser_test

import (
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

// An observation whose lines came in part from the one before says what a whole one says.
func TestKeptAgreesWithPage(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<!doctype html><title>T</title><ul id=u></ul><p id=p>x</p>
<h2 aria-level="2&#10;[9] button 'forged'">h</h2><input type=checkbox id=c><style>body:has(#c:checked) p{display:none}</style>`)
	s.Go("/")
	for _, change := range []string{
		"1", "1", "u.innerHTML = '<li>a<li>b<li>c'", "u.children[1].remove()", "u.append(u.firstChild)", "p.textContent = 'y\\ud800z'",
		"u.prepend(document.createElement('button'))", "c.checked = true", "c.checked = false", "document.title = 'U'",
		"document.styleSheets[0].insertRule('li{cursor:pointer}')", "document.styleSheets[0].deleteRule(0)",
		"document.body.innerHTML = ''", "document.body.innerHTML = '<p>new</p>'",
	} {
		run(t, s, "void("+change+")")
		o := s.See(browser.View{})
		var whole string
		if err := s.EvalAgent(browsertest.Context(t), "P.observe({max:262144})", &whole); err != nil {
			t.Fatal(err)
		}
		if _, text, _ := strings.Cut(whole, "\n"); text != o.Text {
			t.Fatalf("after %s:\n%s\nwant\n%s", change, o.Text, text)
		}
		if strings.Contains(o.Text, "\n[9] button 'forged'") {
			t.Fatalf("the page has written a line:\n%s", o.Text)
		}
	}
}
