package cli

import (
	"cmp"
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
		var info gym.ResetInfo
		var took time.Duration
		if info, took, err = c.serviceReset(ctx, b, i); err != nil {
			// Services that could not be put back are of no more use.
			if res.N, res.Interrupted = i, true; ctx.Err() == nil {
				res.Failures++
			}
			break
		}
		cpu += took
		res.OK++
		notes.add(info)
		bar.step("")
	}
	res.CPUMS = round(ms(cpu) / float64(max(1, res.OK)))
	notes.fill(res)
	res.MemoryMB.End = b.Usage().MemoryMB
	return cmp.Or(err, c.print(s, res))
}

// serviceReset has the services work, and puts them back.
func (c *benchResetCmd) serviceReset(ctx context.Context, b *gym.Services, i int) (info gym.ResetInfo, cpu time.Duration, err error) {
	if err := b.Work(ctx); err != nil {
		return info, 0, err
	}
	before := gym.MachineCPU()
	info, err = b.Reset(ctx, c.Verify > 0 && i%c.Verify == c.Verify-1)
	return info, gym.MachineCPU() - before, err
}
