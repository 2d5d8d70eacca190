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
const goldenFormat = 3

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

// Golden returns the data folder of a stopped, initialised cluster in the cache folder,
// made on first use. Any number of processes may ask at once; one makes it. The folder
// is only to be copied (sys.CopyTree, with the owner that will run it), never run.
func Golden(ctx context.Context, in Install, spec Spec, cache string) (string, error) {
	if err := spec.check(); err != nil {
		return "", err
	}
	key, err := GoldenKey(in, spec)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("cluster cache: %w", err)
	}
	final := filepath.Join(cache, key)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	release, err := sys.Lock(ctx, final+".lock")
	if err != nil {
		return "", fmt.Errorf("cluster cache: %w", err)
	}
	defer release()
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	return final, makeGolden(ctx, in, spec, final)
}

func makeGolden(ctx context.Context, in Install, spec Spec, final string) error {
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
	part := final + ".part"
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	if err := sys.CopyTree(data, part, sys.Owner{UID: 0, GID: 0}); err != nil {
		_ = os.RemoveAll(part)
		return fmt.Errorf("make cluster: %w", err)
	}
	if err := os.Rename(part, final); err != nil {
		_ = os.RemoveAll(part)
		return fmt.Errorf("make cluster: %w", err)
	}
	return nil
}
