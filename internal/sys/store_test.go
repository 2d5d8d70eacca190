package sys_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/sys"
)

func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func fill(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "f"), nil, 0o644)
}

func TestStoreMakesOnce(t *testing.T) {
	t.Parallel()
	s := sys.Store{Dir: t.TempDir(), Keep: 10}
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			e, err := s.Get(testContext(t), "k", func(ctx context.Context, dir string) error {
				made.Add(1)
				return fill(ctx, dir)
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer e.Close()
			if _, err := os.Stat(filepath.Join(e.Path, "f")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestStoreKeepsNothingOfAFailure(t *testing.T) {
	t.Parallel()
	s := sys.Store{Dir: t.TempDir(), Keep: 10}
	broken := errors.New("broken")
	if _, err := s.Get(testContext(t), "k", func(ctx context.Context, dir string) error {
		return errors.Join(fill(ctx, dir), broken)
	}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	for _, name := range []string{"k", "k.part"} {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e, err := s.Get(testContext(t), "k", fill)
	if err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
}

func TestStoreMakesRoom(t *testing.T) {
	t.Parallel()
	s := sys.Store{Dir: t.TempDir(), Keep: 3}
	held, err := s.Get(testContext(t), "held", fill)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		e, err := s.Get(testContext(t), fmt.Sprint("k", i), fill)
		if err != nil {
			t.Fatal(err)
		}
		// Oldest first, whatever the clock's grain.
		when := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(e.Path, when, when); err != nil {
			t.Fatal(err)
		}
		_ = e.Close()
	}
	left, err := filepath.Glob(filepath.Join(s.Dir, "*[0-9d]"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range left {
		names = append(names, filepath.Base(l))
	}
	if got := fmt.Sprint(names); got != "[held k4 k5]" {
		t.Errorf("left %s", got)
	}
	_ = held.Close()
}

// Making room and using at once: an entry in hand is always whole.
func TestStoreUnderLoad(t *testing.T) {
	t.Parallel()
	s := sys.Store{Dir: t.TempDir(), Keep: 1}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 40 {
				e, err := s.Get(testContext(t), fmt.Sprint("k", (i+n)%3), fill)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(e.Path, "f")); err != nil {
					t.Error(err)
				}
				_ = e.Close()
			}
		})
	}
	wg.Wait()
}
