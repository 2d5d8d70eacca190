package crew

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
)

func TestEachPieceIsDoneOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var done []int
	err := Run(t.Context(), 4, 100, func(_ context.Context, _ int, next iter.Seq[int]) error {
		for i := range next {
			mu.Lock()
			done = append(done, i)
			mu.Unlock()
		}
		return nil
	})
	slices.Sort(done)
	if err != nil || len(done) != 100 || len(slices.Compact(done)) != 100 || done[99] != 99 {
		t.Errorf("did %v, %v", done, err)
	}
}

func TestFirstErrorEndsTheWork(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var waiting sync.WaitGroup
	waiting.Add(1)
	taken := 0
	err := Run(t.Context(), 2, 1000, func(ctx context.Context, _ int, next iter.Seq[int]) error {
		for i := range next {
			if i == 0 {
				waiting.Wait()
				return broken
			}
			// The other worker has a piece in hand when the work breaks, and no second one after.
			taken++
			waiting.Done()
			<-ctx.Done()
		}
		return nil
	})
	if !errors.Is(err, broken) || taken != 1 {
		t.Errorf("%v after %d pieces", err, taken)
	}
}

func TestEndOfTheCallersContext(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := Run(ctx, 3, 1000, func(ctx context.Context, _ int, next iter.Seq[int]) error {
		for range next {
			cancel(gone)
			<-ctx.Done()
		}
		return nil
	})
	if !errors.Is(err, gone) {
		t.Error(err)
	}
}
