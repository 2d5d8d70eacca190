package world_test

import (
	"os"
	"testing"

	"github.com/pommelgym/pommel/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	os.Exit(m.Run())
}
