package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pommelgym/pommel/internal/postgres/pgtest"
)

var testClock = time.Date(2025, 3, 10, 9, 0, 0, 0, time.UTC)

// bench is the shop on a database of its own, with the seed.
type bench struct {
	t      *testing.T
	db     *pgxpool.Pool
	server *httptest.Server
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	pg := pgtest.New(t, read(t, "../db/schema.sql"), read(t, "../db/seed.sql"))
	db, err := openDatabase(context.Background(), pg.AppDSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s, err := newShop(db, func() time.Time { return testClock })
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.handler())
	t.Cleanup(server.Close)
	return &bench{t: t, db: db, server: server}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) int(sql string, args ...any) int {
	b.t.Helper()
	n, err := scalar[int](b.t.Context(), b.db, sql, args...)
	if err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (b *bench) text(sql string, args ...any) string {
	b.t.Helper()
	s, err := scalar[string](b.t.Context(), b.db, sql, args...)
	if err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return s
}

// visitor is a browser without a page: it keeps the session's cookie and the form token.
type visitor struct {
	b     *bench
	token string
	csrf  string
}

// customer is signed in; so is staff.
func (b *bench) customer(id int) *visitor { return b.signedIn("customer_id", id) }
func (b *bench) staff(id int) *visitor    { return b.signedIn("staff_id", id) }

func (b *bench) signedIn(column string, id int) *visitor {
	v := &visitor{b: b, token: newToken()}
	b.exec(`INSERT INTO sessions (token, `+column+`) VALUES ($1, $2)`, v.token, id)
	v.csrf = (&call{token: v.token}).csrf()
	return v
}

type answer struct {
	status   int
	location string
	body     string
}

func (v *visitor) do(method, path string, form url.Values) answer {
	v.b.t.Helper()
	a, err := v.try(method, path, form)
	if err != nil {
		v.b.t.Fatal(err)
	}
	return a
}

// try may be called from any goroutine.
func (v *visitor) try(method, path string, form url.Values) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, v.b.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if v.token != "" {
		req.AddCookie(&http.Cookie{Name: sessionCookie, Value: v.token})
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header.Get("Location"), string(body)}, err
}

func (v *visitor) get(path string) answer { return v.do("GET", path, nil) }

// post sends a form with the visitor's token; pairs are names and values.
func (v *visitor) post(path string, pairs ...string) answer {
	v.b.t.Helper()
	return v.do("POST", path, v.form(pairs...))
}

func (v *visitor) form(pairs ...string) url.Values {
	form := url.Values{csrfField: {v.csrf}}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

// variant finds an article with a price, a stock and no choice of size or colour.
func (b *bench) variant() (id, cents int) {
	id = b.int(`SELECT v.id FROM variants v JOIN products p ON p.id = v.product_id WHERE v.size = '' AND v.colour = '' AND v.stock >= 6 ORDER BY v.id LIMIT 1`)
	return id, b.int(`SELECT price_cents FROM products p JOIN variants v ON v.product_id = p.id WHERE v.id = $1`, id)
}

func (b *bench) address(customer int) string {
	return itoa(b.int(`SELECT min(id) FROM addresses WHERE customer_id = $1`, customer))
}

// toReview fills the cart and walks to the last step; it answers the form that places the order.
func (v *visitor) toReview(customer, variant, quantity int) url.Values {
	v.b.t.Helper()
	v.post("/cart/add", "variant", itoa(variant), "quantity", itoa(quantity))
	v.post("/checkout", "address", v.b.address(customer))
	v.post("/checkout/delivery", "shipping", "standard", "payment", "card")
	page := v.get("/checkout/review")
	if page.status != 200 {
		v.b.t.Fatalf("the review page answers %d, leading to %q", page.status, page.location)
	}
	return v.form("checkout_token", field(v.b.t, page.body, "checkout_token"), "seen_total", field(v.b.t, page.body, "seen_total"))
}

func field(t *testing.T, page, name string) string {
	t.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no field %s", name)
	}
	return m[1]
}
