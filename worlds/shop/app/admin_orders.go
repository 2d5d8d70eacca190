package main

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

const adminRowsPerPage = 25

type adminHomePage struct {
	Placed, Packed, Shipped int
	Returns                 []openReturn
	LowStock                []stockRow
}

type openReturn struct {
	ID       int
	Number   string
	Customer string
	Reason   string
}

type stockRow struct {
	ProductID int
	Name      string
	SKU       string
	Size      string
	Colour    string
	Stock     int
}

func (s *shop) adminHome(c *call) error {
	type counts struct{ Placed, Packed, Shipped int }
	n, err := one[counts](c.ctx(), s.db, `SELECT count(*) FILTER (WHERE status = 'placed')::int AS placed,
		count(*) FILTER (WHERE status = 'packed')::int AS packed, count(*) FILTER (WHERE status = 'shipped')::int AS shipped FROM orders`)
	if err != nil {
		return err
	}
	d := adminHomePage{Placed: n.Placed, Packed: n.Packed, Shipped: n.Shipped}
	if d.Returns, err = many[openReturn](c.ctx(), s.db, `SELECT r.id, o.number, c.name AS customer, r.reason FROM returns r JOIN orders o ON o.id = r.order_id
		JOIN customers c ON c.id = o.customer_id WHERE r.status = 'requested' ORDER BY r.created_at, r.id LIMIT 10`); err != nil {
		return err
	}
	if d.LowStock, err = many[stockRow](c.ctx(), s.db, `SELECT p.id AS product_id, p.name, v.sku, v.size, v.colour, v.stock FROM variants v
		JOIN products p ON p.id = v.product_id WHERE p.active AND v.stock BETWEEN 1 AND 4 ORDER BY v.stock, v.sku LIMIT 10`); err != nil {
		return err
	}
	return c.render("admin-home", "Back office", d)
}

func (s *shop) adminOrders(c *call) error {
	p, err := s.listOrders(c, 0, adminRowsPerPage)
	if err != nil {
		return err
	}
	return c.render("admin-orders", "Orders", p)
}

// nextStatuses are the steps that staff may take from a state.
var nextStatuses = map[string][]string{
	"placed":  {"packed", "shipped", "cancelled"},
	"packed":  {"shipped", "cancelled"},
	"shipped": {"delivered"},
}

func (s *shop) adminOrder(c *call) error {
	p, err := s.loadOrderPage(c)
	if err != nil {
		return err
	}
	p.NextStatuses = nextStatuses[p.Order.Status]
	return c.render("admin-order", "Order "+p.Order.Number, p)
}

func (s *shop) adminOrderStatus(c *call) error {
	to, tracking := c.text("status"), c.text("tracking")
	back := "/admin/orders/" + c.r.PathValue("number")
	if len(tracking) > 40 {
		return errBadInput
	}
	err := pgx.BeginFunc(c.ctx(), s.db, func(tx pgx.Tx) error {
		o, err := s.findOrder(c, tx, "FOR UPDATE OF o")
		if err != nil {
			return err
		}
		if to == o.Status || to == "" {
			return s.saveTracking(c, tx, o, tracking)
		}
		if !contains(nextStatuses[o.Status], to) {
			return errWrongState
		}
		if to == "cancelled" {
			return cancelOrder(c, tx, o, "by_staff")
		}
		return advanceOrder(c, tx, o, to, tracking)
	})
	switch {
	case errors.Is(err, errWrongState):
		return c.redirectWith("not-allowed", back)
	case err != nil:
		return err
	}
	return c.redirectWith("saved", back)
}

func (s *shop) saveTracking(c *call, tx pgx.Tx, o orderDetail, tracking string) error {
	_, err := tx.Exec(c.ctx(), `UPDATE orders SET tracking_code = $2 WHERE id = $1 AND tracking_code <> $2`, o.ID, tracking)
	return err
}

// advanceOrder takes a step forward. Cards are charged when the parcel leaves,
// the other ways of paying when it arrives.
func advanceOrder(c *call, tx pgx.Tx, o orderDetail, to, tracking string) error {
	_, err := tx.Exec(c.ctx(), `UPDATE orders SET status = $2, tracking_code = $3,
		shipped_at = CASE WHEN $2 = 'shipped' THEN $4 ELSE shipped_at END,
		delivered_at = CASE WHEN $2 = 'delivered' THEN $4 ELSE delivered_at END WHERE id = $1`, o.ID, to, tracking, c.nowTime())
	if err != nil || to == "packed" {
		return err
	}
	_, err = tx.Exec(c.ctx(), `UPDATE payments SET status = 'captured' WHERE order_id = $1 AND status = 'authorised' AND (method = 'card' OR $2 = 'delivered')`, o.ID, to)
	return err
}

// adminOrderRefund gives the money of a charged order back, without a return.
func (s *shop) adminOrderRefund(c *call) error {
	back := "/admin/orders/" + c.r.PathValue("number")
	tag, err := s.db.Exec(c.ctx(), `UPDATE payments p SET status = 'refunded' FROM orders o
		WHERE o.id = p.order_id AND o.number = $1 AND p.status = 'captured'`, c.r.PathValue("number"))
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return c.redirectWith("not-allowed", back)
	}
	return c.redirectWith("refunded", back)
}

// nextReturn are the decisions that staff may take about a return.
var nextReturn = map[string][]string{
	"requested": {"approved", "rejected"},
	"approved":  {"refunded"},
}

// NextDecisions is for the template.
func (r returnRow) NextDecisions() []string { return nextReturn[r.Status] }

func (s *shop) adminReturn(c *call) error {
	id, err := c.pathID()
	if err != nil {
		return err
	}
	to := c.text("status")
	type row struct{ Number, Status string }
	r, err := one[row](c.ctx(), s.db, `SELECT o.number, r.status FROM returns r JOIN orders o ON o.id = r.order_id WHERE r.id = $1`, id)
	if err != nil {
		return err
	}
	back := "/admin/orders/" + r.Number
	if !contains(nextReturn[r.Status], to) {
		return c.redirectWith("not-allowed", back)
	}
	if _, err := s.db.Exec(c.ctx(), `UPDATE returns SET status = $2 WHERE id = $1 AND status = $3`, id, to, r.Status); err != nil {
		return err
	}
	return c.redirectWith("saved", back)
}
