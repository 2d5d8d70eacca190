package cli

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/version"
)

// hostFacts are printed with every result: a figure without its machine says nothing.
type hostFacts struct {
	Kernel   string `json:"kernel"`
	Cores    int    `json:"cores"`
	MemoryMB int    `json:"memory_mb"`
	CPU      string `json:"cpu"`
	Chromium string `json:"chromium"`
	Postgres string `json:"postgres"`
	// LoopMS is what five million turns of a fixed loop take, reckoned from the best of five tries of a
	// tenth: how fast the machine was at that minute. On shared ones it changes by a factor of three.
	LoopMS float64 `json:"loop_ms"`
}

type head struct {
	Pommel string    `json:"pommel"`
	Host   hostFacts `json:"host"`
}

func envelope() head {
	chromium, postgres := gym.PartVersions(context.Background())
	return head{Pommel: version.String(), Host: hostFacts{
		Kernel: firstLine("/proc/sys/kernel/osrelease"), Cores: runtime.NumCPU(),
		MemoryMB: memoryMB(), CPU: cpuModel(), Chromium: chromium, Postgres: postgres, LoopMS: loopMS(),
	}}
}

// loopMS times turns of a xorshift generator (Marsaglia 2003), each of which needs the one before: a
// part of them, for every command that answers in JSON waits for it.
func loopMS() float64 {
	const part = 10
	best, x := time.Hour, uint64(1)
	for range 5 {
		start := time.Now()
		for range 5_000_000 / part {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		best = min(best, time.Since(start))
	}
	if x == 0 { // never, which the compiler does not know
		return 0
	}
	return round(ms(part * best))
}

func firstLine(path string) string {
	b, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func procValue(path, key string) string {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func cpuModel() string { return procValue("/proc/cpuinfo", "model name") }

func memoryMB() int {
	kb, _ := strconv.Atoi(strings.TrimSuffix(procValue("/proc/meminfo", "MemTotal"), " kB"))
	return kb / 1024
}
