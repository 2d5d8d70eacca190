package main

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// orderRow is an order as lists show it.
type orderRow struct {
	ID         int
	Number     string
	Status     string
	PlacedAt   time.Time
	TotalCents int
	ShipLabel  string
	Customer   string
	Articles   int
	Names      string
}

const orderRows = `
	SELECT o.id, o.number, o.status, o.placed_at, o.total_cents, o.ship_label, c.name AS customer,
	  (SELECT sum(quantity)::int FROM order_items i WHERE i.order_id = o.id) AS articles,
	  (SELECT string_agg(product_name, ', ' ORDER BY i.id) FROM order_items i WHERE i.order_id = o.id) AS names
	FROM orders o JOIN customers c ON c.id = o.customer_id`

// orderFilter is the form above a list of orders.
type orderFilter struct {
	Status string
	Query  string
	From   string
	To     string
}

type ordersPage struct {
	Filter   orderFilter
	Statuses []string
	Orders   []orderRow
	Pager    pager
}

var statuses = []string{"placed", "packed", "shipped", "delivered", "cancelled"}

const ordersPerPage = 6

func readOrderFilter(c *call) orderFilter {
	f := orderFilter{Status: c.text("status"), Query: c.text("q"), From: c.text("from"), To: c.text("to")}
	if !contains(statuses, f.Status) {
		f.Status = ""
	}
	for _, day := range []*string{&f.From, &f.To} {
		if _, err := time.Parse("2006-01-02", *day); err != nil {
			*day = ""
		}
	}
	return f
}

// ordersWhere: $1 is the customer, 0 for all of them.
const ordersWhere = `
	WHERE ($1::int = 0 OR o.customer_id = $1) AND ($2::text = '' OR o.status = $2)
	  AND ($3::text = '' OR o.placed_at >= nullif($3, '')::date) AND ($4::text = '' OR o.placed_at < nullif($4, '')::date + 1)
	  AND ($5::text = '%%' OR o.number ILIKE $5 OR ($1 = 0 AND (c.name ILIKE $5 OR c.email ILIKE $5))
	       OR EXISTS (SELECT FROM order_items i WHERE i.order_id = o.id AND i.product_name ILIKE $5))`

func (s *shop) listOrders(c *call, customer, perPage int) (ordersPage, error) {
	p := ordersPage{Filter: readOrderFilter(c), Statuses: statuses}
	args := []any{customer, p.Filter.Status, p.Filter.From, p.Filter.To, "%" + escapeLike(p.Filter.Query) + "%"}
	total, err := scalar[int](c.ctx(), s.db, `SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id`+ordersWhere, args...)
	if err != nil {
		return p, err
	}
	page, ok := c.formInt("page", 1, 10000)
	if !ok {
		page = 1
	}
	p.Pager = newPager(c.r.URL, page, perPage, total)
	args = append(args, perPage, (p.Pager.Page-1)*perPage)
	p.Orders, err = many[orderRow](c.ctx(), s.db, orderRows+ordersWhere+` ORDER BY o.placed_at DESC, o.id DESC LIMIT $6 OFFSET $7`, args...)
	return p, err
}

func (s *shop) orders(c *call) error {
	p, err := s.listOrders(c, c.user.CustomerID, ordersPerPage)
	if err != nil {
		return err
	}
	return c.render("orders", "Your orders", p)
}

type orderDetail struct {
	ID             int
	Number         string
	CustomerID     int
	Customer       string
	Email          string
	Status         string
	SubtotalCents  int
	DiscountCents  int
	ShippingCents  int
	TotalCents     int
	Coupon         string
	ShippingMethod string
	GiftNote       string
	ShipLabel      string
	ShipRecipient  string
	ShipLine1      string
	ShipLine2      string
	ShipCity       string
	ShipPostcode   string
	ShipCountry    string
	TrackingCode   string
	CancelReason   string
	PlacedAt       time.Time
	ShippedAt      *time.Time
	DeliveredAt    *time.Time
	CancelledAt    *time.Time
	PaymentMethod  string
	PaymentStatus  string
}

// Cancellable is true while nobody has started to pack.
func (o orderDetail) Cancellable() bool { return o.Status == "placed" }

// Returnable is true once the articles have arrived.
func (o orderDetail) Returnable() bool { return o.Status == "delivered" }

const orderDetailSQL = `
	SELECT o.id, o.number, o.customer_id, c.name AS customer, c.email, o.status, o.subtotal_cents, o.discount_cents, o.shipping_cents, o.total_cents,
	  coalesce(k.code, '') AS coupon, o.shipping_method, o.gift_note, o.ship_label, o.ship_recipient, o.ship_line1, o.ship_line2, o.ship_city,
	  o.ship_postcode, o.ship_country, o.tracking_code, o.cancel_reason, o.placed_at, o.shipped_at, o.delivered_at, o.cancelled_at,
	  p.method AS payment_method, p.status AS payment_status
	FROM orders o JOIN customers c ON c.id = o.customer_id JOIN payments p ON p.order_id = o.id LEFT JOIN coupons k ON k.id = o.coupon_id
	WHERE o.number = $1 AND ($2::int = 0 OR o.customer_id = $2) `

// findOrder reads the order of the path; customers find only their own. With lock it is
// read to be changed, which may not be while somebody else works on it.
func (s *shop) findOrder(c *call, q querier, lock string) (orderDetail, error) {
	if c.user.CustomerID == 0 && c.user.StaffID == 0 {
		return orderDetail{}, errForbidden
	}
	o, err := one[orderDetail](c.ctx(), q, orderDetailSQL+lock, c.r.PathValue("number"), c.user.CustomerID)
	if err != nil || lock == "" {
		return o, err
	}
	held, err := scalar[bool](c.ctx(), q, `SELECT EXISTS (SELECT FROM order_holds WHERE order_id = $1)`, o.ID)
	if err == nil && held {
		err = errHeld
	}
	return o, err
}

type orderItem struct {
	ID        int
	VariantID int
	Slug      string
	Name      string
	SKU       string
	Size      string
	Colour    string
	Quantity  int
	UnitCents int
	Returned  int
	Active    bool
}

// Cents is the price of the line.
func (i orderItem) Cents() int { return i.Quantity * i.UnitCents }

// Left is how many can still be returned.
func (i orderItem) Left() int { return i.Quantity - i.Returned }

func orderItems(c *call, q querier, order int) ([]orderItem, error) {
	return many[orderItem](c.ctx(), q, `
		SELECT i.id, i.variant_id, p.slug, i.product_name AS name, v.sku, v.size, v.colour, i.quantity, i.unit_cents, p.active,
		  (SELECT coalesce(sum(ri.quantity), 0)::int FROM return_items ri JOIN returns r ON r.id = ri.return_id
		   WHERE ri.order_item_id = i.id AND r.status <> 'rejected') AS returned
		FROM order_items i JOIN variants v ON v.id = i.variant_id JOIN products p ON p.id = v.product_id
		WHERE i.order_id = $1 ORDER BY i.id`, order)
}

type returnRow struct {
	ID        int
	Status    string
	Reason    string
	Note      string
	CreatedAt time.Time
	Articles  string
}

func orderReturns(c *call, q querier, order int) ([]returnRow, error) {
	return many[returnRow](c.ctx(), q, `
		SELECT r.id, r.status, r.reason, r.note, r.created_at,
		  (SELECT string_agg(ri.quantity || ' × ' || i.product_name, ', ' ORDER BY i.id) FROM return_items ri JOIN order_items i ON i.id = ri.order_item_id
		   WHERE ri.return_id = r.id) AS articles
		FROM returns r WHERE r.order_id = $1 ORDER BY r.id`, order)
}

type orderPage struct {
	Order         orderDetail
	Items         []orderItem
	Returns       []returnRow
	CancelReasons []string
	NextStatuses  []string // for staff
	CanReturn     bool
}

var cancelReasons = []string{"changed_mind", "ordered_twice", "found_cheaper", "takes_too_long"}

func (s *shop) loadOrderPage(c *call) (orderPage, error) {
	p := orderPage{CancelReasons: cancelReasons}
	var err error
	if p.Order, err = s.findOrder(c, s.db, ""); err != nil {
		return p, err
	}
	if p.Items, err = orderItems(c, s.db, p.Order.ID); err != nil {
		return p, err
	}
	for _, it := range p.Items {
		p.CanReturn = p.CanReturn || p.Order.Returnable() && it.Left() > 0
	}
	p.Returns, err = orderReturns(c, s.db, p.Order.ID)
	return p, err
}

func (s *shop) order(c *call) error {
	p, err := s.loadOrderPage(c)
	if err != nil {
		return err
	}
	return c.render("order", "Order "+p.Order.Number, p)
}

// errWrongState: the order has gone on since the page was shown.
var errWrongState = errors.New("not possible in this state")

func (s *shop) orderCancel(c *call) error {
	number := c.r.PathValue("number")
	reason := c.text("reason")
	if !contains(cancelReasons, reason) {
		return errBadInput
	}
	err := pgx.BeginFunc(c.ctx(), s.db, func(tx pgx.Tx) error {
		o, err := s.findOrder(c, tx, "FOR UPDATE OF o")
		if err != nil {
			return err
		}
		if !o.Cancellable() {
			return errWrongState
		}
		return cancelOrder(c, tx, o, reason)
	})
	if errors.Is(err, errWrongState) {
		return c.redirectWith("order-too-late", "/account/orders/"+number)
	}
	if err != nil {
		return err
	}
	return c.redirectWith("order-cancelled", "/account/orders/"+number)
}

// cancelOrder gives back the stock, the money and the coupon.
func cancelOrder(c *call, tx pgx.Tx, o orderDetail, reason string) error {
	steps := []struct {
		sql  string
		args []any
	}{
		{`SELECT v.id FROM variants v JOIN order_items i ON i.variant_id = v.id WHERE i.order_id = $1 ORDER BY v.id FOR NO KEY UPDATE OF v`, []any{o.ID}},
		{`UPDATE variants v SET stock = stock + i.quantity FROM order_items i WHERE i.order_id = $1 AND v.id = i.variant_id`, []any{o.ID}},
		{`UPDATE orders SET status = 'cancelled', cancel_reason = $2, cancelled_at = $3 WHERE id = $1`, []any{o.ID, reason, c.nowTime()}},
		{`UPDATE payments SET status = CASE status WHEN 'captured' THEN 'refunded' ELSE 'voided' END WHERE order_id = $1 AND status IN ('captured', 'authorised')`, []any{o.ID}},
		{`DELETE FROM coupon_redemptions WHERE order_id = $1`, []any{o.ID}},
	}
	for _, s := range steps {
		if _, err := tx.Exec(c.ctx(), s.sql, s.args...); err != nil {
			return err
		}
	}
	return nil
}
