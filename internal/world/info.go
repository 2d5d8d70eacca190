package world

import (
	"time"

	"github.com/pommelgym/pommel/internal/sandbox"
)

// Info describes a running world.
type Info struct {
	World     string               `json:"world"`
	Image     string               `json:"image"`
	Keeper    int                  `json:"keeper_pid"`
	Postgres  string               `json:"postgres"`
	Chromium  string               `json:"chromium"`
	Usage     Usage                `json:"usage"`
	Limits    sandbox.LimitsReport `json:"limits"`
	Processes []sandbox.Member     `json:"processes"`
	// Guest are the processes inside the world's machine, with their numbers there.
	Guest []sandbox.Member `json:"guest,omitempty"`
}

// Usage is what worlds take.
type Usage struct {
	// MemoryMB counts memory shared by several processes once, and files in memory.
	MemoryMB  float64       `json:"memory_mb"`
	Processes int           `json:"processes"`
	Threads   int           `json:"threads"`
	CPU       time.Duration `json:"cpu"`
}

// Info looks at the world's processes.
func (w *World) Info() Info {
	members := w.box.Members()
	info := Info{
		World: w.img.Spec.Name, Image: w.img.id, Keeper: w.box.KeeperPid(), Postgres: w.img.postgres.Version, Chromium: w.img.chromiumVersion,
		Limits: w.box.Report(), Processes: members,
	}
	if w.vm != nil {
		info.Guest = w.vm.members()
	}
	bytes := w.box.FilesBytes()
	for _, m := range members {
		bytes += m.PSSBytes
		info.Usage.Threads += m.Threads
		info.Usage.CPU += m.CPU
	}
	info.Usage.Processes = len(members)
	info.Usage.MemoryMB = float64(bytes) / (1 << 20)
	return info
}

// Usage is the mean of the worlds that are up now.
func (p *Pool) Usage() Usage {
	var sum Usage
	worlds := p.Worlds()
	if len(worlds) == 0 {
		return sum
	}
	for _, w := range worlds {
		u := w.Info().Usage
		sum.MemoryMB += u.MemoryMB
		sum.Processes += u.Processes
		sum.Threads += u.Threads
		sum.CPU += u.CPU
	}
	n := len(worlds)
	return Usage{sum.MemoryMB / float64(n), sum.Processes / n, sum.Threads / n, sum.CPU / time.Duration(n)}
}
