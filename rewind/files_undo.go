package rewind

import (
	"os"
	"path/filepath"
	"sort"

	"github.com/pommelgym/pommel/internal/uapi"
)

// undo brings names and contents back to those of a state. from is the state since
// which changes were watched, nil if it is the same; where the two differ counts as touched.
func (s *fileStore) undo(r *Report, from, to map[string]*entry) error {
	if len(s.dirs) == 0 {
		return nil
	}
	if err := s.events(); err != nil {
		return err
	}
	if from != nil {
		s.differences(from, to)
	}
	if len(s.touch) == 0 {
		return nil
	}
	paths := make([]string, 0, len(s.touch))
	for p := range s.touch {
		paths = append(paths, p)
	}
	sort.Strings(paths) // folders come before what is in them
	more, err := s.removeNew(r, paths, to)
	if err != nil {
		return err
	}
	for _, p := range append(paths, more...) {
		if e := to[p]; e != nil {
			r.FilesTouched++
			if err := s.restore(p, e, to); err != nil {
				return err
			}
		}
	}
	r.FileBlocks += s.blocks
	s.blocks = 0
	// The changes made here were reported as well.
	if err := s.events(); err != nil {
		return err
	}
	clear(s.touch)
	return nil
}

func (s *fileStore) differences(from, to map[string]*entry) {
	for p, e := range from {
		if to[p] != e {
			s.touch[p] = true
		}
	}
	for p, e := range to {
		if from[p] != e {
			s.touch[p] = true
		}
	}
}

// removeNew removes names that did not exist. A folder that was renamed goes back. The
// old names of inodes that were met under new ones are answered: they may have been
// written to under the new one.
func (s *fileStore) removeNew(r *Report, paths []string, to map[string]*entry) (more []string, err error) {
	for _, p := range paths {
		if to[p] != nil {
			continue
		}
		var st uapi.Stat_t
		if uapi.Lstat(p, &st) != nil {
			continue
		}
		r.FilesTouched++
		if uapi.IsDir(st.Mode) {
			if old := s.folderOf(p, to); old != "" && old != p && uapi.Lstat(old, &st) != nil {
				if err := uapi.Rename(p, old); err != nil {
					return nil, fail(ReasonFile, "rename %s back to %s: %v", p, old, err)
				}
				continue
			}
		} else if id := (identity{st.Dev, st.Ino}); s.inodes[id] != nil {
			for q, e := range to {
				if e.id == id && !s.touch[q] {
					more = append(more, q)
				}
			}
		}
		if err := os.RemoveAll(p); err != nil {
			return nil, fail(ReasonFile, "remove %s: %v", p, err)
		}
	}
	return more, nil
}

// folderOf gives the path at which a folder was, by its handle.
func (s *fileStore) folderOf(p string, to map[string]*entry) string {
	h, err := uapi.NameToHandle(p)
	if err != nil {
		return ""
	}
	if old := s.known[h.Bytes]; to[old] != nil {
		return old
	}
	return ""
}

func (s *fileStore) restore(p string, e *entry, to map[string]*entry) error {
	var st uapi.Stat_t
	err := uapi.Lstat(p, &st)
	if e.inode == nil {
		return s.restoreFolder(p, e, err != nil || !uapi.IsDir(st.Mode), to)
	}
	if err != nil || (identity{st.Dev, st.Ino}) != e.id {
		if err == nil {
			_ = os.RemoveAll(p)
		}
		if err := uapi.Link(e.inode.link, p); err != nil {
			return fail(ReasonFile, "put %s back: %v", p, err)
		}
		if err := uapi.Lstat(p, &st); err != nil {
			return fail(ReasonFile, "look at %s: %v", p, err)
		}
	}
	if e.content != nil {
		if err := s.restoreContent(e); err != nil {
			return err
		}
	}
	return restoreAttributes(p, e, &st)
}

func restoreAttributes(p string, e *entry, st *uapi.Stat_t) error {
	if st.Uid != e.uid || st.Gid != e.gid {
		if err := uapi.Chown(p, e.uid, e.gid); err != nil {
			return fail(ReasonFile, "give %s back to its owner: %v", p, err)
		}
	}
	if st.Mode != e.mode && !uapi.IsSymlink(e.mode) {
		if err := uapi.Chmod(p, e.mode); err != nil {
			return fail(ReasonFile, "set the mode of %s: %v", p, err)
		}
	}
	if err := uapi.SetTimes(p, e.mtime, e.mtime); err != nil {
		return fail(ReasonFile, "set the times of %s: %v", p, err)
	}
	return nil
}

// restoreFolder makes a folder again that was removed, with all that was in it.
func (s *fileStore) restoreFolder(p string, e *entry, gone bool, to map[string]*entry) error {
	if gone {
		_ = os.RemoveAll(p)
		if err := uapi.Mkdir(p, 0o700); err != nil {
			return fail(ReasonFile, "make folder %s again: %v", p, err)
		}
		if err := s.learn(p); err != nil {
			return err
		}
	}
	var st uapi.Stat_t
	if err := uapi.Lstat(p, &st); err != nil {
		return fail(ReasonFile, "look at %s: %v", p, err)
	}
	if gone {
		var inside []string
		for q := range to {
			if filepath.Dir(q) == p && !s.touch[q] {
				inside = append(inside, q)
			}
		}
		for _, q := range inside {
			if err := s.restore(q, to[q], to); err != nil {
				return err
			}
		}
	}
	return restoreAttributes(p, e, &st)
}

// restoreContent writes back the blocks of a file that differ.
func (s *fileStore) restoreContent(e *entry) error {
	if err := e.inode.open(); err != nil {
		return err
	}
	c := e.content
	c.o = e.inode.obj
	if err := c.prepare(); err != nil {
		return err
	}
	c.o.full = false
	s.blocks += c.compareBlocks(s.arena)
	e.inode.last = c
	return nil
}
