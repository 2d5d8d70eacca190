package world_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/world"
	"github.com/pommelgym/pommel/internal/world/worldtest"
)

// rewound is a world under the driver rewind whose resets must all happen in place.
type rewound struct {
	t      *testing.T
	driver world.Rewind
	w      *world.World
	took   []time.Duration
}

func startRewound(t *testing.T, img *world.Image, verifyEvery int) *rewound {
	t.Helper()
	r := &rewound{t: t, driver: world.Rewind{VerifyEvery: verifyEvery}}
	if err := r.driver.Available(testContext(t)); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	var err error
	if r.w, err = r.driver.Start(testContext(t), img, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.w == nil {
			return
		}
		if err := r.w.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rewound) reset(after string) {
	r.t.Helper()
	var report world.ResetReport
	var err error
	r.w, report, err = r.driver.Reset(testContext(r.t), r.w)
	if err != nil {
		r.t.Fatalf("reset after %s: %v", after, err)
	}
	if report.SlowPath {
		r.t.Fatalf("not in place after %s: %s", after, report.Reason)
	}
	if !report.Verified {
		r.took = append(r.took, report.Took)
	}
}

func (r *rewound) observe(v browser.View) *browser.Observation {
	r.t.Helper()
	o, err := r.w.Browser().Observe(testContext(r.t), v)
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

// do carries out an action that may fail, as an agent's may.
func (r *rewound) do(text string) {
	r.t.Helper()
	if err := r.try(text); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
}

func (r *rewound) try(text string) error {
	calls, err := action.Parse(text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = r.w.Browser().Do(ctx, calls)
	return err
}

// fingerprint is the content of every table and the place of every sequence.
func (r *rewound) fingerprint() string {
	r.t.Helper()
	ctx := testContext(r.t)
	text := func(sql string) []string {
		rows, err := r.w.Reader().Query(ctx, sql)
		if err != nil {
			r.t.Fatalf("%s: %v", sql, err)
		}
		var out []string
		for _, row := range rows.Text {
			out = append(out, *row[0])
		}
		return out
	}
	var parts []string
	for _, table := range text(`SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`) {
		parts = append(parts, table+text("SELECT count(*) || ' ' || coalesce(md5(string_agg(x::text, chr(10) ORDER BY x::text)), '') FROM " + table + " x")[0])
	}
	for _, seq := range text(`SELECT format('%I.%I', schemaname, sequencename) FROM pg_sequences ORDER BY 1`) {
		parts = append(parts, seq+text("SELECT last_value || ' ' || is_called FROM " + seq)[0])
	}
	if len(parts) == 0 {
		r.t.Fatal("the database has no tables")
	}
	return strings.Join(parts, "\n")
}

// begin does what the start of an episode does.
func (r *rewound) begin(seed uint64, url string) *browser.Observation {
	r.t.Helper()
	ctx, b := testContext(r.t), r.w.Browser()
	if err := b.SetEpisode(ctx, seed, r.w.Image().Spec.Clock); err != nil {
		r.t.Fatal(err)
	}
	if err := b.Navigate(ctx, url); err != nil {
		r.t.Fatal(err)
	}
	return r.observe(browser.View{Elements: true})
}

// randomAction picks something that an agent could do.
func randomAction(rng *rand.Rand, o *browser.Observation, start string) string {
	var bids []string
	for _, e := range o.Elements {
		if e.Interactive {
			bids = append(bids, e.Bid)
		}
	}
	if o.Dialog != nil {
		return "dialog_accept()"
	}
	if len(bids) > 0 && rng.IntN(4) > 0 {
		bid := action.Quote(bids[rng.IntN(len(bids))])
		return []string{"click(" + bid + ")", "click(" + bid + ")", "fill(" + bid + `, "lamp 3")`, "hover(" + bid + ")"}[rng.IntN(4)]
	}
	return []string{
		"goto(" + action.Quote(start) + ")", "go_back()", "scroll(0, 300)", "new_tab()", "tab_close()",
		`keyboard_press("Enter")`, "noop(1000)", "mouse_click(300, 200)",
	}[rng.IntN(8)]
}

func same(a, b *browser.Observation) bool { return reflect.DeepEqual(a, b) }

// After any episode the shop is what it was: the page that stands open, the page that an
// episode begins with, and every row.
func TestRewindOfTheShopAfterRandomEpisodes(t *testing.T) {
	dir, err := world.Find("shop")
	if err != nil {
		t.Fatal(err)
	}
	r := startRewound(t, imageOf(t, dir), verifyEvery())
	start := r.w.Image().Spec.Browser.StartURL
	open, rows := r.observe(browser.View{Elements: true}), r.fingerprint()
	r.reset("looking")
	first := r.begin(7, start)
	r.reset("the first page")
	changed := 0
	for i := range episodes() {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		var done []string
		if i%2 == 0 {
			if got := r.begin(7, start); !same(got, first) {
				t.Fatalf("episode %d begins with\n%+v\nwant\n%+v", i, got, first)
			}
		}
		for range 10 {
			view := browser.View{Elements: true}
			if rng.IntN(10) == 0 {
				view.Screenshot = "png"
				done = append(done, "SHOT")
			}
			a := randomAction(rng, r.observe(view), start)
			done = append(done, a)
			if err := r.try(a); err != nil {
				t.Fatalf("episode %d after %d resets: %s: %v", i, len(r.took), strings.Join(done, "; "), err)
			}
		}
		if i%3 == 1 {
			must(t, r.w.Setup(testContext(t), []postgres.Statement{
				{SQL: "UPDATE products SET name = name || ' ' || $1", Args: []any{i}}, {SQL: "CREATE TABLE junk AS SELECT generate_series(1, 2000) n"},
			}))
		}
		if r.fingerprint() != rows {
			changed++
		}
		after := fmt.Sprintf("episode %d: %s", i, strings.Join(done, "; "))
		r.reset(after)
		if got := r.observe(browser.View{Elements: true}); !same(got, open) {
			t.Fatalf("after %s the page is\n%+v\nwant\n%+v", after, got, open)
		}
		if got := r.fingerprint(); got != rows {
			t.Fatalf("after %s the rows are\n%s\nwant\n%s", after, got, rows)
		}
		if changes, err := r.w.Reader().Changes(testContext(t)); err != nil || len(changes) > 0 {
			t.Fatalf("after %s: changes %v, %v", after, changes, err)
		}
	}
	slices.Sort(r.took)
	at := func(p float64) time.Duration { return r.took[int(p*float64(len(r.took)-1))] }
	t.Logf("%d resets in place, rows were changed before %d; p50 %v p90 %v p99 %v max %v", len(r.took), changed, at(0.5), at(0.9), at(0.99), at(1))
	if changed == 0 {
		t.Error("no episode changed a row: the test proves nothing about rows")
	}
}

// episodes is how many; POMMEL_REWINDS asks for another number.
func episodes() int {
	if n, err := strconv.Atoi(os.Getenv("POMMEL_REWINDS")); err == nil {
		return n
	}
	return 45
}

// dataPage shows HTML without a server.
func dataPage(html string) string { return "data:text/html," + strings.ReplaceAll(html, "#", "%23") }

// What an episode leaves behind may be stranger than rows: every such thing is undone.
func TestRewindOfStrangeEnds(t *testing.T) {
	t.Parallel()
	r := startRewound(t, worldtest.MiniImage(t), 3)
	open := r.observe(browser.View{Elements: true})
	ends := map[string]func(context.Context, *browser.Browser){
		"an open dialog": func(ctx context.Context, b *browser.Browser) {
			must(t, b.Navigate(ctx, dataPage(`<button onclick="confirm('sure?')">ask</button>`)))
			r.do(`click(selector="button")`)
			if o := r.observe(browser.View{}); o.Dialog == nil {
				t.Fatal("no dialog is open")
			}
		},
		"many tabs": func(ctx context.Context, b *browser.Browser) {
			r.do("new_tab()")
			r.do("new_tab()")
			must(t, b.Navigate(ctx, "http://127.0.0.1:8080/"))
			r.do("tab_focus(0)")
		},
		"another tab than the first": func(ctx context.Context, b *browser.Browser) {
			r.do("new_tab()")
			r.do("tab_focus(0)")
			r.do("tab_close()")
		},
		"a window that a page has opened": func(ctx context.Context, b *browser.Browser) {
			must(t, b.Navigate(ctx, dataPage(`<button onclick="open('about:blank')">open</button>`)))
			r.do(`click(selector="button")`)
		},
		"a worker and timers": func(ctx context.Context, b *browser.Browser) {
			must(t, b.Navigate(ctx, dataPage(`<button onclick="new Worker(URL.createObjectURL(new Blob(['setInterval(()=>postMessage(1),5)'])));setInterval(()=>document.title+='x',7)">go</button>`)))
			r.do(`click(selector="button")`)
			r.do("noop(500)")
		},
		"a page that does not want to be left": func(ctx context.Context, b *browser.Browser) {
			must(t, b.Navigate(ctx, dataPage(`<button onclick="onbeforeunload=e=>e.preventDefault();onpagehide=()=>{fetch('http://127.0.0.1:8080/add',{mode:'no-cors',keepalive:true});const t=Date.now();while(Date.now()-t<1500);}">edit</button>`)))
			r.do(`click(selector="button")`)
		},
		"another shape of what the application has prepared": func(ctx context.Context, b *browser.Browser) {
			must(t, r.w.Setup(ctx, []postgres.Statement{{SQL: "ALTER TABLE note ALTER COLUMN body TYPE varchar(200), ADD COLUMN extra int"}}))
			frame := `<iframe src="http://127.0.0.1:8080/"></iframe>`
			must(t, b.Navigate(ctx, dataPage(strings.Repeat(frame, 8))))
		},
		"much memory": func(ctx context.Context, b *browser.Browser) {
			must(t, b.Navigate(ctx, dataPage(`<button onclick="window.keep=[];for(let i=0;i<300000;i++)keep.push({i,s:'x'+i})">go</button>`)))
			r.do(`click(selector="button")`)
		},
		"a held button": func(ctx context.Context, b *browser.Browser) {
			r.do(`mouse_down(40, 40)`)
			r.do(`keyboard_down("Shift")`)
		},
		"a picture": func(ctx context.Context, b *browser.Browser) {
			r.observe(browser.View{Screenshot: "png", HTML: true, AXTree: true})
		},
		"rows, tables and an error": func(ctx context.Context, b *browser.Browser) {
			must(t, r.w.Setup(ctx, []postgres.Statement{{SQL: "CREATE TABLE junk AS SELECT generate_series(1, 20000) a"}, {SQL: "CREATE INDEX ON junk (a)"}, {SQL: "DELETE FROM note"}}))
			if err := r.w.Setup(ctx, []postgres.Statement{{SQL: "SELECT 1/0"}}); err == nil {
				t.Error("division by zero went well")
			}
			if _, err := r.w.Reader().Changes(ctx); err != nil {
				t.Error(err)
			}
		},
	}
	var names []string
	for name := range ends {
		names = append(names, name)
	}
	slices.Sort(names)
	rows := r.fingerprint()
	for range 3 {
		for _, name := range names {
			ends[name](testContext(t), r.w.Browser())
			r.reset(name)
			r.asBefore(name, open, rows)
		}
	}
}

// asBefore makes sure that a world of mini that was put back shows and holds what it did, and
// works on: a click reaches the application and its database.
func (r *rewound) asBefore(after string, open *browser.Observation, rows string) {
	r.t.Helper()
	if got := r.observe(browser.View{Elements: true}); !same(got, open) {
		r.t.Fatalf("after %s:\n%+v\nwant\n%+v", after, got, open)
	}
	if got := r.fingerprint(); got != rows {
		r.t.Fatalf("after %s:\n%s\nwant\n%s", after, got, rows)
	}
	r.do(`click(selector="text=Add")`)
	if o := r.observe(browser.View{}); o.Title != "Added" {
		r.t.Fatalf("a click after %s leads to %q:\n%s", after, o.Title, o.Text)
	}
	r.reset("a click")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever keeps a World beyond its reset holds a closed one.
func TestRewindHandsOverANewWorld(t *testing.T) {
	t.Parallel()
	r := startRewound(t, worldtest.MiniImage(t), 0)
	old := r.w
	r.reset("nothing")
	select {
	case <-old.Lost():
	default:
		t.Error("the old world is not lost")
	}
	must(t, old.Close())
	must(t, r.w.Check(testContext(t)))
}

// verifyEvery is after how many resets one is compared byte for byte; POMMEL_VERIFY asks for another number.
func verifyEvery() int {
	if n, err := strconv.Atoi(os.Getenv("POMMEL_VERIFY")); err == nil {
		return n
	}
	return 25
}
