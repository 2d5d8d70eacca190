package world_test

import (
	"os"
	"testing"

	"github.com/pommelgym/pommel/internal/microvm/guest"
	"github.com/pommelgym/pommel/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	guest.MaybeInit()
	os.Exit(m.Run())
}
