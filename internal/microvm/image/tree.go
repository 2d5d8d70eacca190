package image

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// versionOf reads the version of a package from its changelog: "name (version) ...".
func versionOf(doc string) string {
	for _, name := range []string{"changelog.Debian.gz", "changelog.gz", "changelog.Debian.amd64.gz"} {
		f, err := os.Open(filepath.Join(doc, name))
		if err != nil {
			continue
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			continue
		}
		line, _ := bufio.NewReader(z).ReadString('\n')
		_, rest, ok := strings.Cut(line, "(")
		if v, _, ok2 := strings.Cut(rest, ")"); ok && ok2 {
			return v
		}
	}
	return ""
}

// useless is what no service reads. Compiling queries is off in worlds' databases, and its
// library is larger than everything else of PostgreSQL together.
var useless = []string{
	"boot", "usr/lib/modules", "usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/i18n", "usr/share/lintian",
	"usr/share/initramfs-tools", "usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", "usr/lib/x86_64-linux-gnu/libz3.so.4",
	"var/cache", "var/lib/apt", "var/lib/dpkg", "var/log", "etc/apt", "etc/machine-id", "etc/ld.so.cache",
}

// mountPoints are folders that the guest needs and packages do not bring.
var mountPoints = []string{"dev", "proc", "sys", "tmp", "run", "pommel", "etc", "var", "root", "home"}

// tidy leaves of the unpacked packages what machines use, in a form that depends on nothing else.
func tidy(ctx context.Context, root string) error {
	for _, p := range useless {
		if err := os.RemoveAll(filepath.Join(root, p)); err != nil {
			return fmt.Errorf("tidy the root file system: %w", err)
		}
	}
	for _, p := range mountPoints {
		if err := os.MkdirAll(filepath.Join(root, p), 0o755); err != nil {
			return fmt.Errorf("tidy the root file system: %w", err)
		}
	}
	// Device files and sockets of the unpacking host have no place in it.
	dev, err := filepath.Glob(filepath.Join(root, "dev", "*"))
	if err != nil {
		return fmt.Errorf("tidy the root file system: %w", err)
	}
	for _, p := range dev {
		if err := os.RemoveAll(p); err != nil {
			return fmt.Errorf("tidy the root file system: %w", err)
		}
	}
	// Without its cache the loader finds libraries in the usual folders only.
	if err := run(ctx, []string{"ldconfig", "-X", "-r", root}, os.Environ()); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(root, "var/cache/ldconfig"))
}

// Identifiers of the two file systems, by which a guest tells its disks apart. They are the same in
// all images: mkfs would draw them at random.
const (
	RootID  = "706f6d6d-656c-4000-8000-6d616368696e"
	WorldID = "706f6d6d-656c-4000-8000-776f726c6473"
)

// makeErofs packs a folder, uncompressed: a guest without hardware help would take long to
// unpack, and all machines of a host share the file's pages.
func makeErofs(ctx context.Context, from, to, id string) error {
	return run(ctx, []string{"mkfs.erofs", "--quiet", "-T" + epoch, "-U", id, "--all-root", to, from}, os.Environ())
}

// digest names the content of files.
func digest(paths ...string) (string, error) {
	h := sha256.New()
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			return "", fmt.Errorf("name by content: %w", err)
		}
		n, err := io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return "", fmt.Errorf("name by content: %w", err)
		}
		fmt.Fprintf(h, "%d\n", n)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
