package world

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
)

// CacheDir is where built images are kept: POMMEL_CACHE, or pommel below the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("POMMEL_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fault.New(fault.Unsupported, "no cache folder: %v", err).WithHint("set POMMEL_CACHE to a folder for built worlds")
	}
	return filepath.Join(dir, "pommel"), nil
}

// hashOf names a value by content.
func hashOf(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("name by content: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// hashInputs names the content of files and folders: paths, whether they are programs, bytes.
func hashInputs(dir string, inputs []string) (string, error) {
	h := sha256.New()
	for _, in := range inputs {
		err := filepath.WalkDir(filepath.Join(dir, in), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return hashFile(h, dir, path, d)
		})
		if err != nil {
			return "", fmt.Errorf("read build inputs: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func hashFile(h io.Writer, dir, path string, d fs.DirEntry) error {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	switch {
	case d.IsDir() && strings.HasPrefix(d.Name(), ".git"):
		return fs.SkipDir
	case d.Type()&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		fmt.Fprintf(h, "link %q %q\n", rel, to)
		return err
	case !d.Type().IsRegular():
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "file %q %v %d\n", rel, info.Mode()&0o111 != 0, info.Size())
	_, err = io.Copy(h, f)
	return err
}

// makeReadable lets every user of a world read what a build has made.
func makeReadable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if d.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}
