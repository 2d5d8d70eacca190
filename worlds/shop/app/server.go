package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// requestTimeout bounds the work for one request, the waiting for locks included.
const requestTimeout = 10 * time.Second

// shop is the application: the database, the templates and a clock.
type shop struct {
	db    *pgxpool.Pool
	pages *pages
	now   func() time.Time
}

func newShop(db *pgxpool.Pool, now func() time.Time) (*shop, error) {
	p, err := loadPages()
	if err != nil {
		return nil, err
	}
	return &shop{db: db, pages: p, now: now}, nil
}

// page is one handler: it answers through c, or returns an error that becomes an error page.
type page func(c *call) error

// access says who may see a page.
type access int

const (
	everybody access = iota
	customersOnly
	staffOnly
)

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.Handle("GET /static/", staticFiles())
	for pattern, h := range s.publicPages() {
		mux.Handle(pattern, s.serve(everybody, h))
	}
	for pattern, h := range s.customerPages() {
		mux.Handle(pattern, s.serve(customersOnly, h))
	}
	for pattern, h := range s.staffPages() {
		mux.Handle(pattern, s.serve(staffOnly, h))
	}
	return secureHeaders(mux)
}

func (s *shop) publicPages() map[string]page {
	return map[string]page{
		"GET /{$}":               s.home,
		"GET /c/{slug}":          s.category,
		"GET /search":            s.search,
		"GET /api/suggest":       s.suggest,
		"GET /p/{slug}":          s.product,
		"GET /api/stock":         s.stock,
		"POST /cart/add":         s.cartAdd,
		"GET /login":             s.loginForm,
		"POST /login":            s.login,
		"GET /register":          s.registerForm,
		"POST /register":         s.register,
		"POST /logout":           s.logout,
		"GET /help":              s.help,
		"POST /p/{slug}/reviews": s.reviewAdd,
		"/":                      func(*call) error { return errNotFound },
	}
}

func (s *shop) customerPages() map[string]page {
	return map[string]page{
		"GET /cart":                             s.cart,
		"POST /cart/update":                     s.cartUpdate,
		"POST /cart/remove":                     s.cartRemove,
		"POST /cart/coupon":                     s.couponApply,
		"POST /cart/coupon/remove":              s.couponRemove,
		"GET /checkout":                         s.checkoutAddress,
		"POST /checkout":                        s.checkoutAddressSave,
		"GET /checkout/delivery":                s.checkoutDelivery,
		"POST /checkout/delivery":               s.checkoutDeliverySave,
		"GET /checkout/review":                  s.checkoutReview,
		"POST /checkout/place":                  s.checkoutPlace,
		"GET /account":                          s.account,
		"GET /account/profile":                  s.profile,
		"POST /account/profile":                 s.profileSave,
		"GET /account/addresses":                s.addresses,
		"GET /account/addresses/new":            s.addressNew,
		"POST /account/addresses/new":           s.addressCreate,
		"GET /account/addresses/{id}":           s.addressEdit,
		"POST /account/addresses/{id}":          s.addressSave,
		"POST /account/addresses/{id}/delete":   s.addressDelete,
		"POST /account/addresses/{id}/default":  s.addressDefault,
		"GET /account/orders":                   s.orders,
		"GET /account/orders/{number}":          s.order,
		"POST /account/orders/{number}/cancel":  s.orderCancel,
		"POST /account/orders/{number}/reorder": s.orderReorder,
		"GET /account/orders/{number}/return":   s.returnForm,
		"POST /account/orders/{number}/return":  s.returnCreate,
		"GET /account/reviews":                  s.myReviews,
	}
}

func (s *shop) staffPages() map[string]page {
	return map[string]page{
		"GET /admin":                         s.adminHome,
		"GET /admin/orders":                  s.adminOrders,
		"GET /admin/orders/{number}":         s.adminOrder,
		"POST /admin/orders/{number}/status": s.adminOrderStatus,
		"POST /admin/orders/{number}/refund": s.adminOrderRefund,
		"POST /admin/returns/{id}":           s.adminReturn,
		"GET /admin/products":                s.adminProducts,
		"GET /admin/products/{id}":           s.adminProduct,
		"POST /admin/products/{id}":          s.adminProductSave,
		"GET /admin/coupons":                 s.adminCoupons,
		"POST /admin/coupons":                s.adminCouponCreate,
		"POST /admin/coupons/{id}/active":    s.adminCouponActive,
		"GET /admin/customers":               s.adminCustomers,
		"GET /admin/customers/{id}":          s.adminCustomer,
	}
}

// serve wraps a page: who is it, may they, is the form genuine, and what to show on an error.
func (s *shop) serve(who access, h page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		c := &call{w: w, r: r.WithContext(ctx), shop: s}
		if err := c.run(who, h); err != nil {
			c.fail(err)
		}
	})
}

func (c *call) run(who access, h page) error {
	if err := c.identify(); err != nil {
		return err
	}
	if c.r.Method == http.MethodPost {
		if err := c.checkForm(); err != nil {
			return err
		}
	}
	switch {
	case who == customersOnly && c.user.CustomerID == 0, who == staffOnly && c.user.StaffID == 0:
		if c.user.SignedIn() {
			return errForbidden
		}
		return c.askToSignIn()
	}
	return h(c)
}

// health is the readiness probe: the database answers.
func (s *shop) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := s.db.Ping(ctx); err != nil {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func secureHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; object-src 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// The failures that have a page of their own; everything else is a plain 500.
var (
	errNotFound  = errors.New("not found")
	errForbidden = errors.New("forbidden")
	errStaleForm = errors.New("the form is out of date")
	errBadInput  = errors.New("bad input")
	errHeld      = errors.New("somebody else is working on it")
)

// fail answers with an error page, or an error in JSON where the caller is a script.
func (c *call) fail(err error) {
	status, message := http.StatusInternalServerError, "Something went wrong on our side. Nothing was changed; please try again."
	switch {
	case errors.Is(err, errNotFound):
		status, message = http.StatusNotFound, "We could not find what you were looking for."
	case errors.Is(err, errForbidden):
		status, message = http.StatusForbidden, "Your account may not open this page."
	case errors.Is(err, errStaleForm):
		status, message = http.StatusForbidden, "This form is out of date. Please go back, reload the page and try again."
	case errors.Is(err, errHeld):
		status, message = http.StatusConflict, "Somebody else is working on this order at the moment. Nothing was changed; please try again in a little while."
	case errors.Is(err, errBadInput), notText(err):
		status, message = http.StatusBadRequest, "We could not understand this request."
	default:
		fmt.Fprintf(os.Stderr, "shop: %s %s: %v\n", c.r.Method, c.r.URL.Path, err)
	}
	if c.wantsJSON() {
		_ = c.json(status, map[string]any{"ok": false, "message": message})
		return
	}
	c.status = status
	if renderErr := c.render("error", http.StatusText(status), message); renderErr != nil {
		http.Error(c.w, message, status)
	}
}
