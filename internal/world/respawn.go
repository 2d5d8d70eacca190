package world

import (
	"context"
	"os"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
)

// Respawn resets a world by ending all its processes and starting them afresh from the
// golden state. It works wherever worlds work.
type Respawn struct{}

// Name is "respawn".
func (Respawn) Name() string { return "respawn" }

// Available asks for no more than worlds do.
func (Respawn) Available(context.Context) error {
	if os.Geteuid() != 0 {
		return fault.New(fault.Unsupported, "worlds need root: they make namespaces and mounts").WithHint("run as root, or in a container with CAP_SYS_ADMIN")
	}
	return nil
}

// Start brings up a world. It leaves the processor to running episodes where they want it.
func (Respawn) Start(ctx context.Context, img *Image, progress func(string)) (*World, error) {
	return start(ctx, img, progress, true)
}

// Reset replaces the world by a fresh one.
func (d Respawn) Reset(ctx context.Context, w *World) (*World, ResetReport, error) {
	report := ResetReport{Driver: d.Name(), Split: map[string]time.Duration{}}
	began := time.Now()
	// What cannot be cleaned up (a group that the kernel holds on to) is no reason to go
	// without a new world; the sweep at the next start of the program tries again.
	_ = w.Close()
	report.Split["end"] = time.Since(began)
	fresh, err := d.Start(ctx, w.img, nil)
	report.Took = time.Since(began)
	report.Split["start"] = report.Took - report.Split["end"]
	return fresh, report, err
}
