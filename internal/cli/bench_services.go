package cli

import (
	"context"
	"time"

	"github.com/pommelgym/pommel/gym"
)

// services measures database and application alone.
func (c *benchResetCmd) services(ctx context.Context, s *State) error {
	b, err := gym.OpenServices(ctx, c.World, c.Driver, s.bootProgress())
	if err != nil {
		return err
	}
	defer b.Close()
	res := &resetBench{World: c.World, Driver: b.Driver(), Part: c.Part, N: c.N}
	usage := b.Usage()
	res.MemoryMB.Start, res.Tree.Processes, res.Tree.Threads = usage.MemoryMB, usage.Processes, usage.Threads
	bar := s.progress("bench reset services", c.N)
	defer bar.end()
	var notes resetNotes
	var cpu time.Duration
	for i := range c.N {
		if err := b.Work(ctx); err != nil {
			return err
		}
		before := gym.MachineCPU()
		info, err := b.Reset(ctx, c.Verify > 0 && i%c.Verify == c.Verify-1)
		if err != nil {
			return err
		}
		cpu += gym.MachineCPU() - before
		res.OK++
		notes.add(info)
		bar.step("")
	}
	res.CPUMS = round(ms(cpu) / float64(max(1, res.OK)))
	notes.fill(res)
	res.MemoryMB.End = b.Usage().MemoryMB
	return c.print(s, res)
}
