package world

import (
	"context"
	"os"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm"
)

// Respawn resets a world by ending all its processes and starting them afresh from the
// golden state. It works wherever worlds work.
type Respawn struct {
	machine bool // services run in a machine of their own
}

// cloneName is the name of the driver that starts each world from a copy of a machine.
const cloneName = "microvm-clone"

// MicroVMClone is Respawn for worlds whose services run in a machine: each is a copy of a template, run
// by the engine that suits the host. It is what machines are put back by where they cannot be in place.
func MicroVMClone() Respawn { return Respawn{machine: true} }

// Name is "respawn", or "microvm-clone" where services run in a machine.
func (d Respawn) Name() string {
	if d.machine {
		return cloneName
	}
	return "respawn"
}

// Available asks for no more than worlds do, and for what runs machines if there are some.
func (d Respawn) Available(context.Context) error {
	if os.Geteuid() != 0 {
		return fault.New(fault.Unsupported, "worlds need root: they make namespaces and mounts").WithHint("run as root, or in a container with CAP_SYS_ADMIN")
	}
	if d.machine {
		e, err := microvm.Chosen()
		if err != nil {
			return err
		}
		return machineAvailable(e)
	}
	return nil
}

// Start brings up a world. It leaves the processor to running episodes where they want it.
func (d Respawn) Start(ctx context.Context, img *Image, progress func(string)) (_ *World, err error) {
	o := startOptions{background: true}
	if d.machine {
		e, err := microvm.Chosen()
		if err != nil {
			return nil, err
		}
		if o.template, err = img.machine(ctx, e, progress); err != nil {
			return nil, err
		}
	}
	return start(ctx, img, progress, o)
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
