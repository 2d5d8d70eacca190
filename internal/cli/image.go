package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/pommelgym/pommel/gym"
)

type imageCmd struct {
	Build imageBuildCmd `cmd:"" help:"Build a world's application and database, and its machine for the driver microvm."`
}

type imageBuildCmd struct {
	jsonFlag
	World    string `arg:"" default:"shop" help:"Name or folder of the world."`
	Packages bool   `help:"List the packages of the machine."`
}

func (c *imageBuildCmd) Run(ctx context.Context, s *State) error {
	began := time.Now()
	info, err := gym.BuildMachine(ctx, c.World, s.bootProgress())
	if err != nil {
		return err
	}
	took := time.Since(began)
	if c.JSON {
		return s.printJSON(struct {
			gym.MachineInfo
			TookMS float64 `json:"took_ms"`
		}{info, ms(took)})
	}
	clock := "the world's"
	if !info.Clocked {
		clock = "its own"
	}
	table(s.Stdout, "WORLD|KERNEL|PACKAGES|MEMORY MB|CLOCK|TOOK", []string{
		info.World, info.Kernel, strconv.Itoa(len(info.Packages)), strconv.FormatInt(info.MemoryMB, 10), clock, fmt.Sprintf("%.1f s", took.Seconds()),
	})
	fmt.Fprintf(s.Stdout, "\nkernel and root %s\ntemplate %s\n", info.Digest, info.Template)
	if c.Packages {
		for _, p := range info.Packages {
			fmt.Fprintln(s.Stdout, p)
		}
	}
	return nil
}
