package sys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Store is a folder of things that are made once and named by what they are made from. Any
// number of processes may use it at once.
type Store struct {
	Dir string
	// Keep is how many entries stay when a new one is made; those used least recently go
	// first, those in use never.
	Keep int
}

// Entry is a folder of a store in use. It stays there until Close or the end of the process.
type Entry struct {
	Path string

	dir *os.File // holds a shared lock
}

// Close ends the use. The entry may then be removed to make room.
func (e *Entry) Close() error { return e.dir.Close() }

// Get returns the entry of a key, made first if need be: make fills a folder that exists.
// If it fails nothing is kept, and the next caller tries again.
func (s Store) Get(ctx context.Context, key string, make func(ctx context.Context, folder string) error) (*Entry, error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	final := filepath.Join(s.Dir, key)
	for {
		if e, err := use(final); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return e, err
		}
		if err := s.make(ctx, final, make); err != nil {
			return nil, err
		}
	}
}

// use takes an entry that is there. It may have been removed between its opening and its
// locking, so the path is looked at again.
func use(path string) (*Entry, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open store entry: %w", err)
	}
	var held, found unix.Stat_t
	err = errors.Join(unix.Flock(int(dir.Fd()), unix.LOCK_SH), unix.Fstat(int(dir.Fd()), &held))
	if err == nil {
		err = unix.Stat(path, &found)
	}
	if err == nil && found.Ino != held.Ino {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("use store entry: %w", err)
	}
	// The time of its last use; where it cannot be set the entry only seems older.
	now := time.Now()
	_ = os.Chtimes(path, now, now)
	return &Entry{Path: path, dir: dir}, nil
}

func (s Store) make(ctx context.Context, final string, make func(context.Context, string) error) error {
	release, err := Lock(ctx, final+".lock")
	if err != nil {
		return err
	}
	defer release()
	if _, err := os.Stat(final); err == nil {
		return nil // by somebody else meanwhile
	}
	part := final + ".part"
	if err := errors.Join(os.RemoveAll(part), os.Mkdir(part, 0o755)); err != nil {
		return fmt.Errorf("make store entry: %w", err)
	}
	defer os.RemoveAll(part)
	if err := make(ctx, part); err != nil {
		return err
	}
	if err := os.Rename(part, final); err != nil {
		return fmt.Errorf("make store entry: %w", err)
	}
	s.prune(final)
	return nil
}

// prune removes the entries that were used least recently. It is only tidying: what it
// cannot remove stays.
func (s Store) prune(spare string) {
	type old struct {
		path string
		used time.Time
	}
	var all []old
	entries, _ := os.ReadDir(s.Dir)
	for _, e := range entries {
		path := filepath.Join(s.Dir, e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() || path == spare || strings.Contains(e.Name(), ".") {
			continue
		}
		all = append(all, old{path, info.ModTime()})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].used.After(all[j].used) })
	for i, o := range all {
		if i >= s.Keep-1 {
			removeUnused(o.path)
		}
	}
}

func removeUnused(path string) {
	dir, err := os.Open(path)
	if err != nil {
		return
	}
	defer dir.Close()
	if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return // in use
	}
	// Renamed first, so that nobody finds half of it.
	gone := path + ".gone"
	if os.Rename(path, gone) == nil {
		_ = os.RemoveAll(gone)
	}
}
