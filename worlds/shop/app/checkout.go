package main

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

type shippingMethod struct {
	Code   string
	Name   string
	Detail string
	Cents  int
}

var paymentMethods = []string{"card", "invoice", "cash"}

// checkout is what the customer has chosen so far.
type checkout struct {
	Token          string
	AddressID      int
	ShippingMethod string
	PaymentMethod  string
	GiftNote       string
}

type checkoutPage struct {
	Step      int
	Cart      cart
	Checkout  checkout
	Addresses []address
	Address   address
	Shipping  []shippingMethod
	Method    shippingMethod
	Payments  []string
	Errors    map[string]string
	Problem   string
}

// Total is the price with shipping.
func (p checkoutPage) Total() int { return p.Cart.Total() + p.Method.Cents }

func loadCheckout(c *call, q querier, lock string) (checkout, error) {
	return one[checkout](c.ctx(), q, `SELECT token::text AS token, coalesce(address_id, 0) AS address_id, coalesce(shipping_method, '') AS shipping_method,
		coalesce(payment_method, '') AS payment_method, gift_note FROM checkouts WHERE customer_id = $1 `+lock, c.user.CustomerID)
}

// beginCheckout reads the cart and the choices; a cart that cannot be ordered goes back to its page.
func (s *shop) beginCheckout(c *call, step int) (checkoutPage, bool, error) {
	p := checkoutPage{Step: step, Payments: paymentMethods, Errors: map[string]string{}}
	var err error
	if p.Cart, err = loadCart(c, s.db, false); err != nil {
		return p, false, err
	}
	if len(p.Cart.Lines) == 0 {
		return p, false, c.redirectWith("cart-empty", "/cart")
	}
	if !p.Cart.Orderable() {
		return p, false, c.redirectWith("no-stock", "/cart")
	}
	p.Checkout, err = loadCheckout(c, s.db, "")
	if err != nil && !errors.Is(err, errNotFound) {
		return p, false, err
	}
	switch {
	case step > 1 && p.Checkout.AddressID == 0:
		return p, false, c.redirect("/checkout")
	case step > 2 && (p.Checkout.ShippingMethod == "" || p.Checkout.PaymentMethod == ""):
		return p, false, c.redirect("/checkout/delivery")
	}
	return p, true, nil
}

func (s *shop) checkoutAddress(c *call) error {
	p, ok, err := s.beginCheckout(c, 1)
	if err != nil || !ok {
		return err
	}
	return s.showAddressStep(c, p)
}

func (s *shop) showAddressStep(c *call, p checkoutPage) error {
	var err error
	if p.Addresses, err = s.addressesOf(c); err != nil {
		return err
	}
	for _, a := range p.Addresses {
		if p.Checkout.AddressID == 0 && a.IsDefault {
			p.Checkout.AddressID = a.ID
		}
	}
	return c.render("checkout-address", "Checkout: address", p)
}

func (s *shop) checkoutAddressSave(c *call) error {
	p, ok, err := s.beginCheckout(c, 1)
	if err != nil || !ok {
		return err
	}
	id, _ := c.formInt("address", 1, 1<<30)
	tag, err := s.db.Exec(c.ctx(), `INSERT INTO checkouts (customer_id, address_id) SELECT customer_id, id FROM addresses WHERE id = $2 AND customer_id = $1
		ON CONFLICT (customer_id) DO UPDATE SET address_id = excluded.address_id`, c.user.CustomerID, id)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		p.Errors["address"] = "Choose the address to send to."
		c.status = 422
		return s.showAddressStep(c, p)
	}
	return c.redirect("/checkout/delivery")
}

func (s *shop) checkoutDelivery(c *call) error {
	p, ok, err := s.beginCheckout(c, 2)
	if err != nil || !ok {
		return err
	}
	return s.showDeliveryStep(c, p)
}

func (s *shop) showDeliveryStep(c *call, p checkoutPage) error {
	var err error
	if p.Shipping, err = many[shippingMethod](c.ctx(), s.db, `SELECT code, name, detail, cents FROM shipping_methods ORDER BY position`); err != nil {
		return err
	}
	return c.render("checkout-delivery", "Checkout: shipping and payment", p)
}

func (s *shop) checkoutDeliverySave(c *call) error {
	p, ok, err := s.beginCheckout(c, 2)
	if err != nil || !ok {
		return err
	}
	p.Checkout.ShippingMethod, p.Checkout.PaymentMethod, p.Checkout.GiftNote = c.text("shipping"), c.text("payment"), c.text("gift_note")
	known, err := scalar[bool](c.ctx(), s.db, `SELECT EXISTS (SELECT FROM shipping_methods WHERE code = $1)`, p.Checkout.ShippingMethod)
	if err != nil {
		return err
	}
	if !known {
		p.Errors["shipping"] = "Choose how to ship."
	}
	if !contains(paymentMethods, p.Checkout.PaymentMethod) {
		p.Errors["payment"] = "Choose how to pay."
	}
	if len(p.Checkout.GiftNote) > 500 {
		p.Errors["gift-note"] = "The note is too long; 500 characters are the limit."
	}
	if len(p.Errors) > 0 {
		c.status = 422
		return s.showDeliveryStep(c, p)
	}
	_, err = s.db.Exec(c.ctx(), `UPDATE checkouts SET shipping_method = $2, payment_method = $3, gift_note = $4 WHERE customer_id = $1`,
		c.user.CustomerID, p.Checkout.ShippingMethod, p.Checkout.PaymentMethod, p.Checkout.GiftNote)
	if err != nil {
		return err
	}
	return c.redirect("/checkout/review")
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (s *shop) checkoutReview(c *call) error {
	p, ok, err := s.beginCheckout(c, 3)
	if err != nil || !ok {
		return err
	}
	return s.showReviewStep(c, p)
}

func (s *shop) showReviewStep(c *call, p checkoutPage) error {
	var err error
	if p.Address, err = one[address](c.ctx(), s.db, `SELECT `+addressColumns+` FROM addresses WHERE id = $1 AND customer_id = $2`, p.Checkout.AddressID, c.user.CustomerID); err != nil {
		return err
	}
	if p.Method, err = one[shippingMethod](c.ctx(), s.db, `SELECT code, name, detail, cents FROM shipping_methods WHERE code = $1`, p.Checkout.ShippingMethod); err != nil {
		return err
	}
	return c.render("checkout-review", "Checkout: review", p)
}

// The reasons for which an order is not placed.
var (
	errNoStock      = errors.New("not enough in stock")
	errPriceChanged = errors.New("the price changed")
	errNoCheckout   = errors.New("no such checkout")
)

// checkoutPlace turns cart and choices into an order, at most once for each form.
func (s *shop) checkoutPlace(c *call) error {
	token := c.text("checkout_token")
	number, err := s.place(c, token, c.text("seen_total"))
	if errors.Is(err, errNoCheckout) {
		// The same form came twice: show the order that the first one made.
		number, err = scalar[string](c.ctx(), s.db, `SELECT number FROM orders WHERE checkout_token::text = $1 AND customer_id = $2`, token, c.user.CustomerID)
		if errors.Is(err, errNotFound) {
			return c.redirectWith("cart-empty", "/cart")
		}
	}
	switch {
	case errors.Is(err, errNoStock):
		return c.redirectWith("no-stock", "/cart")
	case errors.Is(err, errPriceChanged):
		p, ok, err := s.beginCheckout(c, 3)
		if err != nil || !ok {
			return err
		}
		p.Problem = "A price or a coupon changed in the meantime. Please check the total once more."
		return s.showReviewStep(c, p)
	case err != nil:
		return err
	}
	return c.redirectWith("order-placed", "/account/orders/"+number)
}

func (s *shop) place(c *call, token, seenTotal string) (string, error) {
	var number string
	err := pgx.BeginFunc(c.ctx(), s.db, func(tx pgx.Tx) error {
		k, err := loadCheckout(c, tx, "FOR UPDATE")
		if errors.Is(err, errNotFound) || err == nil && k.Token != token {
			return errNoCheckout
		}
		if err != nil {
			return err
		}
		t, err := loadCart(c, tx, true)
		if err != nil {
			return err
		}
		if !t.Orderable() {
			return errNoStock
		}
		id, n, err := insertOrder(c, tx, k, t, seenTotal)
		if err != nil {
			return err
		}
		number = n
		return finishOrder(c, tx, id, k, t)
	})
	return number, err
}

// insertOrder writes the order itself; the total must be the one that the customer saw.
func insertOrder(c *call, tx pgx.Tx, k checkout, t cart, seenTotal string) (id int, number string, err error) {
	shipping, err := scalar[int](c.ctx(), tx, `SELECT cents FROM shipping_methods WHERE code = $1`, k.ShippingMethod)
	if err != nil {
		return 0, "", fmt.Errorf("read the price of shipping: %w", err)
	}
	total := t.Total() + shipping
	if itoa(total) != seenTotal || t.CouponProblem != "" {
		return 0, "", errPriceChanged
	}
	var couponID *int
	if t.Coupon != nil {
		couponID = &t.Coupon.ID
	}
	type made struct {
		ID     int
		Number string
	}
	m, err := one[made](c.ctx(), tx, `
		INSERT INTO orders (customer_id, subtotal_cents, discount_cents, shipping_cents, total_cents, coupon_id, shipping_method, gift_note,
		  ship_label, ship_recipient, ship_line1, ship_line2, ship_city, ship_postcode, ship_country, checkout_token, placed_at)
		SELECT customer_id, $3, $4, $5, $6, $7, $8, $9, label, recipient, line1, line2, city, postcode, country, $10::text::uuid, $11
		FROM addresses WHERE id = $2 AND customer_id = $1 RETURNING id, number`,
		c.user.CustomerID, k.AddressID, t.Subtotal, t.Discount, shipping, total, couponID, k.ShippingMethod, k.GiftNote, k.Token, c.nowTime())
	return m.ID, m.Number, err
}

// finishOrder writes what belongs to an order, takes the stock and empties the cart.
// It goes by the lines that were priced and locked, not by the cart as it may be now.
func finishOrder(c *call, tx pgx.Tx, id int, k checkout, t cart) error {
	var variants, quantities, cents []int
	var names []string
	for _, l := range t.Lines {
		variants, quantities = append(variants, l.VariantID), append(quantities, l.Quantity)
		cents, names = append(cents, l.UnitCents), append(names, l.Name)
	}
	steps := []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO order_items (order_id, variant_id, product_name, quantity, unit_cents)
			SELECT $1, * FROM unnest($2::int[], $3::text[], $4::int[], $5::int[])`, []any{id, variants, names, quantities, cents}},
		{`UPDATE variants v SET stock = stock - l.quantity FROM unnest($1::int[], $2::int[]) AS l (id, quantity) WHERE v.id = l.id`,
			[]any{variants, quantities}},
		{`INSERT INTO payments (order_id, method, amount_cents, status, created_at) SELECT id, $2, total_cents, 'authorised', placed_at FROM orders WHERE id = $1`,
			[]any{id, k.PaymentMethod}},
		{`INSERT INTO coupon_redemptions (coupon_id, customer_id, order_id) SELECT coupon_id, customer_id, id FROM orders WHERE id = $1 AND coupon_id IS NOT NULL`, []any{id}},
		{`DELETE FROM cart_items WHERE customer_id = $1 AND variant_id = ANY ($2)`, []any{c.user.CustomerID, variants}},
		{`DELETE FROM checkouts WHERE customer_id = $1`, []any{c.user.CustomerID}},
	}
	for _, s := range steps {
		if _, err := tx.Exec(c.ctx(), s.sql, s.args...); err != nil {
			return err
		}
	}
	return nil
}
