package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sort"
	"time"
)

type order struct {
	customer       int
	status         string
	placed         time.Time
	shipped        time.Time
	delivered      time.Time
	cancelled      time.Time
	items          []item
	subtotal       int
	discount       int
	shipping       string
	coupon         int
	to             address
	payment        string
	tracking       string
	returnQuantity int
}

type item struct {
	variant, quantity, cents int
	name                     string
}

type coupon struct {
	code, kind     string
	value, minimum int
	expires        string
	once, active   bool
}

const farAway = "2099-12-31 23:59:59Z"

// Expiry dates are either long past or far away: what a coupon is worth must not
// depend on the day on which somebody runs the shop.
var coupons = []coupon{
	{"WELCOME10", "percent", 10, 0, farAway, true, true},
	{"SAVE5", "fixed", 500, 3000, farAway, false, true},
	{"SPRING15", "percent", 15, 8000, farAway, false, true},
	{"BIG25", "fixed", 2500, 15000, farAway, false, true},
	{"TEATIME20", "percent", 20, 2500, farAway, true, true},
	{"TAKE8", "fixed", 800, 5000, farAway, true, true},
	{"HALFOFF", "percent", 50, 0, farAway, false, false},
	{"WINTER23", "percent", 20, 0, "2024-01-31 23:59:59Z", false, true},
	{"SUMMER24", "percent", 12, 4000, "2024-09-15 23:59:59Z", false, true},
	{"OPENING", "fixed", 1000, 2000, "2023-12-31 23:59:59Z", true, true},
}

var shippingCents = map[string]int{"standard": 495, "express": 1295, "pickup": 0}

func makeOrders(r *rand.Rand, products []product, customers []customer) []order {
	var out []order
	for i := range 600 {
		c := customers[i%len(customers)]
		o := order{customer: c.id}
		o.placed = placedAt(r, i/len(customers))
		o.items = makeItems(r, products, o.placed)
		for _, it := range o.items {
			o.subtotal += it.quantity * it.cents
		}
		o.shipping = []string{"standard", "standard", "standard", "express", "pickup"}[r.IntN(5)]
		o.payment = []string{"card", "card", "card", "invoice", "cash"}[r.IntN(5)]
		o.to = c.addresses[r.IntN(len(c.addresses))]
		if r.IntN(8) == 0 {
			o.useCoupon([]int{2, 3, 9}[r.IntN(3)])
		}
		o.progress(r, i/len(customers))
		out = append(out, o)
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].placed.Before(out[b].placed) })
	return out
}

// placedAt: each customer's n-th order. The first two are of the last days, the
// others lie in slots of 42 days before, so that no two share a date.
func placedAt(r *rand.Rand, n int) time.Time {
	day := 1 + r.IntN(3)
	switch {
	case n == 1:
		day = 5 + r.IntN(6)
	case n > 1:
		day = 16 + (n-2)*42 + r.IntN(40)
	}
	return today.AddDate(0, 0, -day).Truncate(24 * time.Hour).Add(time.Duration(6*3600+r.IntN(15*3600)) * time.Second)
}

func makeItems(r *rand.Rand, products []product, placed time.Time) []item {
	used := map[int]bool{}
	var out []item
	for range 1 + r.IntN(4) {
		p := products[pickUnused(used, func() int { return r.IntN(len(products)) })]
		v := p.variants[r.IntN(len(p.variants))]
		it := item{variant: v.id, name: p.name, cents: p.cents, quantity: 1}
		if r.IntN(3) == 0 {
			it.quantity = 2 + r.IntN(2)
		}
		if placed.Before(today.AddDate(0, -6, 0)) && r.IntN(2) == 0 {
			it.cents = p.cents * 9 / 10 // it was cheaper then
		}
		out = append(out, it)
	}
	return out
}

func (o *order) useCoupon(id int) {
	c := coupons[id-1]
	if o.subtotal < c.minimum || o.placed.Format(time.DateTime) > c.expires {
		return
	}
	o.coupon = id
	o.discount = c.value
	if c.kind == "percent" {
		o.discount = (o.subtotal*c.value + 50) / 100
	}
}

// progress decides how far an order has come: the newest are still open.
func (o *order) progress(r *rand.Rand, n int) {
	o.status = "delivered"
	switch {
	case n == 0:
		o.status = []string{"placed", "placed", "packed"}[r.IntN(3)]
	case n == 1:
		o.status = []string{"packed", "shipped", "shipped", "delivered"}[r.IntN(4)]
	case r.IntN(9) == 0:
		o.status = "cancelled"
		o.cancelled = o.placed.Add(time.Duration(1+r.IntN(20)) * time.Hour)
	}
	if o.status == "shipped" || o.status == "delivered" {
		o.shipped = o.placed.Add(time.Duration(14+r.IntN(20)) * time.Hour)
		o.tracking = fmt.Sprintf("TRK%09d", r.IntN(1_000_000_000))
	}
	if o.status == "delivered" {
		o.delivered = o.shipped.Add(time.Duration(20+r.IntN(30)) * time.Hour)
		if n > 1 && r.IntN(11) == 0 {
			o.returnQuantity = 1
		}
	}
}

func (o *order) total() int { return o.subtotal - o.discount + shippingCents[o.shipping] }

func writeCoupons(w io.Writer) {
	var rows [][]any
	for i, c := range coupons {
		rows = append(rows, []any{i + 1, c.code, c.kind, c.value, c.minimum, c.expires, c.once, c.active, "2023-11-01 08:00:00Z"})
	}
	insert(w, "coupons", "id,code,kind,value,minimum_cents,expires_at,once_per_customer,active,created_at", rows)
}

func writeOrders(w io.Writer, orders []order) {
	var heads, items, payments, redeemed, returns, returned [][]any
	for i, o := range orders {
		id := i + 1
		couponID := any(null{})
		if o.coupon > 0 {
			couponID = o.coupon
			redeemed = append(redeemed, []any{o.coupon, o.customer, id})
		}
		a := o.to
		heads = append(heads, []any{id, o.customer, o.status, o.subtotal, o.discount, shippingCents[o.shipping], o.total(), couponID, o.shipping,
			a.label, a.recipient, a.line1, a.line2, a.city, a.postcode, a.country, o.tracking, cancelReason(o), token(id),
			o.placed, o.shipped, o.delivered, o.cancelled})
		for _, it := range o.items {
			items = append(items, []any{len(items) + 1, id, it.variant, it.name, it.quantity, it.cents})
		}
		payments = append(payments, []any{len(payments) + 1, id, o.payment, o.total(), paymentStatus(o), o.placed})
		if o.returnQuantity > 0 {
			status := []string{"requested", "refunded", "approved"}[id%3]
			reason := []string{"damaged", "does_not_fit", "changed_mind"}[id/3%3]
			returns = append(returns, []any{len(returns) + 1, id, status, reason, o.delivered.Add(50 * time.Hour)})
			returned = append(returned, []any{len(returns), len(items), o.returnQuantity})
		}
	}
	insert(w, "orders", "id,customer_id,status,subtotal_cents,discount_cents,shipping_cents,total_cents,coupon_id,shipping_method,"+
		"ship_label,ship_recipient,ship_line1,ship_line2,ship_city,ship_postcode,ship_country,tracking_code,cancel_reason,checkout_token,"+
		"placed_at,shipped_at,delivered_at,cancelled_at", heads)
	insert(w, "order_items", "id,order_id,variant_id,product_name,quantity,unit_cents", items)
	insert(w, "payments", "id,order_id,method,amount_cents,status,created_at", payments)
	insert(w, "coupon_redemptions", "coupon_id,customer_id,order_id", redeemed)
	insert(w, "returns", "id,order_id,status,reason,created_at", returns)
	insert(w, "return_items", "return_id,order_item_id,quantity", returned)
}

func cancelReason(o order) string {
	if o.status == "cancelled" {
		return "changed_mind"
	}
	return ""
}

// token fills the column that a real checkout fills with a random uuid.
func token(id int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", id) }

func paymentStatus(o order) string {
	switch o.status {
	case "cancelled":
		return "voided"
	case "shipped", "delivered":
		return "captured"
	}
	return "authorised"
}
