package world_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/world"
)

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

// BenchmarkStart measures a start: its wall time, and the processor time of all processes
// of the world and of this one.
func BenchmarkStart(b *testing.B) {
	for _, name := range []string{"mini", "shop"} {
		b.Run(name, func(b *testing.B) {
			dir, err := world.Find(map[string]string{"mini": "./testdata/worlds/mini", "shop": "shop"}[name])
			if err != nil {
				b.Fatal(err)
			}
			img := imageOf(b, dir)
			own := ownCPU(b)
			var inside time.Duration
			for b.Loop() {
				w, err := world.Start(context.Background(), img, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				info := w.Info()
				inside += info.Usage.CPU
				if testing.Verbose() {
					for _, p := range info.Processes {
						b.Logf("%-16s %8.1f ms %6.1f MB %d threads", p.Name, p.CPU.Seconds()*1000, float64(p.PSSBytes)/(1<<20), p.Threads)
					}
					b.Logf("%+v", info.Usage)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(inside.Microseconds())/1000/float64(b.N), "world-cpu-ms/op")
			b.ReportMetric(float64((ownCPU(b)-own).Microseconds())/1000/float64(b.N), "own-cpu-ms/op")
		})
	}
}

// ownCPU is the processor time of this process.
func ownCPU(tb testing.TB) time.Duration {
	tb.Helper()
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
