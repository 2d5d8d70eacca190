package main

import (
	"strconv"

	"github.com/jackc/pgx/v5"
)

type adminProductRow struct {
	ID         int
	Name       string
	Category   string
	PriceCents int
	Stock      int
	Active     bool
}

type adminProductsPage struct {
	Query    string
	Category string
	SoldOut  bool
	Products []adminProductRow
	Pager    pager
}

func (s *shop) adminProducts(c *call) error {
	d := adminProductsPage{Query: c.text("q"), Category: c.text("category"), SoldOut: c.text("sold_out") == "1"}
	const where = ` FROM products p JOIN categories c ON c.id = p.category_id
		WHERE (p.name ILIKE ALL ($1::text[]) OR EXISTS (SELECT FROM variants v WHERE v.product_id = p.id AND v.sku ILIKE $2))
		AND (NOT $3 OR EXISTS (SELECT FROM variants v WHERE v.product_id = p.id AND v.stock = 0))
		AND ($4 = '' OR c.slug = $4)`
	args := []any{patterns(d.Query), escapeLike(d.Query), d.SoldOut, d.Category}
	total, err := scalar[int](c.ctx(), s.db, `SELECT count(*)`+where, args...)
	if err != nil {
		return err
	}
	page, ok := c.formInt("page", 1, 10000)
	if !ok {
		page = 1
	}
	d.Pager = newPager(c.r.URL, page, adminRowsPerPage, total)
	args = append(args, adminRowsPerPage, (d.Pager.Page-1)*adminRowsPerPage)
	d.Products, err = many[adminProductRow](c.ctx(), s.db, `SELECT p.id, p.name, c.name AS category, p.price_cents, p.active,
		(SELECT coalesce(sum(stock), 0)::int FROM variants v WHERE v.product_id = p.id) AS stock`+where+` ORDER BY p.name LIMIT $5 OFFSET $6`, args...)
	if err != nil {
		return err
	}
	return c.render("admin-products", "Products", d)
}

type adminProductPage struct {
	ID          int
	Slug        string
	Name        string
	Description string
	Category    string
	Price       string
	Active      bool
	Variants    []variant
	Stocks      map[int]string // what was typed
	Errors      map[string]string
}

func (s *shop) loadAdminProduct(c *call, q querier, lock bool) (adminProductPage, error) {
	id, err := c.pathID()
	if err != nil {
		return adminProductPage{}, err
	}
	d := adminProductPage{ID: id, Stocks: map[int]string{}, Errors: map[string]string{}}
	// Variants before the product: orders lock them in this order too.
	lockVariants, lockProduct := "", ""
	if lock {
		lockVariants, lockProduct = " FOR NO KEY UPDATE", " FOR NO KEY UPDATE OF p"
	}
	if d.Variants, err = many[variant](c.ctx(), q, `SELECT id, sku, size, colour, stock FROM variants WHERE product_id = $1 ORDER BY id`+lockVariants, id); err != nil {
		return d, err
	}
	type row struct {
		Slug, Name, Description, Category string
		PriceCents                        int
		Active                            bool
	}
	p, err := one[row](c.ctx(), q, `SELECT p.slug, p.name, p.description, c.name AS category, p.price_cents, p.active
		FROM products p JOIN categories c ON c.id = p.category_id WHERE p.id = $1`+lockProduct, id)
	if err != nil {
		return d, err
	}
	d.Slug, d.Name, d.Description, d.Category, d.Price, d.Active = p.Slug, p.Name, p.Description, p.Category, dollars(p.PriceCents), p.Active
	for _, v := range d.Variants {
		d.Stocks[v.ID] = strconv.Itoa(v.Stock)
	}
	return d, nil
}

func (s *shop) adminProduct(c *call) error {
	d, err := s.loadAdminProduct(c, s.db, false)
	if err != nil {
		return err
	}
	return c.render("admin-product", d.Name, d)
}

// adminProductSave writes only what was changed in the form: stock that was sold
// while the form was open is not put back by saving another field.
func (s *shop) adminProductSave(c *call) error {
	var d adminProductPage
	changed := 0
	err := pgx.BeginFunc(c.ctx(), s.db, func(tx pgx.Tx) error {
		var err error
		if d, err = s.loadAdminProduct(c, tx, true); err != nil {
			return err
		}
		stocks, price := d.read(c)
		if len(d.Errors) > 0 {
			return nil
		}
		for _, v := range d.Variants {
			n, touched := stocks[v.ID]
			if !touched {
				continue
			}
			changed++
			if _, err := tx.Exec(c.ctx(), `UPDATE variants SET stock = $2 WHERE id = $1`, v.ID, n); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(c.ctx(), `UPDATE products SET price_cents = $2, active = $3 WHERE id = $1 AND (price_cents, active) <> ($2, $3)`, d.ID, price, d.Active)
		changed += int(tag.RowsAffected())
		return err
	})
	if err != nil {
		return err
	}
	if len(d.Errors) > 0 {
		c.status = 422
		return c.render("admin-product", d.Name, d)
	}
	if changed == 0 {
		return c.redirectWith("nothing-changed", c.r.URL.Path)
	}
	return c.redirectWith("saved", c.r.URL.Path)
}

// read takes over what was typed, and answers the stocks that were changed and the price.
func (d *adminProductPage) read(c *call) (map[int]int, int) {
	stocks := map[int]int{}
	d.Price, d.Active = c.text("price"), c.text("active") == "1"
	price, err := parseMoney(d.Price)
	if err != nil || price == 0 {
		d.Errors["price"] = "Write a price above zero, like 12.50."
	}
	for _, v := range d.Variants {
		field := "stock-" + strconv.Itoa(v.ID)
		typed := c.text(field)
		if typed == c.text("was-"+strconv.Itoa(v.ID)) {
			continue
		}
		d.Stocks[v.ID] = typed
		n, ok := c.formInt(field, 0, 100_000)
		if !ok {
			d.Errors[field] = "Write a whole number, 0 or more."
		}
		stocks[v.ID] = n
	}
	return stocks, price
}
