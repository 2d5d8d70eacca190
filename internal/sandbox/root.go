package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/sys"
)

// staging is where the new root is put together. What the host has below it stays
// reachable because all trees are opened before.
const staging = "/tmp"

// programFolders are shown read-only; links among them (as /bin on merged systems) stay links.
var programFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// hostEtc are the parts of /etc that programs need to start, draw text and check certificates.
var hostEtc = []string{
	"/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/mime.types",
}

var deviceNodes = []string{"null", "zero", "full", "random", "urandom"}

type attachment struct {
	tree *sys.Tree
	to   string
}

// buildRoot replaces this namespace's root by the sandbox's.
func buildRoot(cfg Config) error {
	if err := sys.MakeMountsPrivate(); err != nil {
		return err
	}
	trees, err := openTrees(cfg)
	defer func() {
		for _, t := range trees {
			t.tree.Close()
		}
	}()
	if err != nil {
		return err
	}
	links := hostLinks()
	if err := sys.MountTmpfs(staging, cfg.FilesBytes); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.tree.Attach(filepath.Join(staging, t.to)); err != nil {
			return err
		}
	}
	for from, to := range links {
		if err := os.Symlink(to, filepath.Join(staging, from)); err != nil {
			return fmt.Errorf("make root: %w", err)
		}
	}
	if err := os.Mkdir(filepath.Join(staging, "proc"), 0o555); err != nil {
		return fmt.Errorf("make root: %w", err)
	}
	if err := sys.MountProc(filepath.Join(staging, "proc")); err != nil {
		return err
	}
	if err := sys.PivotRoot(staging); err != nil {
		return err
	}
	return fillRoot(cfg)
}

func openTrees(cfg Config) ([]attachment, error) {
	var out []attachment
	add := func(from, to string, device bool) error {
		t, err := sys.OpenTree(from, device)
		if err == nil {
			out = append(out, attachment{t, to})
		}
		return err
	}
	for _, p := range append(realFolders(), hostEtc...) {
		if err := add(p, p, false); err != nil && !errors.Is(err, os.ErrNotExist) {
			return out, err
		}
	}
	for _, name := range append(slices.Clone(deviceNodes), cfg.Devices...) {
		if err := add("/dev/"+name, "/dev/"+name, true); err != nil {
			return out, err
		}
	}
	for _, b := range cfg.Binds {
		to := b.To
		if b.Private {
			to = privatePath(to)
		}
		if err := add(b.From, to, false); err != nil {
			return out, err
		}
	}
	return out, nil
}

// privateRoot holds what only the keeper may see.
const privateRoot = "/.keeper"

func privatePath(to string) string { return path.Join(privateRoot, to) }

func realFolders() []string {
	var out []string
	for _, p := range programFolders {
		if info, err := os.Lstat(p); err == nil && info.IsDir() {
			out = append(out, p)
		}
	}
	return out
}

func hostLinks() map[string]string {
	out := map[string]string{}
	for _, p := range programFolders {
		if to, err := os.Readlink(p); err == nil {
			out[p] = to
		}
	}
	return out
}

// fillRoot makes the folders and the few files of the new root.
func fillRoot(cfg Config) error {
	folders := []Folder{
		{Path: privateRoot, Mode: 0o700},
		{Path: "/tmp", Mode: 0o1777}, {Path: "/var", Mode: 0o755}, {Path: "/var/tmp", Mode: 0o1777},
		{Path: "/var/lib", Mode: 0o755}, {Path: "/run", Mode: 0o755}, {Path: "/home", Mode: 0o755},
		{Path: "/dev/shm", Mode: 0o1777}, {Path: "/root", Mode: 0o700}, {Path: "/etc", Mode: 0o755},
	}
	for _, u := range cfg.Users {
		folders = append(folders, Folder{Path: u.Home, Mode: 0o700, UID: u.UID})
	}
	for _, f := range append(folders, cfg.Folders...) {
		if err := makeFolder(f); err != nil {
			return err
		}
	}
	for name, text := range etcFiles(cfg) {
		if err := os.WriteFile("/etc/"+name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("make /etc: %w", err)
		}
	}
	links := map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
		"/dev/stderr": "/proc/self/fd/2", "/etc/localtime": "/usr/share/zoneinfo/Etc/UTC", "/var/run": "/run",
	}
	for at, to := range links {
		if err := os.Symlink(to, at); err != nil {
			return fmt.Errorf("make root: %w", err)
		}
	}
	return nil
}

func makeFolder(f Folder) error {
	if err := os.MkdirAll(f.Path, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	mode := os.FileMode(f.Mode & 0o777)
	if f.Mode&0o1000 != 0 {
		mode |= os.ModeSticky
	}
	if err := os.Chown(f.Path, f.UID, f.UID); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.Chmod(f.Path, mode); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}

func etcFiles(cfg Config) map[string]string {
	var passwd, group strings.Builder
	account := func(name string, id int, home string) {
		fmt.Fprintf(&passwd, "%s:x:%d:%d::%s:/usr/sbin/nologin\n", name, id, id, home)
		fmt.Fprintf(&group, "%s:x:%d:\n", name, id)
	}
	account("root", 0, "/root")
	for _, u := range cfg.Users {
		account(u.Name, u.UID, u.Home)
	}
	account("nobody", 65534, "/nonexistent")
	return map[string]string{
		"passwd": passwd.String(), "group": group.String(), "hostname": cfg.Hostname + "\n",
		"hosts":         "127.0.0.1 localhost " + cfg.Hostname + "\n::1 localhost\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"resolv.conf":   "", "machine-id": strings.Repeat("0", 31) + "1\n", "timezone": "Etc/UTC\n",
	}
}

func itoa(i int) string { return strconv.Itoa(i) }
