package sys

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Owner is the user and group that copied files get; a negative id keeps the copier's.
type Owner struct {
	UID, GID int
}

// CopyTree copies the folder src to dst, which must not exist: folders, regular files
// and symbolic links with their permissions. Times are not kept.
func CopyTree(src, dst string, owner Owner) error {
	c := treeCopier{owner: owner, buf: make([]byte, 256<<10)}
	return c.dir(src, dst)
}

type treeCopier struct {
	owner Owner
	buf   []byte
}

func (c *treeCopier) own(path string) error {
	if c.owner.UID < 0 {
		return nil
	}
	return os.Lchown(path, c.owner.UID, c.owner.GID)
}

func (c *treeCopier) dir(src, dst string) error {
	info, err := os.Stat(src)
	if err != nil {
		return fmt.Errorf("copy folder: %w", err)
	}
	// Writable while it is filled; the real mode follows.
	if err := os.Mkdir(dst, 0o700); err != nil {
		return fmt.Errorf("copy folder: %w", err)
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		return fmt.Errorf("copy folder: %w", err)
	}
	for _, e := range entries {
		from, to := filepath.Join(src, e.Name()), filepath.Join(dst, e.Name())
		switch {
		case e.IsDir():
			err = c.dir(from, to)
		case e.Type()&os.ModeSymlink != 0:
			err = c.link(from, to)
		case e.Type().IsRegular():
			err = c.file(from, to)
		default:
			err = fmt.Errorf("copy folder: %s is a %v, only files, folders and links are copied", from, e.Type())
		}
		if err != nil {
			return err
		}
	}
	if err := os.Chmod(dst, info.Mode().Perm()); err != nil {
		return fmt.Errorf("copy folder: %w", err)
	}
	return c.own(dst)
}

func (c *treeCopier) link(src, dst string) error {
	target, err := os.Readlink(src)
	if err != nil {
		return fmt.Errorf("copy link: %w", err)
	}
	if err := os.Symlink(target, dst); err != nil {
		return fmt.Errorf("copy link: %w", err)
	}
	return c.own(dst)
}

// file copies with plain descriptors: a database is hundreds of small files, and the
// poller registration of os.File would cost as much as the copying.
func (c *treeCopier) file(src, dst string) error {
	in, err := unix.Open(src, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("copy file %s: %w", src, err)
	}
	defer unix.Close(in)
	var st unix.Stat_t
	if err := unix.Fstat(in, &st); err != nil {
		return fmt.Errorf("copy file %s: %w", src, err)
	}
	out, err := unix.Open(dst, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("copy file %s: %w", dst, err)
	}
	defer unix.Close(out)
	if err := c.content(in, out, st.Size); err != nil {
		return fmt.Errorf("copy file %s: %w", dst, err)
	}
	if err := unix.Fchmod(out, st.Mode&0o7777); err != nil {
		return fmt.Errorf("copy file %s: %w", dst, err)
	}
	if c.owner.UID >= 0 {
		if err := unix.Fchown(out, c.owner.UID, c.owner.GID); err != nil {
			return fmt.Errorf("copy file %s: %w", dst, err)
		}
	}
	return nil
}

func (c *treeCopier) content(in, out int, size int64) error {
	// A file system that can share blocks does so; all others refuse at once.
	if size > 1<<20 && unix.IoctlFileClone(out, in) == nil {
		return nil
	}
	for {
		n, err := unix.Read(in, c.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		for done := 0; done < n; {
			w, err := unix.Write(out, c.buf[done:n])
			if err != nil && err != unix.EINTR {
				return err
			}
			done += max(w, 0)
		}
	}
}
