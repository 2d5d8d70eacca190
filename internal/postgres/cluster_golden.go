package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/internal/sys"
)

// goldenFormat is raised when clusters are made differently, so that old ones are not used.
const goldenFormat = 4

// GoldenKey names the content of a cluster: equal keys, equal clusters.
func GoldenKey(in Install, spec Spec) (string, error) {
	text, err := json.Marshal(struct {
		Format  int
		Version string
		Spec    Spec
		Conf    string
	}{goldenFormat, in.Version, spec, spec.conf(in.Major)})
	if err != nil {
		return "", fmt.Errorf("name cluster: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// keepGolden is how many clusters a cache keeps: some 10 MB each.
const keepGolden = 32

// Golden returns a stopped, initialised cluster of the cache folder, made on first use. Any
// number of processes may ask at once; one makes it. Its folder is only to be copied
// (sys.CopyTree, with the owner that will run it), never run; it stays until it is closed.
func Golden(ctx context.Context, in Install, spec Spec, cache string) (*sys.Entry, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	key, err := GoldenKey(in, spec)
	if err != nil {
		return nil, err
	}
	return sys.Store{Dir: cache, Keep: keepGolden}.Get(ctx, key, func(ctx context.Context, folder string) error {
		return makeGolden(ctx, in, spec, folder)
	})
}

func makeGolden(ctx context.Context, in Install, spec Spec, folder string) error {
	as, err := BuildAccount()
	if err != nil {
		return err
	}
	// The account that runs initdb may not be able to reach the cache folder, so the
	// cluster is made in the temporary folder and copied.
	tmp, err := os.MkdirTemp("", "pommel-initdb-")
	if err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o711); err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	data := filepath.Join(tmp, "data")
	if err := InitCluster(ctx, in, spec, data, as); err != nil {
		return err
	}
	if err := os.Remove(folder); err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	if err := sys.CopyTree(data, folder, sys.Owner{UID: 0, GID: 0}); err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	return putRandomLibrary(folder)
}
