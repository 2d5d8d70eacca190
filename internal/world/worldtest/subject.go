package worldtest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/world"
)

// Subject is a world that the suite runs on, and what the suite must know of it.
type Subject struct {
	Image *world.Image
	// App is the application's program, Crash a page that ends it, if it has one.
	App, Crash string
	// Rows asks for a summary of the database, which is Golden in a fresh world.
	Rows, Golden string
	// Shown is on the first page, Logged in the application's output.
	Shown  []string
	Logged string
	// Dirty acts as an agent does, and demands that it has had effects.
	Dirty func(t *testing.T, w *world.World)
	// Damage is what the application's role may do to the database.
	Damage []postgres.Statement
	// Mark writes $1 to where the page at MarkURL shows it.
	Mark, MarkURL string
	// Crowd is how many worlds are started at once.
	Crowd int
	// Pool tries the application's connections, if it has pages for that.
	Pool *PoolPages
}

// PoolPages are pages of an application that keeps connections to the database.
type PoolPages struct {
	// Many asks for all columns of some rows in many connections at once, and shows Row Times times.
	Many  string
	Row   string
	Times int
	// Hold leaves a transaction open.
	Hold string
	// Widen adds a column to those rows, which then show Wide.
	Widen, Wide string
}

// MiniImage builds the small test world.
func MiniImage(tb testing.TB) *world.Image {
	tb.Helper()
	return imageAt(tb, "internal", "world", "testdata", "worlds", "mini")
}

// imageAt builds the world of a folder of this repository.
func imageAt(tb testing.TB, path ...string) *world.Image {
	tb.Helper()
	dir, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	s, err := world.Load(filepath.Join(append([]string{dir}, path...)...))
	if err != nil {
		tb.Fatal(err)
	}
	img, err := world.BuildImage(deadline(tb), s, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return img
}

const home = "http://127.0.0.1:8080/"

// Mini is the smallest whole world.
func Mini(tb testing.TB) Subject {
	tb.Helper()
	return Subject{
		Image: MiniImage(tb), App: "mini", Crash: home + "crash", Crowd: 32,
		Rows:   `SELECT count(*), max(id), max(ticket), (SELECT last_value FROM ticket_no), to_regclass('junk') IS NULL FROM note`,
		Golden: "2 501 1005 1005 t",
		Shown:  []string{"500/1000 first", "501/1005 second", "file=", "cookie=none", "stored=none"},
		Logged: "listening",
		Dirty: func(t *testing.T, w *world.World) {
			t.Helper()
			do(t, w, `click(selector="text=Add")`)
			if o := observe(t, w); o.Title != "Added" {
				t.Fatalf("after the click: %s %s", o.Title, o.Text)
			}
			do(t, w, `goto("`+home+`")`)
			o := observe(t, w)
			for _, want := range []string{"502/1010 added", "file=dirty", "cookie=yes", "stored=yes"} {
				if !strings.Contains(o.Text, want) {
					t.Fatalf("the page lacks %q:\n%s", want, o.Text)
				}
			}
		},
		Damage: []postgres.Statement{
			{SQL: "CREATE TABLE junk (a int)"}, {SQL: "DELETE FROM note"}, {SQL: "ALTER TABLE note ADD COLUMN extra int"},
			{SQL: "SELECT nextval('ticket_no')"},
		},
		Mark: "INSERT INTO note (body) VALUES ($1)", MarkURL: home,
		Pool: &PoolPages{
			Many: home + "crowd", Row: "500 1000 first", Times: 20, Hold: home + "hold",
			Widen: "ALTER TABLE note ADD COLUMN extra text DEFAULT 'wide'", Wide: "500 1000 first wide",
		},
	}
}

// Shop is the bundled shop: a whole application.
func Shop(tb testing.TB) Subject {
	tb.Helper()
	s := Subject{
		Image: imageAt(tb, "worlds", "shop"), App: "shop", Crowd: 12,
		Rows: `SELECT count(*), min(id), max(id), md5(string_agg(c::text, '|' ORDER BY id)), (SELECT count(*) FROM sessions),
			(SELECT md5(string_agg(p::text, '|' ORDER BY id)) FROM products p), to_regclass('junk') IS NULL,
			(SELECT string_agg(sequencename || coalesce(last_value, 0), ' ' ORDER BY 1) FROM pg_sequences) FROM customers c`,
		Shown: []string{"Sign in"},
		Dirty: func(t *testing.T, w *world.World) {
			t.Helper()
			for _, a := range []string{
				`click(selector="#login-link")`, `click(selector="#register-link")`, `fill(selector="#name", value="Ada Dirty")`,
				`fill(selector="#email", value="ada.dirty@example.com")`, `fill(selector="#password", value="correct horse 7")`, `click(selector="#register")`,
			} {
				do(t, w, a)
			}
			if got := query(t, w, `SELECT name FROM customers WHERE email = 'ada.dirty@example.com'`); got != "Ada Dirty" {
				t.Fatalf("nobody was registered: %s", observe(t, w).Text)
			}
		},
		Damage: []postgres.Statement{
			{SQL: "CREATE TABLE junk (a int)"}, {SQL: "UPDATE products SET price_cents = price_cents + 1"}, {SQL: "DELETE FROM reviews"},
			{SQL: "ALTER TABLE customers ADD COLUMN extra int"},
		},
		Mark: "UPDATE categories SET description = $1 WHERE slug = 'lighting'", MarkURL: home + "c/lighting",
	}
	w, err := world.Start(deadline(tb), s.Image, nil)
	if err != nil {
		tb.Fatal(err)
	}
	s.Golden = query(tb, w, s.Rows)
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return s
}
