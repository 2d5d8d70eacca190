package main

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

var returnReasons = []string{"damaged", "wrong_item", "does_not_fit", "changed_mind", "arrived_late"}

type returnPage struct {
	Order      orderDetail
	Items      []orderItem
	Reasons    []string
	Reason     string
	Note       string
	Quantities map[int]int
	Errors     map[string]string
}

func (s *shop) returnForm(c *call) error {
	p := returnPage{Reasons: returnReasons, Quantities: map[int]int{}}
	var err error
	if p.Order, err = s.findOrder(c, s.db, ""); err != nil {
		return err
	}
	if !p.Order.Returnable() {
		return c.redirectWith("not-allowed", "/account/orders/"+p.Order.Number)
	}
	if p.Items, err = orderItems(c, s.db, p.Order.ID); err != nil {
		return err
	}
	return c.render("return", "Return articles of "+p.Order.Number, p)
}

func (s *shop) returnCreate(c *call) error {
	p := returnPage{Reasons: returnReasons, Reason: c.text("reason"), Note: c.text("note"), Quantities: map[int]int{}, Errors: map[string]string{}}
	err := pgx.BeginFunc(c.ctx(), s.db, func(tx pgx.Tx) error {
		var err error
		if p.Order, err = s.findOrder(c, tx, "FOR UPDATE OF o"); err != nil {
			return err
		}
		if !p.Order.Returnable() {
			return errWrongState
		}
		if p.Items, err = orderItems(c, tx, p.Order.ID); err != nil {
			return err
		}
		if p.read(c); len(p.Errors) > 0 {
			return nil
		}
		return p.save(c, tx)
	})
	switch {
	case errors.Is(err, errWrongState):
		return c.redirectWith("not-allowed", "/account/orders/"+p.Order.Number)
	case err != nil:
		return err
	case len(p.Errors) > 0:
		c.status = 422
		return c.render("return", "Return articles of "+p.Order.Number, p)
	}
	return c.redirectWith("return-sent", "/account/orders/"+p.Order.Number)
}

func (p *returnPage) read(c *call) {
	for _, it := range p.Items {
		field := "quantity-" + strconv.Itoa(it.ID)
		if c.text(field) == "" {
			continue
		}
		n, ok := c.formInt(field, 0, it.Left())
		if !ok {
			p.Errors[field] = "Choose a number from 0 to " + strconv.Itoa(it.Left()) + "."
		}
		if n > 0 {
			p.Quantities[it.ID] = n
		}
	}
	if len(p.Quantities) == 0 && len(p.Errors) == 0 {
		p.Errors["items"] = "Choose at least one article."
	}
	if !contains(returnReasons, p.Reason) {
		p.Errors["return-reason"] = "Choose a reason."
	}
	if utf8.RuneCountInString(p.Note) > 500 {
		p.Errors["return-note"] = "The note is too long; 500 characters are the limit."
	}
}

func (p *returnPage) save(c *call, tx pgx.Tx) error {
	id, err := scalar[int](c.ctx(), tx, `INSERT INTO returns (order_id, reason, note, created_at) VALUES ($1, $2, $3, $4) RETURNING id`,
		p.Order.ID, p.Reason, p.Note, c.nowTime())
	if err != nil {
		return err
	}
	for _, it := range p.Items {
		if n := p.Quantities[it.ID]; n > 0 {
			if _, err := tx.Exec(c.ctx(), `INSERT INTO return_items (return_id, order_item_id, quantity) VALUES ($1, $2, $3)`, id, it.ID, n); err != nil {
				return err
			}
		}
	}
	return nil
}
