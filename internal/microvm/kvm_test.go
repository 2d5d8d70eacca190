package microvm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sys"
)

func TestHardware(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with, without := write("with", "processor\t: 0\nflags\t\t: fpu svm sse\n"), write("without", "flags\t\t: fpu svm_lock sse\n")
	const device = "/dev/kvm"
	for _, c := range []struct {
		cpuinfo string
		tried   error
		why     string
	}{
		{with, nil, ""},
		{without, nil, "no virtualisation"},
		{with, sys.ErrKVMSlow, "is emulated"},
		{with, os.ErrPermission, "permission denied"},
	} {
		err := hardware(c.cpuinfo, device, func(asked string, _ time.Duration) error {
			if asked != device {
				t.Errorf("%s was tried", asked)
			}
			return c.tried
		})
		if c.why == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), c.why) {
			t.Errorf("got %v, want something about %q", err, c.why)
		}
	}
}
