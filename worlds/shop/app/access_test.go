package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestFormsNeedTheirToken(t *testing.T) {
	b := newBench(t)
	variant, _ := b.variant()
	v, other := b.customer(1), b.customer(2)
	for name, token := range map[string]string{"none": "", "another's": other.csrf, "a wrong one": strings.Repeat("0", 32)} {
		form := v.form("variant", itoa(variant), "quantity", "1")
		form.Set(csrfField, token)
		if a := v.do("POST", "/cart/add", form); a.status != http.StatusForbidden {
			t.Errorf("with %s token the form answers %d", name, a.status)
		}
	}
	if n := b.int(`SELECT count(*) FROM cart_items`); n != 0 {
		t.Error("a form without its token changed the cart")
	}
}

func TestCustomersSeeOnlyTheirOwn(t *testing.T) {
	b := newBench(t)
	v := b.customer(1)
	number := b.text(`SELECT min(number) FROM orders WHERE customer_id = 2 AND status = 'delivered'`)
	address := b.int(`SELECT max(id) FROM addresses WHERE customer_id = 2`)
	before := b.text(`SELECT md5(string_agg(a::text, '' ORDER BY id)) FROM addresses a`)
	for _, path := range []string{"/account/orders/" + number, "/account/orders/" + number + "/return", "/account/addresses/" + itoa(address)} {
		if a := v.get(path); a.status != http.StatusNotFound {
			t.Errorf("GET %s answers %d", path, a.status)
		}
	}
	full := []string{"reason", "changed_mind", "label", "Mine", "recipient", "Me", "line1", "1 Road", "city", "Here", "postcode", "1", "country", "Canada", "is_default", "1"}
	for _, path := range []string{"/account/orders/" + number + "/cancel", "/account/orders/" + number + "/reorder", "/account/orders/" + number + "/return",
		"/account/addresses/" + itoa(address), "/account/addresses/" + itoa(address) + "/delete", "/account/addresses/" + itoa(address) + "/default"} {
		if a := v.post(path, full...); a.status != http.StatusNotFound {
			t.Errorf("POST %s answers %d", path, a.status)
		}
	}
	if after := b.text(`SELECT md5(string_agg(a::text, '' ORDER BY id)) FROM addresses a`); after != before {
		t.Error("addresses were changed")
	}
	variant, _ := b.variant()
	v.post("/cart/add", "variant", itoa(variant), "quantity", "1")
	if a := v.post("/checkout", "address", itoa(address)); a.status != http.StatusUnprocessableEntity {
		t.Errorf("sending to the address of another answers %d", a.status)
	}
}

func TestTheBackOfficeIsForStaff(t *testing.T) {
	b := newBench(t)
	customer, staff, nobody := b.customer(1), b.staff(1), &visitor{b: b}
	for _, path := range []string{"/admin", "/admin/orders", "/admin/orders/SO-10001", "/admin/products", "/admin/products/1", "/admin/coupons", "/admin/customers", "/admin/customers/2"} {
		if a := customer.get(path); a.status != http.StatusForbidden {
			t.Errorf("to a customer %s answers %d", path, a.status)
		}
		if a := nobody.get(path); a.status != http.StatusSeeOther || !strings.HasPrefix(a.location, "/login") {
			t.Errorf("to nobody %s answers %d, leading to %q", path, a.status, a.location)
		}
		if a := staff.get(path); a.status != http.StatusOK {
			t.Errorf("to staff %s answers %d", path, a.status)
		}
	}
	for _, path := range []string{"/admin/orders/SO-10001/status", "/admin/orders/SO-10001/refund", "/admin/returns/1", "/admin/products/1", "/admin/coupons", "/admin/coupons/1/active"} {
		if a := customer.post(path, "status", "cancelled", "price", "1.00"); a.status != http.StatusForbidden {
			t.Errorf("to a customer POST %s answers %d", path, a.status)
		}
	}
}

func TestStaffAndCustomersSignInWithTheirPasswords(t *testing.T) {
	b := newBench(t)
	email := b.text(`SELECT email FROM customers WHERE id = 7`)
	for _, c := range []struct{ email, password, to string }{
		{email, "open-sesame-25", "/account"}, {strings.ToUpper(email), "open-sesame-25", "/account"}, {"ida@shop.example", "behind-the-counter-25", "/admin"},
		{email, "open-sesame-26", ""}, {email, "", ""}, {"nobody@example.com", "open-sesame-25", ""},
	} {
		v := &visitor{b: b, token: newToken()}
		v.csrf = (&call{token: v.token}).csrf()
		a := v.post("/login", "email", c.email, "password", c.password)
		if c.to == "" && a.status != http.StatusUnprocessableEntity || a.location != c.to {
			t.Errorf("%s with %q answers %d, leading to %q", c.email, c.password, a.status, a.location)
		}
	}
	if n := b.int(`SELECT count(*) FROM sessions`); n != 3 {
		t.Errorf("there are %d sessions, want 3", n)
	}
}

func TestRedirectsStayInTheShop(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/p/x": "/p/x", "/search?q=a": "/search?q=a", "//evil.example": "/", "https://evil.example/": "/", "/\\evil.example": "/", "": "/", "javascript:alert(1)": "/", "x": "/",
	} {
		if got := localPath(path, "/"); got != want {
			t.Errorf("%q becomes %q, want %q", path, got, want)
		}
	}
}
