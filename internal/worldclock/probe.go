package worldclock

import (
	"fmt"
	"runtime"

	"github.com/pommelgym/pommel/internal/uapi"
)

// Probe says why this host cannot give worlds a clock, as far as can be told without
// running a program under one.
func Probe() error {
	if !supported {
		return fmt.Errorf("a world's clock does not exist for %s", runtime.GOARCH)
	}
	if err := uapi.NotifySizes(); err != nil {
		return fmt.Errorf("the kernel passes no system calls on: %w", err)
	}
	return nil
}
