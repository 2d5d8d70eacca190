// Command gen writes seed.sql, the data that the shop starts with. It is
// deterministic: the same program writes the same bytes.
//
// Run it in worlds/shop/db after a change of the data:
//
//	go run ./gen > seed.sql
package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// today is the day on which the world's episodes start. Nothing in the seed is later.
var today = time.Date(2025, 3, 10, 9, 0, 0, 0, time.UTC)

// stream returns a generator of its own for each part of the data, so that a
// change of one part does not shift the others.
func stream(n uint64) *rand.Rand { return rand.New(rand.NewPCG(20250310, n)) }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	products := makeProducts(stream(1))
	customers, err := makeCustomers(stream(2))
	if err != nil {
		return err
	}
	reviews := makeReviews(stream(3), products, len(customers))
	orders := makeOrders(stream(4), products, customers)
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(out, "-- Written by gen; change that program and run it again.")
	writeCatalogue(out, products)
	if err := writePeople(out, customers); err != nil {
		return err
	}
	writeCoupons(out)
	writeOrders(out, orders)
	writeReviews(out, reviews)
	writeSequences(out)
	return out.Flush()
}
