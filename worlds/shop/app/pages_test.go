package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestEveryProductIsFoundByItsName: an agent that searches for a name finds it at the top.
func TestEveryProductIsFoundByItsName(t *testing.T) {
	b := newBench(t)
	type row struct{ Name, Slug string }
	products, err := many[row](t.Context(), b.db, `SELECT name, slug FROM products ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	v := b.customer(1)
	for _, p := range products {
		page := v.get("/search?q=" + url.QueryEscape(p.Name))
		first := strings.Index(page.body, `<h3><a href="/p/`)
		if first < 0 || !strings.HasPrefix(page.body[first:], `<h3><a href="/p/`+p.Slug+`"`) {
			t.Errorf("%s is not the first result for its name", p.Name)
		}
	}
}

func TestFilters(t *testing.T) {
	b := newBench(t)
	v := b.customer(1)
	for query, sql := range map[string]string{
		"":                     `true`,
		"?rating=4":            `rating >= 4`,
		"?rating=4.5":          `rating >= 4.5`,
		"?min=20&max=40.50":    `price_cents BETWEEN 2000 AND 4050`,
		"?stock=1":             `EXISTS (SELECT FROM variants v WHERE v.product_id = p.id AND v.stock > 0)`,
		"?colour=black":        `EXISTS (SELECT FROM variants v WHERE v.product_id = p.id AND v.colour = 'black')`,
		"?category=garden":     `category_id = 10`,
		"?q=alder":             `name || description ILIKE '%alder%'`,
		"?q=100%25":            `false`,
		"?q=_":                 `false`,
		"?colour=navy&stock=1": `EXISTS (SELECT FROM variants v WHERE v.product_id = p.id AND v.colour = 'navy' AND v.stock > 0)`,
	} {
		want := b.int(`SELECT count(*) FROM products p WHERE ` + sql)
		page := v.get("/search" + query)
		says := "of " + itoa(want) + " product"
		if want == 0 {
			says = "No products"
		}
		if !strings.Contains(page.body, says) {
			t.Errorf("/search%s does not say %q", query, says)
		}
	}
}

func TestWrongInputIsAnsweredKindly(t *testing.T) {
	b := newBench(t)
	v, staff := b.customer(1), b.staff(1)
	for path, want := range map[string]int{
		"/p/nothing": 404, "/c/nothing": 404, "/account/orders/SO-1": 404, "/account/addresses/0": 404, "/account/addresses/abc": 404, "/nothing": 404,
		"/search?page=999999999999&per=-1&min=abc&sort=x&rating=NaN": 200, "/search?q=" + strings.Repeat("a", 3000): 200, "/search?q=%00": 400, "/p/%FF": 400,
		"/account/orders?from=yesterday&status=x&page=-3": 200, "/api/stock?product=x": 404, "/api/suggest?q=%25%25": 200, "/checkout": 303,
	} {
		if a := v.get(path); a.status != want {
			t.Errorf("GET %s answers %d, want %d", path, a.status, want)
		}
	}
	if a := staff.post("/admin/coupons", "code", "x", "kind", "percent", "value", "101", "minimum", "-1", "expires", "2024-02-30"); a.status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong coupon answers %d", a.status)
	}
	if a := v.post("/account/addresses/new", "label", "<b>", "country", "Atlantis"); a.status != 422 || strings.Contains(a.body, `value="<b>"`) {
		t.Errorf("a wrong address answers %d", a.status)
	}
	if a := v.post("/account/profile", "name", "X", "phone", "call me"); a.status != 422 {
		t.Errorf("a wrong profile answers %d", a.status)
	}
}

func TestAReviewMovesTheRating(t *testing.T) {
	b := newBench(t)
	v := b.customer(1)
	slug := b.text(`SELECT slug FROM products p WHERE review_count > 2 AND NOT EXISTS (SELECT FROM reviews r WHERE r.product_id = p.id AND r.customer_id = 1) ORDER BY id LIMIT 1`)
	form := []string{"rating", "1", "title", "Not good", "body", "It is not what I expected."}
	if a := v.post("/p/"+slug+"/reviews", form...); a.status != 303 {
		t.Fatalf("the review answers %d", a.status)
	}
	if a := v.post("/p/"+slug+"/reviews", form...); a.status != 422 {
		t.Errorf("a second review answers %d", a.status)
	}
	n := b.int(`SELECT count(*) FROM (SELECT p.rating, p.review_count, round(avg(r.rating), 1) AS mean, count(*) AS n
		FROM products p JOIN reviews r ON r.product_id = p.id GROUP BY p.id) x WHERE rating <> mean OR review_count <> n`)
	if n != 0 {
		t.Errorf("%d products have a rating that is not the mean of their reviews", n)
	}
}

func TestReturnsStayWithinWhatWasBought(t *testing.T) {
	b := newBench(t)
	type row struct {
		ID, CustomerID, Quantity int
		Number                   string
	}
	it, err := one[row](t.Context(), b.db, `SELECT i.id, o.customer_id, i.quantity, o.number FROM order_items i JOIN orders o ON o.id = i.order_id
		WHERE o.status = 'delivered' AND i.quantity = 2 AND o.id NOT IN (SELECT order_id FROM returns) ORDER BY i.id LIMIT 1`)
	if err != nil {
		t.Fatal(err)
	}
	v := b.customer(it.CustomerID)
	send := func(quantity string) int {
		return v.post("/account/orders/"+it.Number+"/return", "quantity-"+itoa(it.ID), quantity, "reason", "damaged").status
	}
	for _, step := range []struct {
		quantity string
		want     int
	}{{"3", 422}, {"-1", 422}, {"0", 422}, {"1", 303}, {"2", 422}, {"1", 303}, {"1", 422}} {
		if got := send(step.quantity); got != step.want {
			t.Errorf("returning %s answers %d, want %d", step.quantity, got, step.want)
		}
	}
}

func TestStaffSavesOnlyWhatItChanged(t *testing.T) {
	b := newBench(t)
	staff := b.staff(1)
	variant := b.int(`SELECT id FROM variants WHERE product_id = 1 AND stock > 3 ORDER BY id LIMIT 1`)
	page := staff.get("/admin/products/1")
	form := staff.form("price", field(t, page.body, "price"+`" type="text`), "active", "1")
	form.Set("price", "12.34")
	for _, v := range strings.Split(b.text(`SELECT string_agg(id || '=' || stock, ',') FROM variants WHERE product_id = 1`), ",") {
		id, stock, _ := strings.Cut(v, "=")
		form.Set("stock-"+id, stock)
		form.Set("was-"+id, stock)
	}
	b.exec(`UPDATE variants SET stock = stock - 1 WHERE id = $1`, variant) // sold while the form is open
	sold := b.int(`SELECT stock FROM variants WHERE id = $1`, variant)
	if a := staff.do("POST", "/admin/products/1", form); a.status != 303 {
		t.Fatalf("saving answers %d", a.status)
	}
	if got := b.int(`SELECT stock FROM variants WHERE id = $1`, variant); got != sold {
		t.Errorf("saving the price made the stock %d, want %d", got, sold)
	}
	if got := b.int(`SELECT price_cents FROM products WHERE id = 1`); got != 1234 {
		t.Errorf("the price is %d", got)
	}
}

func TestParseMoney(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{"12": 1200, "12.5": 1250, "$1,234.50": 123450, ".99": 99, " 7.00 ": 700, "0": 0} {
		if got, err := parseMoney(in); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-1", "1.234", "1e3", "12 EUR", "99999999999", "1.2.3", "."} {
		if got, err := parseMoney(in); err == nil {
			t.Errorf("%q is taken as %d", in, got)
		}
	}
}
