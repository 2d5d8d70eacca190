package world

import (
	"context"
	"sort"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/rewind"
)

// Driver is one way to bring worlds up and to put them back to where they were then. All
// drivers pass worldtest.RunConformance: after a reset nothing tells which one was used.
type Driver interface {
	// Name is how users choose the driver.
	Name() string
	// Available says why this host cannot use the driver (fault.Unsupported), or nil.
	Available(ctx context.Context) error
	// Start brings up a world, ready for its first episode.
	Start(ctx context.Context, img *Image, progress func(stage string)) (*World, error)
	// Reset puts a world back, whatever an episode did to it, even if it is lost. The
	// result may be another World; then the old one is closed. On an error both are gone.
	Reset(ctx context.Context, w *World) (*World, ResetReport, error)
}

// ResetReport says how a reset went.
type ResetReport struct {
	Driver string        `json:"driver"`
	Took   time.Duration `json:"took"`
	// Start says that the world was put back to the kept start of an episode.
	Start bool `json:"start,omitempty"`
	// SlowPath says that the world could not be put back in place and was started afresh.
	SlowPath bool   `json:"slow_path"`
	Reason   string `json:"reason,omitempty"` // of the slow path
	// Split are the parts of Took.
	Split map[string]time.Duration `json:"split,omitempty"`
	// Rewind is what was done in place, if anything was; Verified says that all of it was
	// then compared with the snapshot.
	Rewind   *rewind.Report `json:"rewind,omitempty"`
	Verified bool           `json:"verified,omitempty"`
}

// inPlace is a driver that can put most worlds back within milliseconds. A pool lets it
// try at once: only a replacement waits for its turn among the starts.
type inPlace interface {
	Driver
	tryReset(ctx context.Context, w *World, key string) (*World, ResetReport, bool)
	replace(ctx context.Context, w *World, report ResetReport) (*World, ResetReport, error)
}

// Drivers are all drivers; "auto" takes the first that the host can use, a machine never.
func Drivers() []Driver { return []Driver{Rewind{}, Respawn{}, MicroVM(), MicroVMClone()} }

// DriverByName finds a driver. "" and "auto" are the best that the host can use, and "microvm" is the
// better of the two for machines.
func DriverByName(name string) (Driver, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if name == machineName {
		d, err := machineDriver()
		if err == nil {
			err = d.Available(ctx)
		}
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	var names []string
	var why error
	for _, d := range Drivers() {
		names = append(names, d.Name())
		switch name {
		case d.Name():
			if err := d.Available(ctx); err != nil {
				return nil, err
			}
			return d, nil
		case "", "auto":
			if d.Name() == machineName || d.Name() == cloneName {
				continue
			}
			err := d.Available(ctx)
			if err == nil {
				return d, nil
			}
			why = err
		}
	}
	if why != nil {
		return nil, why
	}
	sort.Strings(names)
	return nil, fault.New(fault.InvalidArgument, "there is no driver %q", name).
		WithHint("drivers: auto, %s", strings.Join(names, ", "))
}
