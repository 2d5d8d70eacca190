package main

import (
	"strconv"
	"strings"
	"time"
)

type adminCouponsPage struct {
	Coupons []couponRow
	Form    couponForm
}

type couponRow struct {
	coupon
	Used int
}

type couponForm struct {
	Code, Kind, Value, Minimum, Expires string
	Once                                bool
	Errors                              map[string]string
}

func (s *shop) adminCoupons(c *call) error { return s.showCoupons(c, couponForm{Kind: "percent"}) }

func (s *shop) showCoupons(c *call, f couponForm) error {
	rows, err := many[couponRow](c.ctx(), s.db, `SELECT `+couponColumns+`,
		(SELECT count(*)::int FROM coupon_redemptions r WHERE r.coupon_id = k.id) AS used FROM coupons k ORDER BY k.id DESC`)
	if err != nil {
		return err
	}
	return c.render("admin-coupons", "Coupons", adminCouponsPage{rows, f})
}

// read checks the form and makes the coupon of it.
func (f *couponForm) read(c *call) coupon {
	*f = couponForm{Code: strings.ToUpper(c.text("code")), Kind: c.text("kind"), Value: c.text("value"), Minimum: c.text("minimum"),
		Expires: c.text("expires"), Once: c.text("once") == "1", Errors: map[string]string{}}
	k := coupon{Code: f.Code, Kind: f.Kind, OncePerCustomer: f.Once}
	for _, r := range f.Code {
		if known := r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-'; !known {
			f.Errors["coupon-code"] = "A code has letters, digits and dashes."
		}
	}
	if len(f.Code) < 3 || len(f.Code) > 24 {
		f.Errors["coupon-code"] = "A code has 3 to 24 characters."
	}
	var err error
	switch f.Kind {
	case "percent":
		k.Value, err = strconv.Atoi(strings.TrimSuffix(f.Value, "%"))
		if err != nil || k.Value < 1 || k.Value > 100 {
			f.Errors["coupon-value"] = "Write percent as a whole number from 1 to 100."
		}
	case "fixed":
		if k.Value, err = parseMoney(f.Value); err != nil || k.Value == 0 {
			f.Errors["coupon-value"] = "Write an amount above zero, like 7.50."
		}
	default:
		f.Errors["coupon-kind"] = "Choose a kind."
	}
	if f.Minimum != "" {
		if k.MinimumCents, err = parseMoney(f.Minimum); err != nil {
			f.Errors["coupon-minimum"] = "Write an amount like 40.00, or leave it empty."
		}
	}
	day, err := time.Parse("2006-01-02", f.Expires)
	if err != nil {
		f.Errors["coupon-expires"] = "Choose the last day on which the coupon is valid."
	}
	k.ExpiresAt = day.Add(24*time.Hour - time.Second)
	return k
}

func (s *shop) adminCouponCreate(c *call) error {
	var f couponForm
	k := f.read(c)
	if len(f.Errors) == 0 {
		_, err := s.db.Exec(c.ctx(), `INSERT INTO coupons (code, kind, value, minimum_cents, expires_at, once_per_customer, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			k.Code, k.Kind, k.Value, k.MinimumCents, k.ExpiresAt, k.OncePerCustomer, c.nowTime())
		if err == nil {
			return c.redirectWith("coupon-created", "/admin/coupons")
		}
		if !violates(err, "coupons_code_key") {
			return err
		}
		f.Errors["coupon-code"] = "There is a coupon with this code already."
	}
	c.status = 422
	return s.showCoupons(c, f)
}

func (s *shop) adminCouponActive(c *call) error {
	id, err := c.pathID()
	if err != nil {
		return err
	}
	if _, err := s.db.Exec(c.ctx(), `UPDATE coupons SET active = $2 WHERE id = $1`, id, c.text("active") == "1"); err != nil {
		return err
	}
	return c.redirectWith("saved", "/admin/coupons")
}

type adminCustomersPage struct {
	Query     string
	Customers []customerRow
	Pager     pager
}

type customerRow struct {
	ID     int
	Name   string
	Email  string
	Phone  string
	Orders int
	Spent  int
}

const customerRows = `SELECT c.id, c.name, c.email, c.phone, (SELECT count(*)::int FROM orders o WHERE o.customer_id = c.id) AS orders,
	(SELECT coalesce(sum(total_cents), 0)::int FROM orders o WHERE o.customer_id = c.id AND o.status <> 'cancelled') AS spent FROM customers c `

func (s *shop) adminCustomers(c *call) error {
	d := adminCustomersPage{Query: c.text("q")}
	const where = `WHERE (c.name || ' ' || c.email || ' ' || c.phone) ILIKE ALL ($1::text[])`
	words := patterns(d.Query)
	total, err := scalar[int](c.ctx(), s.db, `SELECT count(*) FROM customers c `+where, words)
	if err != nil {
		return err
	}
	page, ok := c.formInt("page", 1, 10000)
	if !ok {
		page = 1
	}
	d.Pager = newPager(c.r.URL, page, adminRowsPerPage, total)
	d.Customers, err = many[customerRow](c.ctx(), s.db, customerRows+where+` ORDER BY c.name, c.id LIMIT $2 OFFSET $3`,
		words, adminRowsPerPage, (d.Pager.Page-1)*adminRowsPerPage)
	if err != nil {
		return err
	}
	return c.render("admin-customers", "Customers", d)
}

type adminCustomerPage struct {
	Customer  customerRow
	Addresses []address
	Orders    []orderRow
}

func (s *shop) adminCustomer(c *call) error {
	id, err := c.pathID()
	if err != nil {
		return err
	}
	var d adminCustomerPage
	if d.Customer, err = one[customerRow](c.ctx(), s.db, customerRows+`WHERE c.id = $1`, id); err != nil {
		return err
	}
	if d.Addresses, err = many[address](c.ctx(), s.db, `SELECT `+addressColumns+` FROM addresses WHERE customer_id = $1 ORDER BY id`, id); err != nil {
		return err
	}
	if d.Orders, err = many[orderRow](c.ctx(), s.db, orderRows+` WHERE o.customer_id = $1 ORDER BY o.placed_at DESC, o.id DESC`, id); err != nil {
		return err
	}
	return c.render("admin-customer", d.Customer.Name, d)
}
