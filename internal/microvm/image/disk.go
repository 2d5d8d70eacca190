package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/internal/sys"
)

// Disk says what a world brings into its machine: folders of the host, and files.
type Disk struct {
	// Key names the content of the folders.
	Key     []string
	Folders map[string]string // name on the disk to folder
	Files   map[string][]byte
}

// BuildDisk makes a read-only disk, or takes it from the cache.
func BuildDisk(ctx context.Context, cache string, d Disk) (path string, err error) {
	key, err := keyOf([]any{format, d.Key, d.Files})
	if err != nil {
		return "", err
	}
	entry, err := sys.Store{Dir: filepath.Join(cache, "disks"), Keep: keepDisks}.Get(ctx, key, func(ctx context.Context, folder string) error {
		tree := filepath.Join(folder, "tree")
		defer os.RemoveAll(tree)
		if err := os.Mkdir(tree, 0o755); err != nil {
			return fmt.Errorf("make disk: %w", err)
		}
		for name, from := range d.Folders {
			if err := sys.CopyTree(from, filepath.Join(tree, name), sys.Owner{UID: 0, GID: 0}); err != nil {
				return fmt.Errorf("make disk: %w", err)
			}
		}
		for name, text := range d.Files {
			if err := os.WriteFile(filepath.Join(tree, name), text, 0o644); err != nil {
				return fmt.Errorf("make disk: %w", err)
			}
		}
		return makeErofs(ctx, tree, filepath.Join(folder, "disk.erofs"), WorldID)
	})
	if err != nil {
		return "", fmt.Errorf("build the world's disk: %w", err)
	}
	return filepath.Join(entry.Path, "disk.erofs"), nil
}
