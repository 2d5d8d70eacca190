// Proof is an application for tests of checks: notes, parcels, and pages that are made wrongly.
package main

import (
	"context"
	"flag"
	"fmt"
	"html/template"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type app struct {
	db   *pgxpool.Pool
	born time.Time
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	flag.Parse()
	db, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	a := &app{db: db, born: time.Now()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := db.Ping(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /{$}", a.notes)
	mux.HandleFunc("POST /add", a.write("INSERT INTO note (body) VALUES ($1)", "text"))
	mux.HandleFunc("POST /star", a.write("UPDATE note SET star = true WHERE id = $1::int", "id"))
	mux.HandleFunc("GET /one", func(w http.ResponseWriter, r *http.Request) {
		show(w, `<h1>One</h1><form method=post action=/add><input type=hidden name=text value=one><button id=go>Go</button></form>`, nil)
	})
	mux.HandleFunc("GET /parcels", a.parcels)
	mux.HandleFunc("GET /patience", func(w http.ResponseWriter, r *http.Request) { show(w, patience, nil) })
	log.Fatal(http.ListenAndServe(*listen, mux))
}

// patience takes half a minute: a timer, a request after five seconds, an animation.
const patience = `<h1>Patience</h1><style>@keyframes go { to { margin-left: 90px } } #bar { animation: go 20s }</style>
<p id=bar>bar</p><p id=timer>waiting</p><p id=request>asking</p><p id=moved>moving</p><script>
setTimeout(() => { timer.textContent = 'half a minute' }, 30000)
setTimeout(async () => { request.textContent = 'answered ' + (await fetch('/one')).status }, 5000)
bar.onanimationend = () => { moved.textContent = 'moved at ' + Math.round(performance.now() / 1000) + ' s' }
</script>`

func show(w http.ResponseWriter, page string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := template.Must(template.New("").Parse("<!doctype html><title>Notes</title>"+page)).Execute(w, data); err != nil {
		log.Print(err)
	}
}

type note struct {
	ID   int
	Body string
	Star bool
}

// notes shows the notes. ?noise adds what is different each time, ?leak what nobody may read.
func (a *app) notes(w http.ResponseWriter, r *http.Request) {
	rows, err := a.db.Query(r.Context(), "SELECT id, body, star FROM note ORDER BY id")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[note])
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	data := struct {
		Notes []note
		Noise string
		Leak  template.HTML
	}{Notes: list}
	if r.URL.Query().Has("noise") {
		data.Noise = time.Since(a.born).String()
	}
	if r.URL.Query().Has("leak") {
		data.Leak = template.HTML(fmt.Sprintf("<i hidden data-codes=%q></i>", a.codes(r.Context())))
	}
	show(w, `<h1>Notes</h1>{{.Leak}}<p>{{.Noise}}</p><a id=parcels href=/parcels>Parcels</a>
<form method=post action=/add><label>Text <input id=text name=text></label><button id=add>Add</button></form>
<ul>{{range .Notes}}<li>{{.Body}} {{if .Star}}starred{{else}}<form method=post action=/star><input type=hidden name=id value={{.ID}}><button class=star>Star {{.Body}}</button></form>{{end}}</li>{{end}}</ul>`, data)
}

func (a *app) codes(ctx context.Context) string {
	var all string
	_ = a.db.QueryRow(ctx, "SELECT string_agg(code, ' ') FROM parcel").Scan(&all)
	return all
}

func (a *app) parcels(w http.ResponseWriter, r *http.Request) {
	rows, err := a.db.Query(r.Context(), "SELECT code, place FROM parcel ORDER BY code")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Code, Place string }])
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	show(w, `<h1>Parcels</h1><table>{{range .}}<tr><td>{{.Code}}<td>{{.Place}}</tr>{{end}}</table>`, list)
}

// write runs one statement with one field of the form and goes back to the notes.
func (a *app) write(sql, field string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := a.db.Exec(r.Context(), sql, r.FormValue(field)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}
