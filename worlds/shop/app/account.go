package main

type accountPage struct {
	Email     string
	Phone     string
	Orders    []orderRow
	Addresses int
	Reviews   int
	Spent     int
}

func (s *shop) account(c *call) error {
	type row struct {
		Email, Phone              string
		Addresses, Reviews, Spent int
	}
	r, err := one[row](c.ctx(), s.db, `SELECT email, phone,
		(SELECT count(*)::int FROM addresses a WHERE a.customer_id = c.id) AS addresses,
		(SELECT count(*)::int FROM reviews v WHERE v.customer_id = c.id) AS reviews,
		(SELECT coalesce(sum(total_cents), 0)::int FROM orders o WHERE o.customer_id = c.id AND o.status <> 'cancelled') AS spent
		FROM customers c WHERE id = $1`, c.user.CustomerID)
	if err != nil {
		return err
	}
	d := accountPage{Email: r.Email, Phone: r.Phone, Addresses: r.Addresses, Reviews: r.Reviews, Spent: r.Spent}
	d.Orders, err = many[orderRow](c.ctx(), s.db, orderRows+` WHERE o.customer_id = $1 ORDER BY o.placed_at DESC, o.id DESC LIMIT 3`, c.user.CustomerID)
	if err != nil {
		return err
	}
	return c.render("account", "Your account", d)
}

type profilePage struct {
	Email      string
	Name       string
	Phone      string
	Newsletter bool
	Errors     map[string]string
}

func (s *shop) profile(c *call) error {
	type row struct {
		Email, Name, Phone string
		Newsletter         bool
	}
	r, err := one[row](c.ctx(), s.db, `SELECT email, name, phone, newsletter FROM customers WHERE id = $1`, c.user.CustomerID)
	if err != nil {
		return err
	}
	return c.render("profile", "Your profile", profilePage{Email: r.Email, Name: r.Name, Phone: r.Phone, Newsletter: r.Newsletter})
}

func (s *shop) profileSave(c *call) error {
	p := profilePage{Name: c.text("name"), Phone: c.text("phone"), Newsletter: c.text("newsletter") == "1", Errors: map[string]string{}}
	checkPerson(p.Name, p.Phone, p.Errors)
	if len(p.Errors) > 0 {
		var err error
		if p.Email, err = scalar[string](c.ctx(), s.db, `SELECT email FROM customers WHERE id = $1`, c.user.CustomerID); err != nil {
			return err
		}
		c.status = 422
		return c.render("profile", "Your profile", p)
	}
	if _, err := s.db.Exec(c.ctx(), `UPDATE customers SET name = $2, phone = $3, newsletter = $4 WHERE id = $1`,
		c.user.CustomerID, p.Name, p.Phone, p.Newsletter); err != nil {
		return err
	}
	return c.redirectWith("profile-saved", "/account/profile")
}
