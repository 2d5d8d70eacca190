package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/browser/browsertest"
)

func TestScrollPane(t *testing.T) {
	t.Parallel()
	s := browsertest.NewSite(t)
	s.Page("/", `<style>html,body{height:100%;margin:0;overflow:hidden}#p{height:400px;overflow:auto}</style>
<div id=p></div><output id=log></output><script>let n=0;for(;n<90;n++){const r=document.createElement('div');r.id='r'+n;r.textContent='row '+n;r.style.height='30px';p.append(r)}
let scrolls=0, wheels=0; p.onscroll=()=>scrolls++; onwheel=()=>wheels++</script>`)
	s.Go("/")
	for i := range 6 {
		out := s.OK(`scroll(0, 600, selector="#r5")`)
		top := min(600*(i+1), 90*30-400)
		got, want := value(t, s, "p.scrollTop"), fmt.Sprint(top)
		if got != want {
			t.Fatalf("after %d turns the pane is at %s, want %s; notes %q", i+1, got, want, out.Notes)
		}
		moved := top - min(600*i, 90*30-400)
		want = fmt.Sprintf("scrolled by (0, %d)", moved)
		if moved == 0 {
			want += ": it is at its end"
		}
		if note := strings.Join(out.Notes, " "); !strings.Contains(note, want) {
			t.Fatalf("turn %d moved %d and says %q", i+1, moved, note)
		}
	}
	if got := value(t, s, "wheels"); got != "6" {
		t.Fatalf("the page saw %s wheel events", got)
	}
}
