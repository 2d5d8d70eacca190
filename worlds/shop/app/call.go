package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	sessionCookie = "session"
	noticeCookie  = "notice"
	csrfField     = "csrf_token"
	csrfHeader    = "X-Csrf-Token"
)

// call is one request on its way to an answer.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	shop   *shop
	token  string // of the browser: the session's once it is signed in
	user   user
	status int // of the page to render; 0 is 200
	notice string
}

// user is who sends the request; zero ids mean nobody is signed in.
type user struct {
	CustomerID int
	StaffID    int
	Name       string
	CartCount  int
}

// SignedIn is true for customers and staff.
func (u user) SignedIn() bool { return u.CustomerID != 0 || u.StaffID != 0 }

// FirstName is what the header greets with.
func (u user) FirstName() string { first, _, _ := strings.Cut(u.Name, " "); return first }

func (c *call) ctx() context.Context { return c.r.Context() }

// identify finds the session of the browser. A browser without one gets a cookie
// that no row knows: it only ties the tokens in forms to this browser.
func (c *call) identify() error {
	cookie, err := c.r.Cookie(sessionCookie)
	if err != nil || len(cookie.Value) < 32 || len(cookie.Value) > 128 {
		c.setToken(newToken())
		return nil
	}
	c.token = cookie.Value
	c.user, err = one[user](c.ctx(), c.shop.db, `
		SELECT coalesce(s.customer_id, 0) AS customer_id, coalesce(s.staff_id, 0) AS staff_id, coalesce(c.name, t.name, '') AS name,
		  (SELECT coalesce(sum(quantity), 0)::int FROM cart_items i WHERE i.customer_id = s.customer_id) AS cart_count
		FROM sessions s LEFT JOIN customers c ON c.id = s.customer_id LEFT JOIN staff t ON t.id = s.staff_id
		WHERE s.token = $1`, c.token)
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}

// setToken gives the browser a session cookie that lives as long as the browser.
func (c *call) setToken(token string) {
	c.token = token
	http.SetCookie(c.w, &http.Cookie{Name: sessionCookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

func newToken() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails: it ends the program if the kernel has no randomness
	return hex.EncodeToString(b)
}

// csrf is the token that forms of this browser must carry. It is a keyed hash of
// the cookie that scripts cannot read, so nothing has to be stored.
func (c *call) csrf() string {
	m := hmac.New(sha256.New, []byte(c.token))
	m.Write([]byte("shop form"))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

func (c *call) checkForm() error {
	if err := c.r.ParseForm(); err != nil {
		return errBadInput
	}
	given := c.r.Header.Get(csrfHeader)
	if given == "" {
		given = c.r.PostForm.Get(csrfField)
	}
	if !hmac.Equal([]byte(given), []byte(c.csrf())) {
		return errStaleForm
	}
	return nil
}

// wantsJSON: the shop's own script asks, not a form of the page.
func (c *call) wantsJSON() bool {
	return strings.HasPrefix(c.r.Header.Get("Accept"), "application/json")
}

func (c *call) json(status int, v any) error {
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(status)
	return json.NewEncoder(c.w).Encode(v)
}

// redirect sends the browser on after a form was handled.
func (c *call) redirect(to string) error {
	http.Redirect(c.w, c.r, to, http.StatusSeeOther)
	return nil
}

// redirectWith also leaves a notice for the next page to show. Only a key travels
// in the cookie; the words are the shop's.
func (c *call) redirectWith(notice, to string) error {
	http.SetCookie(c.w, &http.Cookie{Name: noticeCookie, Value: notice, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	return c.redirect(to)
}

// takeNotice reads the notice that the page before left, and clears it.
func (c *call) takeNotice() string {
	cookie, err := c.r.Cookie(noticeCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(c.w, &http.Cookie{Name: noticeCookie, Path: "/", MaxAge: -1})
	return notices[cookie.Value]
}

func (c *call) askToSignIn() error {
	to := c.r.URL.RequestURI()
	if c.r.Method == http.MethodPost {
		to = localPath(c.r.PostForm.Get("back"), "/")
	}
	login := "/login?next=" + url.QueryEscape(to)
	if c.wantsJSON() {
		return c.json(http.StatusUnauthorized, map[string]any{"ok": false, "message": "Please sign in first.", "location": login})
	}
	return c.redirectWith("sign-in", login)
}

// localPath lets a redirect stay inside the shop whatever a form or link says.
func localPath(p, otherwise string) string {
	u, err := url.Parse(p)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\r\n\t") {
		return otherwise
	}
	return p
}

// pathID is the number in the path; anything else is a page that does not exist.
func (c *call) pathID() (int, error) {
	id, err := strconv.Atoi(c.r.PathValue("id"))
	if err != nil || id <= 0 || id > 1<<30 {
		return 0, errNotFound
	}
	return id, nil
}

// formInt reads a whole number of a form within bounds.
func (c *call) formInt(name string, low, high int) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(c.r.FormValue(name)))
	return n, err == nil && n >= low && n <= high
}

// text reads a text field without surrounding space.
func (c *call) text(name string) string { return strings.TrimSpace(c.r.FormValue(name)) }

func (c *call) nowTime() time.Time { return c.shop.now().UTC() }
