package sys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// MakeMountsPrivate keeps the mounts of this namespace from spreading to others.
func MakeMountsPrivate() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

// Tree is a detached copy of a mounted file or folder: it can be put in place even when
// its path is no longer reachable. Close it after use.
type Tree struct {
	fd  int
	Dir bool
}

// OpenTree takes what is mounted at path, without the power to write, run set-id programs
// or, unless it is a device itself, use device files.
func OpenTree(path string, device bool) (*Tree, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nil, fmt.Errorf("open tree %s: %w", path, err)
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, fmt.Errorf("open tree %s: %w", path, err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if device {
		attr.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make tree %s read-only: %w", path, err)
	}
	return &Tree{fd: fd, Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

// Attach mounts the tree at path, which is made first.
func (t *Tree) Attach(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("attach tree: %w", err)
	}
	if t.Dir {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("attach tree: %w", err)
		}
	} else if err := touch(path); err != nil {
		return fmt.Errorf("attach tree: %w", err)
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach tree at %s: %w", path, err)
	}
	return nil
}

// Close lets go of the tree; one that was attached stays mounted.
func (t *Tree) Close() { _ = unix.Close(t.fd) }

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// MountTmpfs mounts a memory file system of at most size bytes at path.
func MountTmpfs(path string, size int64) error {
	data := "mode=755,size=" + strconv.FormatInt(size, 10)
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	return nil
}

// MountProc mounts the process list of this namespace; users see only their own processes.
func MountProc(path string) error {
	err := unix.Mount("proc", path, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=invisible")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("proc", path, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=2")
	}
	if err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	return nil
}

// PivotRoot makes the mount at path the root of this namespace and drops the old one.
func PivotRoot(path string) error {
	if err := unix.Chdir(path); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	// With both names the same, the old root ends up on top of the new one and is taken off.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("drop old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	return nil
}
