// Package crew divides numbered work among workers that each take the next piece as soon
// as they are free.
package crew

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
)

// Run has workers do the pieces 0 to n-1. Each worker, from 0, is one call of work, which takes
// its pieces from next; what it needs for all of them it makes and ends itself. The first error
// ends the work, and so does the end of ctx: pieces that were taken are told by their
// context, no others are taken. The error is the cause.
func Run(ctx context.Context, workers, n int, work func(ctx context.Context, worker int, next iter.Seq[int]) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var taken atomic.Int64
	next := func(yield func(int) bool) {
		for ctx.Err() == nil {
			i := int(taken.Add(1)) - 1
			if i >= n || !yield(i) {
				return
			}
		}
	}
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			if err := work(ctx, worker, next); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
