package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// randomLibrary is the name of a file in a cluster's folder: a library that stands in the
// place of OpenSSL's generator. That one keeps a state of its own in each server process,
// so that what gen_random_uuid() gives would depend on which connection of a pool serves
// a request. With the library every draw is a getrandom() call, which the world answers.
const randomLibrary = "random.so"

// RandomEnv is what a server of the cluster in dataDir needs in its environment to draw from
// the kernel only. It is empty where there is no library for the processor.
func RandomEnv(dataDir string) []string {
	if randomCode == nil {
		return nil
	}
	return []string{"LD_PRELOAD=" + filepath.Join(dataDir, randomLibrary)}
}

// putRandomLibrary writes it into a cluster's folder.
func putRandomLibrary(dataDir string) error {
	if randomCode == nil {
		return nil
	}
	text, err := sharedObject("RAND_bytes", randomCode)
	if err != nil {
		return fmt.Errorf("make the library for random numbers (%s): %w", runtime.GOARCH, err)
	}
	if err := os.WriteFile(filepath.Join(dataDir, randomLibrary), text, 0o644); err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	return nil
}
