package sys

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A device that is none, or whose machines are emulated, is told from one that works, in time.
func TestTryKVM(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kvm")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := TryKVM(file, time.Second); err == nil {
		t.Error("an empty file runs machines")
	}
	if err := TryKVM(file+"2", time.Second); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	began := time.Now()
	err := TryKVM("/dev/kvm", time.Second)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	t.Log("on this host:", err)
}
