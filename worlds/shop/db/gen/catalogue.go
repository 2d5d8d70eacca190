package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

type product struct {
	id, category int
	name, slug   string
	description  string
	cents        int
	created      time.Time
	variants     []variant
	quality      float64 // the mean around which reviews are drawn
	popularity   int     // how many reviews are drawn
	ratings      []int
}

type variant struct {
	id           int
	sku          string
	size, colour string
	stock        int
}

// line is one line of a category: a kind of article, made in several collections.
type line struct {
	noun  string
	low   int // price range in whole dollars
	high  int
	about string
}

type category struct {
	name, code, about string
	sizes, colours    []string
	lines             []line
}

const perLine = 2

var collections = strings.Fields(`Alder Birch Cove Dune Ember Fern Grove Harbor Isle Juniper Kestrel Lark
Meadow Nettle Opal Pebble Quarry Ridge Sable Thistle Umber Vale Willow Yarrow`)

func makeProducts(r *rand.Rand) []product {
	var out []product
	variantID := 0
	for c, cat := range categories {
		names := map[string]bool{}
		prices := map[int]bool{}
		for i := range len(cat.lines) * perLine {
			l := cat.lines[i%len(cat.lines)]
			p := product{id: len(out) + 1, category: c + 1}
			p.name = pickUnused(names, func() string { return collections[r.IntN(len(collections))] + " " + l.noun })
			p.slug = strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(p.name, "'", ""), " ", "-"))
			p.cents = pickUnused(prices, func() int { return price(r, l) })
			p.description = describe(r, l)
			p.created = today.AddDate(0, 0, -30-r.IntN(700)).Truncate(24 * time.Hour).Add(8 * time.Hour)
			p.quality = 2.4 + 2.5*r.Float64()
			p.popularity = popularity(r)
			p.variants = makeVariants(r, cat, p, &variantID)
			out = append(out, p)
		}
	}
	return out
}

// pickUnused draws until it meets a value that is not in used, and notes it there.
func pickUnused[T comparable](used map[T]bool, draw func() T) T {
	for {
		if v := draw(); !used[v] {
			used[v] = true
			return v
		}
	}
}

func price(r *rand.Rand, l line) int {
	dollars := l.low + r.IntN(l.high-l.low+1)
	return dollars*100 + []int{0, 50, 90, 95, 99}[r.IntN(5)]
}

// popularity: most articles have a few reviews, some many, some none.
func popularity(r *rand.Rand) int {
	switch r.IntN(10) {
	case 0:
		return 0
	case 1, 2, 3, 4:
		return 1 + r.IntN(3)
	case 5, 6, 7:
		return 3 + r.IntN(5)
	default:
		return 8 + r.IntN(14)
	}
}

func describe(r *rand.Rand, l line) string {
	return l.about + " " + virtues[r.IntN(len(virtues))] + " " + cares[r.IntN(len(cares))]
}

func makeVariants(r *rand.Rand, cat category, p product, nextID *int) []variant {
	sizes, colours := cat.sizes, []string{""}
	if len(sizes) == 0 {
		sizes = []string{""}
	}
	if n := len(cat.colours); n > 0 {
		colours = nil
		for _, k := range r.Perm(n)[:2+r.IntN(2)] {
			colours = append(colours, cat.colours[k])
		}
	}
	soldOut := r.IntN(14) == 0
	var out []variant
	for _, colour := range colours {
		for _, size := range sizes {
			*nextID++
			v := variant{id: *nextID, size: size, colour: colour, stock: stock(r)}
			if soldOut {
				v.stock = 0
			}
			v.sku = fmt.Sprintf("%s-%03d-%02d", cat.code, p.id, len(out)+1)
			out = append(out, v)
		}
	}
	return out
}

func stock(r *rand.Rand) int {
	switch n := r.IntN(20); {
	case n < 2:
		return 0
	case n < 5:
		return 1 + r.IntN(4)
	default:
		return 6 + r.IntN(60)
	}
}

func writeCatalogue(w io.Writer, products []product) {
	var cats, prods, vars [][]any
	for i, c := range categories {
		slug := strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(c.name), " & ", "-and-"), " ", "-")
		cats = append(cats, []any{i + 1, slug, c.name, c.about, i + 1})
	}
	for _, p := range products {
		rating := any(null{})
		if len(p.ratings) > 0 {
			rating = mean(p.ratings)
		}
		prods = append(prods, []any{p.id, p.category, p.slug, p.name, p.description, p.cents, rating, len(p.ratings), p.created})
		for i, v := range p.variants {
			vars = append(vars, []any{v.id, p.id, v.sku, v.size, v.colour, i + 1, v.stock})
		}
	}
	insert(w, "categories", "id,slug,name,description,position", cats)
	insert(w, "products", "id,category_id,slug,name,description,price_cents,rating,review_count,created_at", prods)
	insert(w, "variants", "id,product_id,sku,size,colour,position,stock", vars)
	insert(w, "shipping_methods", "code,name,detail,cents,position", [][]any{
		{"standard", "Standard delivery", "3 to 5 working days", 495, 1},
		{"express", "Express delivery", "next working day", 1295, 2},
		{"pickup", "Pick up in the shop", "ready tomorrow, free of charge", 0, 3},
	})
}

// mean rounds half away from zero to one decimal, as PostgreSQL rounds a numeric.
func mean(ratings []int) string {
	sum := 0
	for _, n := range ratings {
		sum += n
	}
	tenths := (20*sum + len(ratings)) / (2 * len(ratings))
	return fmt.Sprintf("%d.%d", tenths/10, tenths%10)
}
