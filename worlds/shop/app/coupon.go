package main

import (
	"errors"
	"strings"
	"time"
)

type coupon struct {
	ID              int
	Code            string
	Kind            string
	Value           int
	MinimumCents    int
	ExpiresAt       time.Time
	OncePerCustomer bool
	Active          bool
}

const couponColumns = `k.id, k.code, k.kind, k.value, k.minimum_cents, k.expires_at, k.once_per_customer, k.active`

// discount is what the coupon takes off a subtotal: percent are rounded half up to
// a cent, and no coupon takes off more than there is.
func (k coupon) discount(subtotal int) int {
	if k.Kind == "percent" {
		return min(subtotal, (subtotal*k.Value+50)/100)
	}
	return min(subtotal, k.Value)
}

// Worth is the discount in words.
func (k coupon) Worth() string {
	if k.Kind == "percent" {
		return itoa(k.Value) + "% off"
	}
	return money(k.Value) + " off"
}

// problem says why this customer cannot use the coupon for this subtotal; "" if they can.
func (k coupon) problem(c *call, q querier, subtotal int) (string, error) {
	switch {
	case !k.Active:
		return "The coupon " + k.Code + " is not valid.", nil
	case !k.ExpiresAt.After(c.nowTime()):
		return "The coupon " + k.Code + " has expired.", nil
	case subtotal < k.MinimumCents:
		return "The coupon " + k.Code + " needs articles for at least " + money(k.MinimumCents) + ".", nil
	case !k.OncePerCustomer:
		return "", nil
	}
	used, err := scalar[bool](c.ctx(), q, `SELECT EXISTS (SELECT FROM coupon_redemptions WHERE coupon_id = $1 AND customer_id = $2)`, k.ID, c.user.CustomerID)
	if err == nil && used {
		return "You have used the coupon " + k.Code + " before.", nil
	}
	return "", err
}

// chosenCoupon is the coupon of the customer's checkout, nil without one. With lock
// nobody can change it meanwhile, nor use it up in a second order.
func chosenCoupon(c *call, q querier, lock bool) (*coupon, error) {
	sql := `SELECT ` + couponColumns + ` FROM checkouts o JOIN coupons k ON k.id = o.coupon_id WHERE o.customer_id = $1`
	if lock {
		sql += ` FOR NO KEY UPDATE OF k`
	}
	k, err := one[coupon](c.ctx(), q, sql, c.user.CustomerID)
	if errors.Is(err, errNotFound) {
		return nil, nil
	}
	return &k, err
}

func (s *shop) couponApply(c *call) error {
	code := strings.ToUpper(c.text("code"))
	wrong := cart{CouponTyped: code}
	k, err := one[coupon](c.ctx(), s.db, `SELECT `+couponColumns+` FROM coupons k WHERE code = $1`, code)
	if errors.Is(err, errNotFound) {
		wrong.CouponProblem = "There is no coupon with this code."
		return s.cartWith(c, wrong)
	}
	if err != nil {
		return err
	}
	t, err := loadCart(c, s.db, false)
	if err != nil {
		return err
	}
	if wrong.CouponProblem, err = k.problem(c, s.db, t.Subtotal); err != nil {
		return err
	}
	if wrong.CouponProblem != "" {
		return s.cartWith(c, wrong)
	}
	_, err = s.db.Exec(c.ctx(), `INSERT INTO checkouts (customer_id, coupon_id) VALUES ($1, $2)
		ON CONFLICT (customer_id) DO UPDATE SET coupon_id = excluded.coupon_id`, c.user.CustomerID, k.ID)
	if err != nil {
		return err
	}
	if c.wantsJSON() {
		return s.cartWith(c, cart{})
	}
	return c.redirectWith("coupon-on", "/cart")
}

func (s *shop) couponRemove(c *call) error {
	if _, err := s.db.Exec(c.ctx(), `UPDATE checkouts SET coupon_id = NULL WHERE customer_id = $1`, c.user.CustomerID); err != nil {
		return err
	}
	if c.wantsJSON() {
		return s.cartWith(c, cart{})
	}
	return c.redirectWith("coupon-off", "/cart")
}
