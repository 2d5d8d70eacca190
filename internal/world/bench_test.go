package world_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/world"
)

// miniImage builds the small test world.
func miniImage(tb testing.TB) *world.Image {
	tb.Helper()
	dir, err := world.Find("./testdata/worlds/mini")
	if err != nil {
		tb.Fatal(err)
	}
	return imageOf(tb, dir)
}

func imageOf(tb testing.TB, dir string) *world.Image {
	tb.Helper()
	s, err := world.Load(dir)
	if err != nil {
		tb.Fatal(err)
	}
	img, err := world.BuildImage(testContext(tb), s, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return img
}

func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// cpuOfChildren is the processor time of all children that have ended.
func cpuOfChildren(tb testing.TB) time.Duration {
	tb.Helper()
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func BenchmarkStart(b *testing.B) {
	for _, name := range []string{"mini", "shop"} {
		b.Run(name, func(b *testing.B) {
			dir, err := world.Find(map[string]string{"mini": "./testdata/worlds/mini", "shop": "shop"}[name])
			if err != nil {
				b.Fatal(err)
			}
			img := imageOf(b, dir)
			before := cpuOfChildren(b)
			for b.Loop() {
				w, err := world.Start(context.Background(), img, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64((cpuOfChildren(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
