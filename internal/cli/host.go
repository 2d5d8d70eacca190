package cli

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"

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
}

type head struct {
	Pommel string    `json:"pommel"`
	Host   hostFacts `json:"host"`
}

func envelope() head {
	chromium, postgres := gym.PartVersions(context.Background())
	return head{Pommel: version.String(), Host: hostFacts{
		Kernel: firstLine("/proc/sys/kernel/osrelease"), Cores: runtime.NumCPU(),
		MemoryMB: memoryMB(), CPU: cpuModel(), Chromium: chromium, Postgres: postgres,
	}}
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
