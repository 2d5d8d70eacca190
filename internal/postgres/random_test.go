package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRandomLibrary: a program that asks OpenSSL for random bytes gets the kernel's.
func TestRandomLibrary(t *testing.T) {
	t.Parallel()
	if len(RandomEnv("/")) == 0 {
		t.Skip("unsupported: no library for this processor")
	}
	dir := t.TempDir()
	if err := putRandomLibrary(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", `
import ctypes
f = ctypes.CDLL(None).RAND_bytes
for n in 0, 1, 16, 300:
    b = ctypes.create_string_buffer(n + 1)
    print(f(b, n), n - b.raw.count(0) + 1 >= n * 0.9, b.raw[n])
print(f(None, 16))
`)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+filepath.Join(dir, randomLibrary))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != "1 True 0\n1 True 0\n1 True 0\n1 True 0\n0" {
		t.Errorf("the calls gave\n%s", got)
	}
}
