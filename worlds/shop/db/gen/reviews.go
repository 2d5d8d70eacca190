package main

import (
	"io"
	"math"
	"math/rand/v2"
	"time"
)

type review struct {
	product, customer, rating int
	title, body               string
	created                   time.Time
}

var verdicts = [6][]struct{ title, body string }{
	1: {{"Broke after a week", "It broke after a week and the seam was never straight."},
		{"Not as described", "The picture is better than the thing. I sent it back."},
		{"Disappointed", "I expected more for this price."}},
	2: {{"Could be better", "It does its job but feels cheap in the hand."},
		{"So so", "Nice idea, poor finish."},
		{"Too small for me", "Smaller than I thought, and delivery took a while."}},
	3: {{"Fine", "Neither good nor bad. It works."},
		{"Decent", "Decent for the money, nothing special."},
		{"Okay", "Okay for the odd weekend, not for every day."}},
	4: {{"Good", "Good quality, I would buy it again."},
		{"Solid", "Solid and simple. One star off for the packaging."},
		{"Happy with it", "I use it nearly every day and it still looks new."}},
	5: {{"Excellent", "Exactly what I was looking for."},
		{"Love it", "The best one I ever had, and my sister wants one too."},
		{"Worth every cent", "Beautifully made. You can see that somebody cared."}},
}

func makeReviews(r *rand.Rand, products []product, customers int) []review {
	var out []review
	for i := range products {
		p := &products[i]
		for _, c := range r.Perm(customers)[:p.popularity] {
			n := int(math.Round(p.quality + r.NormFloat64()*0.8))
			n = max(1, min(5, n))
			p.ratings = append(p.ratings, n)
			v := verdicts[n][r.IntN(len(verdicts[n]))]
			created := p.created.Add(time.Duration(r.Int64N(int64(today.Sub(p.created)))))
			out = append(out, review{p.id, c + 1, n, v.title, v.body, created.Truncate(time.Second)})
		}
	}
	return out
}

func writeReviews(w io.Writer, reviews []review) {
	var rows [][]any
	for i, v := range reviews {
		rows = append(rows, []any{i + 1, v.product, v.customer, v.rating, v.title, v.body, v.created})
	}
	insert(w, "reviews", "id,product_id,customer_id,rating,title,body,created_at", rows)
}
