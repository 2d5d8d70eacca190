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

func TestConformance(t *testing.T) {
	for _, d := range world.Drivers() {
		t.Run(d.Name(), func(t *testing.T) { worldtest.RunConformance(t, d) })
	}
}
