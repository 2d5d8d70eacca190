package worldtest_test

import (
	"os"
	"testing"

	"github.com/pommelgym/pommel/internal/microvm/guest"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/world"
	"github.com/pommelgym/pommel/internal/world/worldtest"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	guest.MaybeInit()
	os.Exit(m.Run())
}

// long says whether a driver is tried in the long runs only: what is tried here of copies of
// machines, the driver microvm does too.
func long(d world.Driver) bool { return d.Name() == world.MicroVMClone().Name() }

func TestConformance(t *testing.T) {
	subject := worldtest.Mini(t)
	for _, d := range world.Drivers() {
		t.Run(d.Name(), func(t *testing.T) {
			if long(d) && os.Getenv("POMMEL_SOAK") == "" {
				t.Skip("slow: POMMEL_SOAK=1 runs it")
			}
			worldtest.RunConformance(t, d, subject)
		})
	}
}

// The same on the shop, one driver after the other: a world of it has far more to put back.
func TestConformanceOnShop(t *testing.T) {
	if os.Getenv("POMMEL_SOAK") == "" {
		t.Skip("slow: POMMEL_SOAK=1 runs it")
	}
	subject := worldtest.Shop(t)
	for _, d := range world.Drivers() {
		t.Run(d.Name(), func(t *testing.T) { worldtest.RunConformance(t, d, subject) })
	}
}
