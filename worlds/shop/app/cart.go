package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// maxQuantity is how many of one article fit into a cart.
const maxQuantity = 20

type cartLine struct {
	VariantID  int
	Slug       string
	Name       string
	SKU        string
	Size       string
	Colour     string
	CategoryID int
	Quantity   int
	UnitCents  int
	Stock      int
	Active     bool
}

// Cents is the price of the line.
func (l cartLine) Cents() int { return l.Quantity * l.UnitCents }

// Enough is false when there are fewer in stock than in the cart.
func (l cartLine) Enough() bool { return l.Active && l.Stock >= l.Quantity }

// cart is what a customer is about to buy, with everything that decides the price.
type cart struct {
	Lines         []cartLine
	Coupon        *coupon
	CouponProblem string
	CouponTyped   string
	Subtotal      int
	Discount      int
	Problem       string
}

// Total is the price without shipping.
func (t cart) Total() int { return t.Subtotal - t.Discount }

// Count is the number of single articles.
func (t cart) Count() int {
	n := 0
	for _, l := range t.Lines {
		n += l.Quantity
	}
	return n
}

// Orderable says whether the cart may go to checkout.
func (t cart) Orderable() bool {
	for _, l := range t.Lines {
		if !l.Enough() {
			return false
		}
	}
	return len(t.Lines) > 0
}

const cartSQL = `
	SELECT v.id AS variant_id, p.slug, p.name, v.sku, v.size, v.colour, p.category_id, i.quantity, p.price_cents AS unit_cents, v.stock, p.active
	FROM cart_items i JOIN variants v ON v.id = i.variant_id JOIN products p ON p.id = v.product_id
	WHERE i.customer_id = $1 `

// loadCart reads the cart and prices it. With lock it holds the rows of the
// articles until the transaction ends, in an order that cannot deadlock.
func loadCart(c *call, q querier, lock bool) (cart, error) {
	sql := cartSQL + `ORDER BY i.position`
	if lock {
		sql = cartSQL + `ORDER BY v.id FOR NO KEY UPDATE OF v, i FOR SHARE OF p`
	}
	var t cart
	var err error
	if t.Lines, err = many[cartLine](c.ctx(), q, sql, c.user.CustomerID); err != nil {
		return t, err
	}
	for _, l := range t.Lines {
		t.Subtotal += l.Cents()
	}
	chosen, err := chosenCoupon(c, q, lock)
	if err != nil || chosen == nil {
		return t, err
	}
	t.Coupon = chosen
	if t.CouponProblem, err = chosen.problem(c, q, t.Subtotal); err != nil {
		return t, err
	}
	if t.CouponProblem == "" {
		t.Discount = chosen.discount(t.Subtotal)
	}
	return t, nil
}

func (s *shop) cart(c *call) error { return s.cartWith(c, cart{}) }

// cartWith shows the cart with what was wrong with the last change of it.
func (s *shop) cartWith(c *call, wrong cart) error {
	t, err := loadCart(c, s.db, false)
	if err != nil {
		return err
	}
	t.Problem, t.CouponTyped = wrong.Problem, wrong.CouponTyped
	if wrong.CouponProblem != "" {
		t.CouponProblem = wrong.CouponProblem
	}
	c.user.CartCount = t.Count()
	if c.wantsJSON() {
		return c.cartJSON(t)
	}
	return c.render("cart", "Your cart", t)
}

// cartJSON answers the script of the cart page with the new inside of the page.
func (c *call) cartJSON(t cart) error {
	html, err := c.fragment("cart", "cart-body", t)
	if err != nil {
		return err
	}
	problem := t.Problem
	if problem == "" {
		problem = t.CouponProblem
	}
	return c.json(200, map[string]any{"ok": problem == "", "message": problem, "count": t.Count(), "html": html})
}

// cartAdd puts articles into the cart, by variant or by product, size and colour.
func (s *shop) cartAdd(c *call) error {
	back := localPath(c.text("back"), "/cart")
	if c.user.StaffID != 0 {
		return errForbidden
	}
	if c.user.CustomerID == 0 {
		return c.askToSignIn()
	}
	quantity, ok := c.formInt("quantity", 1, maxQuantity)
	if !ok {
		return c.answer(false, "Choose a quantity from 1 to 20.", "no-stock", back)
	}
	id, err := s.findVariant(c)
	if errors.Is(err, errNotFound) {
		return c.answer(false, "This article does not exist in this size and colour.", "no-stock", back)
	}
	if err != nil {
		return err
	}
	total, err := addToCart(c.ctx(), s.db, c.user.CustomerID, id, quantity)
	if err != nil {
		return err
	}
	if total == 0 {
		return c.answer(false, "There is not enough of this article in stock.", "no-stock", back)
	}
	c.user.CartCount += quantity
	return c.answer(true, "Added to your cart.", "added", back)
}

// answer tells the result to the shop's script or, without it, to the next page.
func (c *call) answer(ok bool, message, notice, back string) error {
	if c.wantsJSON() {
		return c.json(200, map[string]any{"ok": ok, "message": message, "count": c.user.CartCount})
	}
	return c.redirectWith(notice, back)
}

func (s *shop) findVariant(c *call) (int, error) {
	if id, ok := c.formInt("variant", 1, 1<<30); ok {
		return scalar[int](c.ctx(), s.db, `SELECT v.id FROM variants v JOIN products p ON p.id = v.product_id WHERE v.id = $1 AND p.active`, id)
	}
	return scalar[int](c.ctx(), s.db, `SELECT v.id FROM variants v JOIN products p ON p.id = v.product_id
		WHERE p.slug = $1 AND p.active AND v.size = $2 AND v.colour = $3`, c.text("product"), c.text("size"), c.text("colour"))
}

// addToCart answers how many are in the cart then; 0 when there are not enough.
func addToCart(ctx context.Context, q querier, customer, variant, quantity int) (int, error) {
	n, err := scalar[int](ctx, q, `
		INSERT INTO cart_items AS i (customer_id, variant_id, quantity)
		SELECT $1::int, id, $3::int FROM variants WHERE id = $2 AND stock >= $3
		ON CONFLICT (customer_id, variant_id) DO UPDATE SET quantity = i.quantity + excluded.quantity
		WHERE i.quantity + excluded.quantity <= least($4::int, (SELECT stock FROM variants WHERE id = $2))
		RETURNING i.quantity`, customer, variant, quantity, maxQuantity)
	if errors.Is(err, errNotFound) {
		return 0, nil
	}
	return n, err
}

func (s *shop) cartUpdate(c *call) error {
	variant, ok := c.formInt("variant", 1, 1<<30)
	if !ok {
		return errBadInput
	}
	quantity, ok := c.formInt("quantity", 1, maxQuantity)
	if !ok {
		return s.cartWith(c, cart{Problem: "Choose a quantity from 1 to 20."})
	}
	tag, err := s.db.Exec(c.ctx(), `UPDATE cart_items i SET quantity = $3 FROM variants v
		WHERE i.customer_id = $1 AND i.variant_id = $2 AND v.id = i.variant_id AND v.stock >= $3 AND i.quantity <> $3`, c.user.CustomerID, variant, quantity)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		enough, err := scalar[bool](c.ctx(), s.db, `SELECT coalesce((SELECT stock >= $2 FROM variants WHERE id = $1), false)`, variant, quantity)
		if err != nil {
			return err
		}
		if !enough {
			return s.cartWith(c, cart{Problem: "There is not enough of this article in stock."})
		}
	}
	return s.cartChanged(c)
}

func (s *shop) cartChanged(c *call) error {
	if c.wantsJSON() {
		return s.cartWith(c, cart{})
	}
	return c.redirectWith("cart-changed", "/cart")
}

func (s *shop) cartRemove(c *call) error {
	variant, ok := c.formInt("variant", 1, 1<<30)
	if !ok {
		return errBadInput
	}
	if _, err := s.db.Exec(c.ctx(), `DELETE FROM cart_items WHERE customer_id = $1 AND variant_id = $2`, c.user.CustomerID, variant); err != nil {
		return err
	}
	return s.cartChanged(c)
}

// orderReorder puts what an order held into the cart again, as far as stock allows.
func (s *shop) orderReorder(c *call) error {
	o, err := s.findOrder(c, s.db, "")
	if err != nil {
		return err
	}
	items, err := orderItems(c, s.db, o.ID)
	if err != nil {
		return err
	}
	missing := 0
	err = pgx.BeginFunc(c.ctx(), s.db, func(tx pgx.Tx) error {
		for _, it := range items {
			n, err := addToCart(c.ctx(), tx, c.user.CustomerID, it.VariantID, it.Quantity)
			if err != nil {
				return err
			}
			if n == 0 {
				missing++
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case missing > 0:
		return c.redirectWith("reordered-some", "/cart")
	}
	return c.redirectWith("reordered", "/cart")
}

// Minus is the discount as it is shown: below zero.
func (t cart) Minus() int { return -t.Discount }

// Code is the coupon's, or "".
func (t cart) Code() string {
	if t.Coupon == nil {
		return ""
	}
	return t.Coupon.Code
}
