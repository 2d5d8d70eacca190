package main

import (
	"net/url"
	"strings"
	"sync"
	"testing"
)

func TestAnOrderTakesStockAndMoney(t *testing.T) {
	b := newBench(t)
	variant, cents := b.variant()
	before := b.int(`SELECT stock FROM variants WHERE id = $1`, variant)
	v := b.customer(1)
	a := v.do("POST", "/checkout/place", v.toReview(1, variant, 3))
	if a.status != 303 || !strings.HasPrefix(a.location, "/account/orders/SO-") {
		t.Fatalf("placing answers %d, leading to %q", a.status, a.location)
	}
	if page := v.get(a.location); page.status != 200 || !strings.Contains(page.body, money(3*cents+495)) {
		t.Errorf("the order's page answers %d without the total %s", page.status, money(3*cents+495))
	}
	got := b.text(`SELECT o.status || ' ' || o.total_cents || ' ' || i.quantity || ' ' || p.amount_cents || ' ' || p.status
		FROM orders o JOIN order_items i ON i.order_id = o.id JOIN payments p ON p.order_id = o.id WHERE o.id > 600`)
	total := itoa(3*cents + 495)
	if want := "placed " + total + " 3 " + total + " authorised"; got != want {
		t.Errorf("the order is %q, want %q", got, want)
	}
	if after := b.int(`SELECT stock FROM variants WHERE id = $1`, variant); after != before-3 {
		t.Errorf("the stock went from %d to %d, want %d", before, after, before-3)
	}
	if n := b.int(`SELECT (SELECT count(*) FROM cart_items) + (SELECT count(*) FROM checkouts)`); n != 0 {
		t.Errorf("%d rows of cart and checkout are left", n)
	}
}

func TestTheSameFormMakesOneOrder(t *testing.T) {
	b := newBench(t)
	variant, _ := b.variant()
	v := b.customer(1)
	form := v.toReview(1, variant, 1)
	var wg sync.WaitGroup
	places := make([]string, 6)
	for i := range places {
		wg.Go(func() {
			a, err := v.try("POST", "/checkout/place", form)
			if err != nil {
				t.Error(err)
			}
			places[i] = a.location
		})
	}
	wg.Wait()
	for _, p := range places {
		if p != places[0] || !strings.HasPrefix(p, "/account/orders/SO-") {
			t.Fatalf("six times the same form led to %q", places)
		}
	}
	if n := b.int(`SELECT count(*) FROM orders WHERE id > 600`); n != 1 {
		t.Errorf("six times the same form made %d orders", n)
	}
}

func TestTheLastArticleIsSoldOnce(t *testing.T) {
	b := newBench(t)
	variant, _ := b.variant()
	b.exec(`UPDATE variants SET stock = 2 WHERE id = $1`, variant)
	var wg sync.WaitGroup
	visitors, forms := map[int]*visitor{}, map[int]url.Values{}
	for id := 1; id <= 5; id++ {
		visitors[id] = b.customer(id)
		forms[id] = visitors[id].toReview(id, variant, 1)
	}
	for id := range visitors {
		wg.Go(func() {
			if _, err := visitors[id].try("POST", "/checkout/place", forms[id]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := b.int(`SELECT count(*) FROM orders WHERE id > 600`); n != 2 {
		t.Errorf("of two articles %d were sold", n)
	}
	if n := b.int(`SELECT stock FROM variants WHERE id = $1`, variant); n != 0 {
		t.Errorf("the stock is %d, want 0", n)
	}
}

func TestAChangedPriceIsShownBeforeItIsPaid(t *testing.T) {
	b := newBench(t)
	variant, _ := b.variant()
	v := b.customer(1)
	form := v.toReview(1, variant, 1)
	b.exec(`UPDATE products SET price_cents = price_cents + 100 WHERE id = (SELECT product_id FROM variants WHERE id = $1)`, variant)
	a := v.do("POST", "/checkout/place", form)
	if a.status != 200 || !strings.Contains(a.body, "check the total once more") {
		t.Fatalf("placing at the old price answers %d", a.status)
	}
	if n := b.int(`SELECT count(*) FROM orders WHERE id > 600`); n != 0 {
		t.Errorf("%d orders were made at the old price", n)
	}
	form.Set("seen_total", field(t, a.body, "seen_total"))
	if a := v.do("POST", "/checkout/place", form); !strings.HasPrefix(a.location, "/account/orders/SO-") {
		t.Errorf("placing at the new price leads to %q", a.location)
	}
}

func TestCancellingGivesEverythingBack(t *testing.T) {
	b := newBench(t)
	variant, _ := b.variant()
	before := b.int(`SELECT stock FROM variants WHERE id = $1`, variant)
	v := b.customer(1)
	v.post("/cart/add", "variant", itoa(variant), "quantity", "2")
	v.post("/cart/coupon", "code", "welcome10")
	place := v.do("POST", "/checkout/place", v.toReview(1, variant, 1))
	if n := b.int(`SELECT count(*) FROM coupon_redemptions WHERE order_id > 600`); n != 1 {
		t.Fatalf("the coupon was used %d times", n)
	}
	v.post(place.location+"/cancel", "reason", "changed_mind")
	got := b.text(`SELECT o.status || ' ' || p.status FROM orders o JOIN payments p ON p.order_id = o.id WHERE o.id > 600`)
	if got != "cancelled voided" {
		t.Errorf("order and payment are %q", got)
	}
	if after := b.int(`SELECT stock FROM variants WHERE id = $1`, variant); after != before {
		t.Errorf("the stock is %d, want %d", after, before)
	}
	if n := b.int(`SELECT count(*) FROM coupon_redemptions WHERE order_id > 600`); n != 0 {
		t.Errorf("the coupon still counts as used")
	}
	v.post(place.location+"/cancel", "reason", "changed_mind")
	if after := b.int(`SELECT stock FROM variants WHERE id = $1`, variant); after != before {
		t.Errorf("cancelling twice made the stock %d, want %d", after, before)
	}
}

func TestWhatIsPackedCannotBeCancelled(t *testing.T) {
	b := newBench(t)
	number := b.text(`SELECT min(number) FROM orders WHERE status = 'packed'`)
	v := b.customer(b.int(`SELECT customer_id FROM orders WHERE number = $1`, number))
	v.post("/account/orders/"+number+"/cancel", "reason", "changed_mind")
	if got := b.text(`SELECT status FROM orders WHERE number = $1`, number); got != "packed" {
		t.Errorf("the order is %s", got)
	}
}
