package main

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

type productPage struct {
	Product  productDetail
	Variants []variant
	Sizes    []string
	Colours  []string
	Reviews  []review
	Spread   []spreadRow
	Related  []card
	Mine     bool // the customer has reviewed it
	Form     reviewForm
}

type productDetail struct {
	ID           int
	Slug         string
	Name         string
	Description  string
	PriceCents   int
	Rating       *float64
	ReviewCount  int
	Active       bool
	CategoryID   int
	CategoryName string
	CategorySlug string
}

type variant struct {
	ID     int
	SKU    string
	Size   string
	Colour string
	Stock  int
}

type review struct {
	Rating    int
	Title     string
	Body      string
	Author    string
	Verified  bool
	CreatedAt time.Time
}

type spreadRow struct{ Stars, Count int }

type reviewForm struct {
	Rating int
	Title  string
	Body   string
	Errors map[string]string
}

func (s *shop) product(c *call) error { return s.productWith(c, reviewForm{}) }

func (s *shop) productWith(c *call, form reviewForm) error {
	d := productPage{Form: form}
	var err error
	if d.Product, err = s.findProduct(c, c.r.PathValue("slug")); err != nil {
		return err
	}
	id := d.Product.ID
	if d.Variants, err = many[variant](c.ctx(), s.db, `SELECT id, sku, size, colour, stock FROM variants WHERE product_id = $1 ORDER BY position`, id); err != nil {
		return err
	}
	d.Sizes, d.Colours = distinct(d.Variants, func(v variant) string { return v.Size }), distinct(d.Variants, func(v variant) string { return v.Colour })
	if d.Reviews, err = many[review](c.ctx(), s.db, `
		SELECT r.rating, r.title, r.body, split_part(u.name, ' ', 1) AS author, r.created_at,
		  EXISTS (SELECT FROM orders o JOIN order_items i ON i.order_id = o.id JOIN variants v ON v.id = i.variant_id
		          WHERE o.customer_id = r.customer_id AND v.product_id = r.product_id AND o.status <> 'cancelled') AS verified
		FROM reviews r JOIN customers u ON u.id = r.customer_id WHERE r.product_id = $1 ORDER BY r.created_at DESC, r.id DESC`, id); err != nil {
		return err
	}
	for stars := 5; stars >= 1; stars-- {
		n := 0
		for _, r := range d.Reviews {
			if r.Rating == stars {
				n++
			}
		}
		d.Spread = append(d.Spread, spreadRow{stars, n})
	}
	if d.Related, err = many[card](c.ctx(), s.db, `SELECT `+cardColumns+` FROM products p JOIN categories c ON c.id = p.category_id
		WHERE p.active AND p.category_id = $1 AND p.id <> $2 ORDER BY abs(p.price_cents - $3), p.name LIMIT 5`, d.Product.CategoryID, id, d.Product.PriceCents); err != nil {
		return err
	}
	if c.user.CustomerID != 0 {
		d.Mine, err = scalar[bool](c.ctx(), s.db, `SELECT EXISTS (SELECT FROM reviews WHERE product_id = $1 AND customer_id = $2)`, id, c.user.CustomerID)
		if err != nil {
			return err
		}
	}
	return c.render("product", d.Product.Name, d)
}

func (s *shop) findProduct(c *call, slug string) (productDetail, error) {
	return one[productDetail](c.ctx(), s.db, `
		SELECT p.id, p.slug, p.name, p.description, p.price_cents, p.rating::float8 AS rating, p.review_count, p.active,
		  c.id AS category_id, c.name AS category_name, c.slug AS category_slug
		FROM products p JOIN categories c ON c.id = p.category_id WHERE p.slug = $1 AND p.active`, slug)
}

// distinct keeps the order and leaves out the empty value.
func distinct(variants []variant, of func(variant) string) []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, v := range variants {
		if x := of(v); !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}

// stock answers how many of a variant are left while the form is being filled in.
func (s *shop) stock(c *call) error {
	q := c.r.URL.Query()
	v, err := one[variant](c.ctx(), s.db, `
		SELECT v.id, v.sku, v.size, v.colour, v.stock FROM variants v JOIN products p ON p.id = v.product_id
		WHERE p.slug = $1 AND p.active AND v.size = $2 AND v.colour = $3`, q.Get("product"), q.Get("size"), q.Get("colour"))
	if err != nil {
		return err
	}
	return c.json(200, map[string]any{"sku": v.SKU, "available": v.Stock > 0, "text": stockText(v.Stock)})
}

func stockText(n int) string {
	switch {
	case n == 0:
		return "Sold out"
	case n < 5:
		return "Only a few left: " + itoa(n)
	default:
		return "In stock: " + itoa(n)
	}
}

func (s *shop) reviewAdd(c *call) error {
	slug := c.r.PathValue("slug")
	if c.user.CustomerID == 0 {
		if c.user.StaffID != 0 {
			return errForbidden
		}
		c.r.PostForm.Set("back", "/p/"+slug)
		return c.askToSignIn()
	}
	p, err := s.findProduct(c, slug)
	if err != nil {
		return err
	}
	f := readReview(c)
	if len(f.Errors) == 0 {
		err := s.saveReview(c, p.ID, f)
		if err == nil {
			return c.redirectWith("review-sent", "/p/"+slug)
		}
		if !violates(err, "reviews_product_id_customer_id_key") {
			return err
		}
		f.Errors["review-title"] = "You have reviewed this product before."
	}
	c.status = 422
	return s.productWith(c, f)
}

func readReview(c *call) reviewForm {
	f := reviewForm{Title: c.text("title"), Body: strings.ReplaceAll(c.text("body"), "\r\n", "\n"), Errors: map[string]string{}}
	var ok bool
	if f.Rating, ok = c.formInt("rating", 1, 5); !ok {
		f.Errors["rating"] = "Choose one to five stars."
	}
	if n := utf8.RuneCountInString(f.Title); n < 3 || n > 80 {
		f.Errors["review-title"] = "Write a title of 3 to 80 characters."
	}
	if n := utf8.RuneCountInString(f.Body); n < 10 || n > 2000 {
		f.Errors["review-body"] = "Write 10 to 2000 characters."
	}
	return f
}

// saveReview keeps the product's mean in step with its reviews.
func (s *shop) saveReview(c *call, product int, f reviewForm) error {
	return pgx.BeginFunc(c.ctx(), s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(c.ctx(), `SELECT FROM products WHERE id = $1 FOR NO KEY UPDATE`, product); err != nil {
			return err
		}
		if _, err := tx.Exec(c.ctx(), `INSERT INTO reviews (product_id, customer_id, rating, title, body, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
			product, c.user.CustomerID, f.Rating, f.Title, f.Body, c.nowTime()); err != nil {
			return err
		}
		_, err := tx.Exec(c.ctx(), `UPDATE products SET (rating, review_count) =
			(SELECT round(avg(rating), 1), count(*) FROM reviews WHERE product_id = $1) WHERE id = $1`, product)
		return err
	})
}

type myReview struct {
	review
	Slug    string
	Product string
}

func (s *shop) myReviews(c *call) error {
	rows, err := many[myReview](c.ctx(), s.db, `
		SELECT r.rating, r.title, r.body, '' AS author, false AS verified, r.created_at, p.slug, p.name AS product
		FROM reviews r JOIN products p ON p.id = r.product_id WHERE r.customer_id = $1 ORDER BY r.created_at DESC, r.id DESC`, c.user.CustomerID)
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	return c.render("reviews", "Your reviews", rows)
}
