package main

import (
	"errors"
	"net/mail"
	"strconv"
	"strings"
	"unicode/utf8"
)

func itoa(n int) string { return strconv.Itoa(n) }

type loginPage struct {
	Next   string
	Email  string
	Name   string
	Phone  string
	Errors map[string]string
}

func (s *shop) loginForm(c *call) error {
	if c.user.SignedIn() {
		return c.redirect(c.startPage())
	}
	return c.render("login", "Sign in", loginPage{Next: localPath(c.r.URL.Query().Get("next"), "")})
}

// startPage is where a signed-in user begins.
func (c *call) startPage() string {
	if c.user.StaffID != 0 {
		return "/admin"
	}
	return "/account"
}

func (s *shop) login(c *call) error {
	p := loginPage{Next: localPath(c.text("next"), ""), Email: c.text("email"), Errors: map[string]string{}}
	who, err := s.authenticate(c, strings.ToLower(p.Email), c.r.PostForm.Get("password"))
	if errors.Is(err, errNotFound) {
		p.Errors["email"] = "This e-mail address and password do not belong together."
		c.status = 422
		return c.render("login", "Sign in", p)
	}
	if err != nil {
		return err
	}
	if err := s.startSession(c, who); err != nil {
		return err
	}
	if p.Next == "" {
		p.Next = c.startPage()
	}
	return c.redirectWith("welcome", p.Next)
}

// authenticate looks for a customer, then for a member of staff.
func (s *shop) authenticate(c *call, email, password string) (user, error) {
	type account struct {
		CustomerID, StaffID int
		PasswordHash        string
	}
	a, err := one[account](c.ctx(), s.db, `
		SELECT id AS customer_id, 0 AS staff_id, password_hash FROM customers WHERE email = $1
		UNION ALL SELECT 0, id, password_hash FROM staff WHERE email = $1 LIMIT 1`, email)
	if err != nil {
		return user{}, err
	}
	if !passwordMatches(a.PasswordHash, password) {
		return user{}, errNotFound
	}
	return user{CustomerID: a.CustomerID, StaffID: a.StaffID}, nil
}

// startSession gives the browser a new token: one that it had before may be known to others.
func (s *shop) startSession(c *call, who user) error {
	token := newToken()
	_, err := s.db.Exec(c.ctx(), `INSERT INTO sessions (token, customer_id, staff_id, created_at) VALUES ($1, nullif($2, 0), nullif($3, 0), $4)`,
		token, who.CustomerID, who.StaffID, c.nowTime())
	if err != nil {
		return err
	}
	c.setToken(token)
	c.user = who
	return nil
}

func (s *shop) logout(c *call) error {
	if _, err := s.db.Exec(c.ctx(), `DELETE FROM sessions WHERE token = $1`, c.token); err != nil {
		return err
	}
	c.setToken(newToken())
	return c.redirectWith("signed-out", "/")
}

func (s *shop) registerForm(c *call) error {
	if c.user.SignedIn() {
		return c.redirect(c.startPage())
	}
	return c.render("register", "Create an account", loginPage{})
}

func (s *shop) register(c *call) error {
	p := loginPage{Email: strings.ToLower(c.text("email")), Name: c.text("name"), Phone: c.text("phone"), Errors: map[string]string{}}
	password := c.r.PostForm.Get("password")
	if !validEmail(p.Email) {
		p.Errors["email"] = "Write an e-mail address like name@example.com."
	}
	checkPerson(p.Name, p.Phone, p.Errors)
	if utf8.RuneCountInString(password) < passwordMinimum {
		p.Errors["password"] = "Choose a password of at least 10 characters."
	}
	if len(p.Errors) == 0 {
		id, err := s.createCustomer(c, p, password)
		switch {
		case err == nil:
			if err := s.startSession(c, user{CustomerID: id}); err != nil {
				return err
			}
			return c.redirectWith("registered", "/account")
		case !violates(err, "customers_email_key"):
			return err
		}
		p.Errors["email"] = "There is an account with this e-mail address already."
	}
	c.status = 422
	return c.render("register", "Create an account", p)
}

func (s *shop) createCustomer(c *call, p loginPage, password string) (int, error) {
	hash, err := hashPassword(password)
	if err != nil {
		return 0, err
	}
	return scalar[int](c.ctx(), s.db, `INSERT INTO customers (email, password_hash, name, phone, created_at) VALUES ($1, $2, $3, $4, $5) RETURNING id`,
		p.Email, hash, p.Name, p.Phone, c.nowTime())
}

func validEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= 200
}

// checkPerson notes what is wrong with a name and a telephone number.
func checkPerson(name, phone string, problems map[string]string) {
	if n := utf8.RuneCountInString(name); n < 2 || n > 100 {
		problems["name"] = "Write a name of 2 to 100 characters."
	}
	for _, r := range phone {
		if !strings.ContainsRune("0123456789+-() ", r) || len(phone) > 30 {
			problems["phone"] = "A telephone number has digits, spaces, and the signs + - ( )."
		}
	}
}
