// Mini is an application for tests: notes, a file, and ways to misbehave.
package main

import (
	"context"
	"flag"
	"fmt"
	"html"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type app struct {
	db *pgxpool.Pool
}

// notesFile is the state that the application keeps beside its database.
const notesFile = "/tmp/notes.txt"

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	flag.Parse()
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	db, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	a := &app{db: db}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.health)
	mux.HandleFunc("GET /{$}", a.list)
	mux.HandleFunc("GET /add", a.add)
	mux.HandleFunc("GET /crowd", crowd)
	mux.HandleFunc("GET /all", a.all)
	mux.HandleFunc("GET /hold", a.hold)
	mux.HandleFunc("GET /crash", func(http.ResponseWriter, *http.Request) {
		log.Print("crashing as asked")
		os.Exit(3)
	})
	log.Print("listening")
	log.Fatal(http.ListenAndServe(*listen, mux))
}

func (a *app) health(w http.ResponseWriter, r *http.Request) {
	if err := a.db.Ping(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// list shows all notes, the file, the cookies and the page's own storage.
func (a *app) list(w http.ResponseWriter, r *http.Request) {
	items, err := a.lines(r.Context(), "SELECT id, ticket, body FROM note ORDER BY id", func(row pgx.CollectableRow) (string, error) {
		var id, ticket int
		var body string
		err := row.Scan(&id, &ticket, &body)
		return fmt.Sprintf("<li>%d/%d %s</li>", id, ticket, html.EscapeString(body)), err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	file, _ := os.ReadFile(notesFile)
	seen := "none"
	if c, err := r.Cookie("seen"); err == nil {
		seen = c.Value
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><title>Notes</title><h1>Notes</h1><ul>%s</ul>
<p id=file>file=%s</p><p id=cookie>cookie=%s</p><p id=stored></p><a href=/add>Add</a>
<script>document.getElementById('stored').textContent = 'stored=' + (localStorage.seen || 'none')</script>`,
		items, html.EscapeString(string(file)), html.EscapeString(seen))
}

// add leaves a mark everywhere: a row, a sequence, a file, a cookie, the page's storage.
func (a *app) add(w http.ResponseWriter, r *http.Request) {
	if _, err := a.db.Exec(r.Context(), "INSERT INTO note (body) VALUES ($1)", "added"); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if err := os.WriteFile(notesFile, []byte("dirty"), 0o600); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes", MaxAge: 3600, Path: "/"})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!doctype html><title>Added</title><h1>Added</h1><a href=/>Back</a><script>localStorage.seen = 'yes'</script>`)
}

// crowd asks for the same rows many times at once, so that every connection of the pool has a part in it.
func crowd(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<!doctype html><title>Crowd</title>")
	for n := range 20 {
		fmt.Fprintf(w, "<iframe src='/all?n=%d'></iframe>", n)
	}
}

// all shows every column there is, by a statement that each connection prepares once.
func (a *app) all(w http.ResponseWriter, r *http.Request) {
	text, err := a.lines(r.Context(), "SELECT * FROM note ORDER BY id", func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		return fmt.Sprintln(values...), err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, text, "all of them")
}

// lines asks for rows and writes each as text.
func (a *app) lines(ctx context.Context, query string, line pgx.RowToFunc[string]) (string, error) {
	rows, err := a.db.Query(ctx, query)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, line)
	return strings.Join(lines, ""), err
}

// hold leaves a transaction open that has changed a row.
func (a *app) hold(w http.ResponseWriter, _ *http.Request) {
	tx, err := a.db.Begin(context.Background())
	if err == nil {
		_, err = tx.Exec(context.Background(), "UPDATE note SET body = 'held' WHERE id = 500")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "held")
}
