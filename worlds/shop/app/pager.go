package main

import (
	"net/url"
	"strconv"
)

// pager is the row of page numbers below a list.
type pager struct {
	Page, Pages    int
	First, Last    int // the numbers of the first and last row shown
	Total          int
	Previous, Next string
	Links          []pageLink
}

type pageLink struct {
	Number  int
	URL     string
	Current bool
	Gap     bool // a jump in the numbers before this one
}

// newPager keeps the page within the range that exists.
func newPager(u *url.URL, page, perPage, total int) pager {
	p := pager{Page: page, Pages: max(1, (total+perPage-1)/perPage), Total: total}
	p.Page = min(p.Page, p.Pages)
	p.First, p.Last = min(total, (p.Page-1)*perPage+1), min(total, p.Page*perPage)
	at := func(n int) string { return withQuery(u, "page", strconv.Itoa(n)) }
	if p.Page > 1 {
		p.Previous = at(p.Page - 1)
	}
	if p.Page < p.Pages {
		p.Next = at(p.Page + 1)
	}
	last := 0
	for n := 1; n <= p.Pages; n++ {
		if n != 1 && n != p.Pages && (n < p.Page-2 || n > p.Page+2) {
			continue
		}
		p.Links = append(p.Links, pageLink{n, at(n), n == p.Page, n > last+1})
		last = n
	}
	return p
}
