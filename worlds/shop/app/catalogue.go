package main

import (
	"net/url"
	"strconv"
	"strings"
)

// card is a product as listings show it.
type card struct {
	ID          int
	Slug        string
	Name        string
	Category    string
	CategoryID  int
	PriceCents  int
	Rating      *float64
	ReviewCount int
	Stock       int
	Variants    int
	OnlyVariant int
}

const cardColumns = `p.id, p.slug, p.name, c.name AS category, c.id AS category_id, p.price_cents, p.rating::float8 AS rating, p.review_count,
	(SELECT coalesce(sum(stock), 0)::int FROM variants v WHERE v.product_id = p.id) AS stock,
	(SELECT count(*)::int FROM variants v WHERE v.product_id = p.id) AS variants,
	(SELECT min(id) FROM variants v WHERE v.product_id = p.id) AS only_variant`

// filter is what the form beside a listing asks for.
type filter struct {
	Query    string
	Category string
	Min, Max string
	Rating   string
	Colours  []string
	InStock  bool
	Sort     string
	PerPage  int
	Page     int

	minCents, maxCents int
	Problem            string
}

// HasColour is for the templates.
func (f filter) HasColour(c string) bool {
	for _, have := range f.Colours {
		if have == c {
			return true
		}
	}
	return false
}

// sortOrders: the key in the address, the words on the page, the SQL. Each ends in
// the name, which is unique, so that a listing never depends on chance.
var sortOrders = []struct{ Key, Label, sql string }{
	{"relevance", "Best match", "exact DESC, prefix DESC, in_name DESC, p.review_count DESC, p.name"},
	{"price-asc", "Price: low to high", "p.price_cents, p.name"},
	{"price-desc", "Price: high to low", "p.price_cents DESC, p.name"},
	{"rating", "Best rated", "p.rating DESC NULLS LAST, p.review_count DESC, p.name"},
	{"reviews", "Most reviewed", "p.review_count DESC, p.name"},
	{"newest", "Newest", "p.created_at DESC, p.name"},
	{"name", "Name", "p.name"},
}

var pageSizes = []int{24, 48}

func readFilter(q url.Values) filter {
	f := filter{Query: strings.Join(strings.Fields(q.Get("q")), " "), Category: q.Get("category"), Min: strings.TrimSpace(q.Get("min")),
		Max: strings.TrimSpace(q.Get("max")), Rating: q.Get("rating"), Colours: q["colour"], InStock: q.Get("stock") == "1",
		Sort: sortOrders[0].Key, PerPage: pageSizes[0], Page: 1, maxCents: 1 << 30}
	for _, o := range sortOrders {
		if o.Key == q.Get("sort") {
			f.Sort = o.Key
		}
	}
	for _, n := range pageSizes {
		if strconv.Itoa(n) == q.Get("per") {
			f.PerPage = n
		}
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 && n < 10000 {
		f.Page = n
	}
	f.minCents = f.bound(f.Min, 0)
	f.maxCents = f.bound(f.Max, 1<<30)
	return f
}

func (f *filter) bound(s string, otherwise int) int {
	if s == "" {
		return otherwise
	}
	cents, err := parseMoney(s)
	if err != nil {
		f.Problem = "A price limit was not understood: " + err.Error() + "."
		return otherwise
	}
	return cents
}

// patterns makes one LIKE pattern for each word.
func patterns(query string) []string {
	words := strings.Fields(query)
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, "%"+escapeLike(w)+"%")
	}
	return out
}

func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

// listing is one page of products.
type listing struct {
	Heading, About string
	Action         string // where the filter form leads
	Filter         filter
	Cards          []card
	Total          int
	Pager          pager
	Sorts          any
	PageSizes      []int
	Colours        []string
	Search         bool
}

const listingWhere = `
	FROM products p JOIN categories c ON c.id = p.category_id
	WHERE p.active
	  AND ($1 = '' OR c.slug = $1)
	  AND (p.name || ' ' || c.name || ' ' || p.description) ILIKE ALL ($2::text[])
	  AND p.price_cents BETWEEN $3 AND $4
	  AND ($5 = '' OR p.rating >= nullif($5, '')::numeric)
	  AND (NOT $6 OR EXISTS (SELECT FROM variants v WHERE v.product_id = p.id AND v.stock > 0 AND (cardinality($7::text[]) = 0 OR v.colour = ANY ($7))))
	  AND (cardinality($7::text[]) = 0 OR EXISTS (SELECT FROM variants v WHERE v.product_id = p.id AND v.colour = ANY ($7)))`

func (s *shop) list(c *call, l *listing) error {
	f := &l.Filter
	if n, err := strconv.ParseFloat(f.Rating, 64); err != nil || n < 1 || n > 5 {
		f.Rating = ""
	}
	if f.Colours == nil {
		f.Colours = []string{}
	}
	args := []any{f.Category, patterns(f.Query), f.minCents, f.maxCents, f.Rating, f.InStock, f.Colours}
	var err error
	if l.Total, err = scalar[int](c.ctx(), s.db, `SELECT count(*)`+listingWhere, args...); err != nil {
		return err
	}
	l.Pager = newPager(c.r.URL, f.Page, f.PerPage, l.Total)
	args = append(args, escapeLike(f.Query), f.PerPage, (l.Pager.Page-1)*f.PerPage)
	sql := `SELECT ` + cardColumns + `, p.name ILIKE $8 AS exact, p.name ILIKE $8 || '%' AS prefix, p.name ILIKE ALL ($2::text[]) AS in_name` +
		listingWhere + ` ORDER BY ` + f.orderSQL() + ` LIMIT $9 OFFSET $10`
	type ranked struct {
		card
		Exact, Prefix, InName bool
	}
	rows, err := many[ranked](c.ctx(), s.db, sql, args...)
	if err != nil {
		return err
	}
	for _, r := range rows {
		l.Cards = append(l.Cards, r.card)
	}
	l.Sorts, l.PageSizes = sortOrders, pageSizes
	l.Colours, err = s.colours(c, f.Category)
	return err
}

func (f filter) orderSQL() string {
	for _, o := range sortOrders {
		if o.Key == f.Sort {
			return o.sql
		}
	}
	return sortOrders[0].sql
}

func (s *shop) colours(c *call, category string) ([]string, error) {
	type row struct{ Colour string }
	rows, err := many[row](c.ctx(), s.db, `
		SELECT DISTINCT v.colour FROM variants v JOIN products p ON p.id = v.product_id JOIN categories c ON c.id = p.category_id
		WHERE v.colour <> '' AND ($1 = '' OR c.slug = $1) ORDER BY 1`, category)
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.Colour)
	}
	return out, err
}

func (s *shop) category(c *call) error {
	type row struct{ Name, Description string }
	slug := c.r.PathValue("slug")
	cat, err := one[row](c.ctx(), s.db, `SELECT name, description FROM categories WHERE slug = $1`, slug)
	if err != nil {
		return err
	}
	l := listing{Heading: cat.Name, About: cat.Description, Action: "/c/" + slug, Filter: readFilter(c.r.URL.Query())}
	l.Filter.Category = slug
	if err := s.list(c, &l); err != nil {
		return err
	}
	return c.render("listing", cat.Name, l)
}

func (s *shop) search(c *call) error {
	l := listing{Heading: "All products", Action: "/search", Filter: readFilter(c.r.URL.Query()), Search: true}
	if l.Filter.Query != "" {
		l.Heading = "Results for “" + l.Filter.Query + "”"
	}
	if err := s.list(c, &l); err != nil {
		return err
	}
	return c.render("listing", l.Heading, l)
}

// suggest answers what is typed into the search field with a few products.
func (s *shop) suggest(c *call) error {
	q := strings.Join(strings.Fields(c.r.URL.Query().Get("q")), " ")
	type suggestion struct {
		Name     string `json:"name"`
		URL      string `json:"url"`
		Category string `json:"category"`
		Price    string `json:"price"`
	}
	out := []suggestion{}
	if len(q) >= 2 && len(q) <= 100 {
		cards, err := many[card](c.ctx(), s.db, `SELECT `+cardColumns+` FROM products p JOIN categories c ON c.id = p.category_id
			WHERE p.active AND p.name ILIKE ALL ($1::text[]) ORDER BY p.name ILIKE $2 || '%' DESC, p.review_count DESC, p.name LIMIT 6`,
			patterns(q), escapeLike(q))
		if err != nil {
			return err
		}
		for _, p := range cards {
			out = append(out, suggestion{p.Name, "/p/" + p.Slug, p.Category, money(p.PriceCents)})
		}
	}
	return c.json(200, out)
}

// homePage is the front page.
type homePage struct {
	Popular []card
	Newest  []card
}

func (s *shop) home(c *call) error {
	const sql = `SELECT ` + cardColumns + ` FROM products p JOIN categories c ON c.id = p.category_id WHERE p.active `
	var d homePage
	var err error
	if d.Popular, err = many[card](c.ctx(), s.db, sql+`AND p.rating >= 4 ORDER BY p.review_count DESC, p.name LIMIT 10`); err != nil {
		return err
	}
	if d.Newest, err = many[card](c.ctx(), s.db, sql+`ORDER BY p.created_at DESC, p.name LIMIT 5`); err != nil {
		return err
	}
	return c.render("home", "Welcome", d)
}

func (s *shop) help(c *call) error { return c.render("help", "Help", nil) }
