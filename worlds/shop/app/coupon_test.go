package main

import (
	"strings"
	"testing"
)

func TestDiscount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind                  string
		value, subtotal, want int
	}{
		{"percent", 10, 1995, 200}, {"percent", 10, 1994, 199}, {"percent", 15, 3333, 500}, {"percent", 100, 777, 777},
		{"percent", 1, 49, 0}, {"percent", 1, 50, 1}, {"fixed", 500, 3000, 500}, {"fixed", 500, 300, 300},
	} {
		if got := (coupon{Kind: c.kind, Value: c.value}).discount(c.subtotal); got != c.want {
			t.Errorf("%s %d of %d takes off %d, want %d", c.kind, c.value, c.subtotal, got, c.want)
		}
	}
}

func TestCouponRules(t *testing.T) {
	b := newBench(t)
	variant, cents := b.variant()
	v := b.customer(1)
	v.post("/cart/add", "variant", itoa(variant), "quantity", "1")
	b.exec(`UPDATE coupons SET minimum_cents = $1 WHERE code = 'SAVE5'`, cents+1)
	for code, want := range map[string]string{
		"NOSUCH": "no coupon with this code", "WINTER23": "has expired", "HALFOFF": "is not valid", "SAVE5": "needs articles for at least",
	} {
		if page := v.post("/cart/coupon", "code", code); !strings.Contains(page.body, want) {
			t.Errorf("%s does not say %q", code, want)
		}
	}
	if n := b.int(`SELECT count(coupon_id) FROM checkouts`); n != 0 {
		t.Fatal("a coupon was taken that must not be")
	}
	b.exec(`UPDATE coupons SET minimum_cents = $1 WHERE code = 'SAVE5'`, cents)
	if a := v.post("/cart/coupon", "code", " save5 "); a.status != 303 {
		t.Errorf("a coupon at exactly its minimum answers %d", a.status)
	}
}

func TestACouponIsUsedOncePerCustomer(t *testing.T) {
	b := newBench(t)
	variant, cents := b.variant()
	v := b.customer(1)
	v.post("/cart/add", "variant", itoa(variant), "quantity", "1")
	v.post("/cart/coupon", "code", "WELCOME10")
	v.do("POST", "/checkout/place", v.toReview(1, variant, 1))
	want := 2*cents - (2*cents*10+50)/100 + 495
	if got := b.int(`SELECT total_cents FROM orders WHERE id > 600`); got != want {
		t.Errorf("the total is %d, want %d", got, want)
	}
	v.post("/cart/add", "variant", itoa(variant), "quantity", "1")
	if page := v.post("/cart/coupon", "code", "WELCOME10"); !strings.Contains(page.body, "used the coupon WELCOME10 before") {
		t.Error("the coupon can be used twice")
	}
	other := b.customer(2)
	other.post("/cart/add", "variant", itoa(variant), "quantity", "1")
	if a := other.post("/cart/coupon", "code", "WELCOME10"); a.status != 303 {
		t.Error("another customer cannot use it")
	}
}

func TestACouponThatEndsMeanwhileIsNotPaidFor(t *testing.T) {
	b := newBench(t)
	variant, _ := b.variant()
	v := b.customer(1)
	v.post("/cart/add", "variant", itoa(variant), "quantity", "1")
	v.post("/cart/coupon", "code", "WELCOME10")
	form := v.toReview(1, variant, 1)
	b.exec(`UPDATE coupons SET active = false WHERE code = 'WELCOME10'`)
	if a := v.do("POST", "/checkout/place", form); a.status != 200 || !strings.Contains(a.body, "is not valid") {
		t.Errorf("placing answers %d", a.status)
	}
	if n := b.int(`SELECT count(*) FROM orders WHERE id > 600`); n != 0 {
		t.Error("the order was placed")
	}
}
