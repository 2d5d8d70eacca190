package main

import (
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

type address struct {
	ID        int
	Label     string
	Recipient string
	Line1     string
	Line2     string
	City      string
	Postcode  string
	Country   string
	IsDefault bool
}

const addressColumns = `id, label, recipient, line1, line2, city, postcode, country, is_default`

var countries = []string{"United States", "Canada", "Mexico", "United Kingdom", "Ireland", "France", "Germany", "Spain", "Italy", "Japan"}

type addressPage struct {
	Address   address
	New       bool
	Back      string
	Countries []string
	Errors    map[string]string
}

func (s *shop) addressesOf(c *call) ([]address, error) {
	return many[address](c.ctx(), s.db, `SELECT `+addressColumns+` FROM addresses WHERE customer_id = $1 ORDER BY is_default DESC, id`, c.user.CustomerID)
}

func (s *shop) addresses(c *call) error {
	rows, err := s.addressesOf(c)
	if err != nil {
		return err
	}
	return c.render("addresses", "Your addresses", rows)
}

func (s *shop) addressNew(c *call) error {
	return s.addressForm(c, addressPage{New: true, Back: localPath(c.r.URL.Query().Get("back"), ""),
		Address: address{Recipient: c.user.Name, Country: countries[0]}})
}

func (s *shop) addressForm(c *call, p addressPage) error {
	p.Countries = countries
	title := "Edit address"
	if p.New {
		title = "New address"
	}
	if len(p.Errors) > 0 {
		c.status = 422
	}
	return c.render("address", title, p)
}

func (s *shop) addressEdit(c *call) error {
	id, err := c.pathID()
	if err != nil {
		return err
	}
	a, err := one[address](c.ctx(), s.db, `SELECT `+addressColumns+` FROM addresses WHERE id = $1 AND customer_id = $2`, id, c.user.CustomerID)
	if err != nil {
		return err
	}
	return s.addressForm(c, addressPage{Address: a})
}

func readAddress(c *call) (address, map[string]string) {
	a := address{Label: c.text("label"), Recipient: c.text("recipient"), Line1: c.text("line1"), Line2: c.text("line2"), City: c.text("city"),
		Postcode: c.text("postcode"), Country: c.text("country"), IsDefault: c.text("is_default") == "1"}
	problems := map[string]string{}
	required := map[string]string{"label": a.Label, "recipient": a.Recipient, "line1": a.Line1, "city": a.City, "postcode": a.Postcode}
	for name, value := range required {
		if value == "" {
			problems[name] = "Please fill in this field."
		}
		if utf8.RuneCountInString(value) > 100 {
			problems[name] = "This is too long; 100 characters are the limit."
		}
	}
	if utf8.RuneCountInString(a.Line2) > 100 {
		problems["line2"] = "This is too long; 100 characters are the limit."
	}
	known := false
	for _, name := range countries {
		known = known || name == a.Country
	}
	if !known {
		problems["country"] = "Choose a country from the list."
	}
	return a, problems
}

const sameLabel = "You have another address with this name."

func (s *shop) addressCreate(c *call) error {
	a, problems := readAddress(c)
	back := localPath(c.text("back"), "")
	if len(problems) == 0 {
		err := s.changeAddresses(c, a.IsDefault, func(tx pgx.Tx) error {
			_, err := tx.Exec(c.ctx(), `INSERT INTO addresses (customer_id, label, recipient, line1, line2, city, postcode, country, is_default)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9 OR NOT EXISTS (SELECT FROM addresses WHERE customer_id = $1))`,
				c.user.CustomerID, a.Label, a.Recipient, a.Line1, a.Line2, a.City, a.Postcode, a.Country, a.IsDefault)
			return err
		})
		if err == nil {
			if back == "" {
				back = "/account/addresses"
			}
			return c.redirectWith("address-saved", back)
		}
		if !violates(err, "addresses_customer_id_label_key") {
			return err
		}
		problems["label"] = sameLabel
	}
	return s.addressForm(c, addressPage{Address: a, New: true, Back: back, Errors: problems})
}

func (s *shop) addressSave(c *call) error {
	id, err := c.pathID()
	if err != nil {
		return err
	}
	a, problems := readAddress(c)
	a.ID = id
	if len(problems) == 0 {
		err := s.changeAddresses(c, a.IsDefault, func(tx pgx.Tx) error {
			tag, err := tx.Exec(c.ctx(), `UPDATE addresses SET label = $3, recipient = $4, line1 = $5, line2 = $6, city = $7, postcode = $8, country = $9,
				is_default = is_default OR $10 WHERE id = $1 AND customer_id = $2`,
				id, c.user.CustomerID, a.Label, a.Recipient, a.Line1, a.Line2, a.City, a.Postcode, a.Country, a.IsDefault)
			if err == nil && tag.RowsAffected() == 0 {
				return errNotFound
			}
			return err
		})
		if err == nil {
			return c.redirectWith("address-saved", "/account/addresses")
		}
		if !violates(err, "addresses_customer_id_label_key") {
			return err
		}
		problems["label"] = sameLabel
	}
	return s.addressForm(c, addressPage{Address: a, Errors: problems})
}

// changeAddresses locks the customer, so that two changes at once keep one default,
// and takes the mark from the old default where a new one comes.
func (s *shop) changeAddresses(c *call, newDefault bool, change func(pgx.Tx) error) error {
	return pgx.BeginFunc(c.ctx(), s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(c.ctx(), `SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE`, c.user.CustomerID); err != nil {
			return err
		}
		if newDefault {
			if _, err := tx.Exec(c.ctx(), `UPDATE addresses SET is_default = false WHERE customer_id = $1 AND is_default`, c.user.CustomerID); err != nil {
				return err
			}
		}
		return change(tx)
	})
}

func (s *shop) addressDefault(c *call) error {
	id, err := c.pathID()
	if err != nil {
		return err
	}
	err = s.changeAddresses(c, true, func(tx pgx.Tx) error {
		tag, err := tx.Exec(c.ctx(), `UPDATE addresses SET is_default = true WHERE id = $1 AND customer_id = $2`, id, c.user.CustomerID)
		if err == nil && tag.RowsAffected() == 0 {
			return errNotFound
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.redirectWith("default-set", "/account/addresses")
}

// addressDelete hands the mark of the default on to the oldest address that is left.
func (s *shop) addressDelete(c *call) error {
	id, err := c.pathID()
	if err != nil {
		return err
	}
	err = s.changeAddresses(c, false, func(tx pgx.Tx) error {
		wasDefault, err := scalar[bool](c.ctx(), tx, `DELETE FROM addresses WHERE id = $1 AND customer_id = $2 RETURNING is_default`, id, c.user.CustomerID)
		if err != nil || !wasDefault {
			return err
		}
		_, err = tx.Exec(c.ctx(), `UPDATE addresses SET is_default = true
			WHERE id = (SELECT min(id) FROM addresses WHERE customer_id = $1)`, c.user.CustomerID)
		return err
	})
	if err != nil {
		return err
	}
	return c.redirectWith("address-gone", "/account/addresses")
}
