package microvm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/fault"
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
	device := write("kvm", "")
	for _, c := range []struct{ cpuinfo, device, why string }{
		{with, device, ""},
		{without, device, "no virtualisation"},
		{with, filepath.Join(dir, "absent"), "absent"},
	} {
		err := hardware(c.cpuinfo, c.device)
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
