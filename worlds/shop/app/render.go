package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

//go:embed templates static
var files embed.FS

// pages are the parsed templates: one set for each page, all with the layout and the parts.
type pages struct {
	byName map[string]*template.Template
}

// view is what every template sees; Data is the page's own part.
type view struct {
	Title      string
	User       user
	CSRF       string
	Notice     string
	Path       string
	Search     string
	Categories []categoryLink
	Data       any
}

type categoryLink struct {
	ID   int
	Slug string
	Name string
}

// notices are the sentences that a page may show after a redirect.
var notices = map[string]string{
	"sign-in":         "Please sign in first.",
	"welcome":         "You are signed in.",
	"registered":      "Your account is ready. Welcome!",
	"signed-out":      "You are signed out.",
	"added":           "Added to your cart.",
	"cart-changed":    "Your cart was changed.",
	"coupon-on":       "The coupon was applied.",
	"coupon-off":      "The coupon was removed.",
	"no-stock":        "There is not enough of this article in stock.",
	"cart-empty":      "Your cart is empty.",
	"profile-saved":   "Your profile was saved.",
	"address-saved":   "The address was saved.",
	"address-gone":    "The address was deleted.",
	"default-set":     "The default address was changed.",
	"order-placed":    "Thank you! Your order was placed.",
	"order-cancelled": "The order was cancelled.",
	"order-too-late":  "This order can no longer be cancelled.",
	"reordered":       "The articles of the order are in your cart.",
	"reordered-some":  "Some articles are sold out; the others are in your cart.",
	"return-sent":     "Your return was requested.",
	"review-sent":     "Thank you for your review.",
	"saved":           "The changes were saved.",
	"nothing-changed": "There was nothing to save.",
	"not-allowed":     "This change is not possible in the present state.",
	"refunded":        "The payment was refunded.",
	"coupon-created":  "The coupon was created.",
}

func loadPages() (*pages, error) {
	version, err := staticVersion()
	if err != nil {
		return nil, err
	}
	base, err := template.New("").Funcs(helpers(version)).ParseFS(files, "templates/layout.html", "templates/parts/*.html")
	if err != nil {
		return nil, fmt.Errorf("read the templates: %w", err)
	}
	p := &pages{byName: map[string]*template.Template{}}
	names, err := fs.Glob(files, "templates/pages/*.html")
	if err != nil {
		return nil, fmt.Errorf("list the templates: %w", err)
	}
	for _, name := range names {
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(files, name)
		}
		if err == nil {
			err = settle(t)
		}
		if err != nil {
			return nil, fmt.Errorf("read the template %s: %w", name, err)
		}
		p.byName[strings.TrimSuffix(path.Base(name), ".html")] = t
	}
	return p, nil
}

// settle makes html/template do now what it puts off to the first execution:
// finding out how to escape. Otherwise the first page of its kind is slow, and
// again so each time the process is put back to where it was before.
func settle(t *template.Template) error {
	for _, name := range []string{"layout", "cart-body"} {
		if t.Lookup(name) == nil {
			continue
		}
		var wrong *template.Error
		// Without data the execution itself may fail, which does not matter here.
		if err := t.ExecuteTemplate(io.Discard, name, nil); errors.As(err, &wrong) {
			return err
		}
	}
	return nil
}

func helpers(version string) template.FuncMap {
	return template.FuncMap{
		"money":   money,
		"dollars": dollars,
		"date":    func(t time.Time) string { return t.UTC().Format("2 January 2006") },
		"isodate": func(t time.Time) string { return t.UTC().Format("2006-01-02") },
		"clock":   func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04") },
		"static":  func(name string) string { return "/static/" + name + "?v=" + version },
		"plural": func(n int, one, more string) string {
			if n == 1 {
				return fmt.Sprintf("%d %s", n, one)
			}
			return fmt.Sprintf("%d %s", n, more)
		},
		"rating": func(r *float64) string {
			if r == nil {
				return ""
			}
			return fmt.Sprintf("%.1f", *r)
		},
		"starclass": func(r *float64) string {
			if r == nil {
				return "s0"
			}
			return fmt.Sprintf("s%d", int(*r*2+0.5))
		},
		"label":    label,
		"initials": func(s string) string { return s[:1] },
		"seq": func(from, to int) []int {
			var out []int
			for i := from; i <= to; i++ {
				out = append(out, i)
			}
			return out
		},
		"dict": dict,
	}
}

// dict passes several values to a part: dict "name" value ...
func dict(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: key %d is no string", i)
		}
		out[key] = pairs[i+1]
	}
	return out, nil
}

// render answers with a page in the layout. The whole page is made before the
// first byte is sent, so that an error still becomes an error page.
func (c *call) render(name, title string, data any) error {
	v := view{Title: title, User: c.user, CSRF: c.csrf(), Path: c.r.URL.Path, Search: c.r.URL.Query().Get("q"), Data: data}
	v.Notice = c.notice
	if v.Notice == "" {
		v.Notice = c.takeNotice()
	}
	var err error
	v.Categories, err = many[categoryLink](c.ctx(), c.shop.db, `SELECT id, slug, name FROM categories ORDER BY position`)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := c.shop.pages.byName[name].ExecuteTemplate(&b, "layout", v); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if c.status != 0 {
		c.w.WriteHeader(c.status)
	}
	_, err = c.w.Write(b.Bytes())
	return err
}

// fragment renders one part of a page, for a script that puts it in place.
func (c *call) fragment(page, part string, data any) (string, error) {
	var b bytes.Buffer
	v := view{User: c.user, CSRF: c.csrf(), Data: data}
	err := c.shop.pages.byName[page].ExecuteTemplate(&b, part, v)
	return b.String(), err
}

func staticVersion() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		h.Write(content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the static files: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// staticFiles serves styles, scripts and icons. Their address holds a hash of
// their content, so a browser may keep them for ever.
func staticFiles() http.Handler {
	server := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		server.ServeHTTP(w, r)
	})
}

// labels are the words for the codes that the database holds.
var labels = map[string]string{
	"placed": "Placed", "packed": "Packed", "shipped": "Shipped", "delivered": "Delivered", "cancelled": "Cancelled",
	"requested": "Requested", "approved": "Approved", "rejected": "Rejected", "refunded": "Refunded",
	"authorised": "Authorised", "captured": "Captured", "voided": "Voided",
	"card": "Card on file", "invoice": "Invoice", "cash": "Cash on delivery",
	"damaged": "Arrived damaged", "wrong_item": "Wrong article", "does_not_fit": "Does not fit",
	"changed_mind": "Changed my mind", "arrived_late": "Arrived too late",
	"ordered_twice": "Ordered twice by mistake", "found_cheaper": "Found it cheaper", "takes_too_long": "Takes too long",
	"by_staff": "Cancelled by the shop",
	"percent":  "Percent", "fixed": "Fixed amount",
	"standard": "Standard delivery", "express": "Express delivery", "pickup": "Pick up in the shop",
}

func label(code string) string {
	if l, ok := labels[code]; ok {
		return l
	}
	return code
}

// withQuery is the address of the same page with one parameter changed.
func withQuery(u *url.URL, name, value string) string {
	q := u.Query()
	q.Set(name, value)
	return u.Path + "?" + q.Encode()
}
