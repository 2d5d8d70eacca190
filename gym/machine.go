package gym

import (
	"context"
	"fmt"

	"github.com/pommelgym/pommel/internal/world"
)

// MachineInfo describes the machine that worlds of the driver microvm start from.
type MachineInfo = world.MachineInfo

// BuildMachine builds a world's image and its machine, or takes them from the cache.
// progress may be nil.
func BuildMachine(ctx context.Context, name string, progress func(stage string)) (MachineInfo, error) {
	dir, err := world.Find(name)
	if err != nil {
		return MachineInfo{}, err
	}
	spec, err := world.Load(dir)
	if err != nil {
		return MachineInfo{}, err
	}
	img, err := world.BuildImage(ctx, spec, progress)
	if err != nil {
		return MachineInfo{}, fmt.Errorf("build the image of world %s: %w", spec.Name, err)
	}
	return world.BuildMachine(ctx, img, progress)
}
