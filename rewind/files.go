package rewind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/uapi"
)

// fileStore looks after the folders of a tree. Every inode that a snapshot knows has a
// hard link in a hidden folder: whatever is renamed or unlinked in an episode, its very
// inode can be put back, so that descriptors that are open on it stay right. What is
// touched is told by fanotify.
type fileStore struct {
	dirs   []storedDir
	inodes map[identity]*storedInode
	known  map[string]string // folder handle -> path
	arena  *arena
	buf    []byte
	touch  map[string]bool
	seq    int
	blocks int
}

type storedDir struct {
	path, hidden string
	dev          uint64
	watch        int
}

// storedInode is an inode with its hidden link. The object is its content, opened when first needed.
type storedInode struct {
	id   identity
	link string
	obj  *object
	refs int
	last *objectState // the newest saved content, with which a newer one shares what is equal
}

// entry is what a snapshot keeps of one name.
type entry struct {
	id       identity
	mode     uint32
	uid, gid uint32
	mtime    uapi.Timespec
	inode    *storedInode // nil for folders
	content  *objectState // nil for what is no regular file
}

func newFileStore(dirs []string) (*fileStore, error) {
	s := &fileStore{inodes: map[identity]*storedInode{}, known: map[string]string{}, touch: map[string]bool{}, buf: make([]byte, 256<<10)}
	for _, d := range dirs {
		if err := s.addDir(d); err != nil {
			s.close()
			return nil, err
		}
	}
	if len(dirs) > 0 {
		a, err := newArena("saved-files")
		if err != nil {
			s.close()
			return nil, err
		}
		s.arena = a
	}
	return s, nil
}

func (s *fileStore) addDir(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fail(ReasonFile, "%v", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return fail(ReasonFile, "%v", err)
	}
	magic, err := uapi.FsMagic(path)
	if err != nil {
		return fail(ReasonFile, "look at %s: %v", path, err)
	}
	if magic != uapi.TmpfsMagic {
		return fail(ReasonFile, "%s lies on no tmpfs", path)
	}
	var st, up uapi.Stat_t
	if err := uapi.Lstat(path, &st); err != nil {
		return fail(ReasonFile, "look at %s: %v", path, err)
	}
	place := path
	if err := uapi.Lstat(filepath.Dir(path), &up); err == nil && up.Dev == st.Dev {
		place = filepath.Dir(path)
	}
	hidden, err := os.MkdirTemp(place, ".rewind-")
	if err != nil {
		return fail(ReasonFile, "make the hidden folder: %v", err)
	}
	d := storedDir{path: path, hidden: hidden, dev: st.Dev, watch: -1}
	for _, o := range s.dirs {
		if o.dev == st.Dev {
			d.watch = -2 // one watch serves a whole file system
		}
	}
	if d.watch == -1 {
		if d.watch, err = uapi.FanotifyOpen(path); err != nil {
			_ = os.RemoveAll(hidden)
			return fail(ReasonKernel, "watch the file system of %s: %v", path, err)
		}
	}
	s.dirs = append(s.dirs, d)
	return nil
}

func (s *fileStore) close() {
	for _, in := range s.inodes {
		if in.obj != nil {
			in.obj.close()
		}
	}
	for _, d := range s.dirs {
		if d.watch >= 0 {
			uapi.Close(d.watch)
		}
		_ = os.RemoveAll(d.hidden)
	}
	s.arena.close()
	s.dirs, s.inodes = nil, nil
}

// covers says whether a name, as a descriptor shows it, is one that the store puts back.
func (s *fileStore) covers(link string) bool {
	return s.dirOf(link) != nil && !strings.HasSuffix(link, " (deleted)")
}

func (s *fileStore) dirOf(path string) *storedDir {
	for i := range s.dirs {
		if d := &s.dirs[i]; path == d.path || strings.HasPrefix(path, d.path+"/") {
			return d
		}
	}
	return nil
}

// capture saves the folders. prev, if given, is the state since which changes were
// watched: only what was touched is read again.
// Files that are also mapped count as touched: nothing tells of a store through a mapping.
func (s *fileStore) capture(prev map[string]*entry, mapped func(identity) bool) (map[string]*entry, error) {
	if len(s.dirs) == 0 {
		return nil, nil
	}
	if prev == nil {
		if err := s.events(); err != nil {
			return nil, err
		}
		clear(s.touch)
		out := map[string]*entry{}
		for i := range s.dirs {
			if err := s.captureTree(s.dirs[i].path, out, nil); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return s.captureTouched(prev, mapped)
}

func (s *fileStore) captureTouched(prev map[string]*entry, mapped func(identity) bool) (map[string]*entry, error) {
	if err := s.events(); err != nil {
		return nil, err
	}
	for p, e := range prev {
		if e.content != nil && mapped(e.id) {
			s.touch[p] = true
		}
	}
	out := make(map[string]*entry, len(prev))
	for p, e := range prev {
		if !s.touchedUnder(p) {
			e.hold(s)
			out[p] = e
		}
	}
	for p := range s.touch {
		if err := s.captureTree(p, out, prev); err != nil {
			return nil, err
		}
	}
	clear(s.touch)
	return out, nil
}

// touchedUnder says whether a path or a folder above it was touched.
func (s *fileStore) touchedUnder(p string) bool {
	for q := p; len(q) > 1; q = filepath.Dir(q) {
		if s.touch[q] {
			return true
		}
	}
	return false
}

func (s *fileStore) hiddenPath(path string) bool {
	for i := range s.dirs {
		if h := s.dirs[i].hidden; path == h || strings.HasPrefix(path, h+"/") {
			return true
		}
	}
	return false
}

// captureTree saves what is at a path and below. What is as it was in prev is shared with that: a
// rewind looks at everything in which two states differ.
func (s *fileStore) captureTree(root string, out, prev map[string]*entry) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fail(ReasonFile, "%v", err)
		case s.hiddenPath(path):
			return filepath.SkipDir
		}
		if out[path] != nil {
			return nil
		}
		old := prev[path]
		e, err := s.captureEntry(path, old)
		if err != nil {
			return err
		}
		if old != nil && old.same(e) {
			old.hold(s)
			s.releaseEntry(e)
			e = old
			if e.inode != nil {
				e.inode.last = e.content
			}
		}
		out[path] = e
		return nil
	})
}

func (e *entry) same(o *entry) bool {
	if e.id != o.id || e.mode != o.mode || e.uid != o.uid || e.gid != o.gid || e.mtime != o.mtime || e.inode != o.inode {
		return false
	}
	if e.content == nil || o.content == nil {
		return e.content == o.content
	}
	return e.content.size == o.content.size && slices.Equal(e.content.pages, o.content.pages)
}

func (s *fileStore) captureEntry(path string, old *entry) (*entry, error) {
	var st uapi.Stat_t
	if err := uapi.Lstat(path, &st); err != nil {
		return nil, fail(ReasonFile, "look at %s: %v", path, err)
	}
	e := &entry{id: identity{st.Dev, st.Ino}, mode: st.Mode, uid: st.Uid, gid: st.Gid, mtime: st.Mtim}
	if uapi.IsDir(st.Mode) {
		return e, s.learn(path)
	}
	in := s.inodes[e.id]
	if in == nil {
		d := s.dirOf(path)
		if d == nil {
			return nil, fail(ReasonFile, "%s lies in none of the tree's folders", path)
		}
		s.seq++
		in = &storedInode{id: e.id, link: fmt.Sprintf("%s/%d", d.hidden, s.seq)}
		if err := uapi.Link(path, in.link); err != nil {
			return nil, fail(ReasonFile, "keep the inode of %s: %v", path, err)
		}
		s.inodes[e.id] = in
	}
	in.refs++
	e.inode = in
	if !uapi.IsRegular(st.Mode) {
		return e, nil
	}
	if err := in.open(); err != nil {
		return nil, err
	}
	like := in.last
	if like == nil && old != nil && old.inode == in {
		like = old.content
	}
	var err error
	e.content, err = in.obj.capture(s.arena, like)
	in.last = e.content
	in.rest()
	return e, err
}

// learn remembers under which handle events will name a folder.
func (s *fileStore) learn(path string) error {
	h, err := uapi.NameToHandle(path)
	if err != nil {
		return fail(ReasonFile, "take the handle of folder %s: %v", path, err)
	}
	s.known[h.Bytes] = path
	return nil
}

// hold counts one more snapshot that uses an entry's content.
func (e *entry) hold(s *fileStore) {
	if e.inode != nil {
		e.inode.refs++
	}
	if e.content != nil {
		for _, p := range e.content.pages {
			if p != 0 {
				s.arena.hold(pageRun{p - 1, 1}, 1)
			}
		}
	}
}

// release takes a snapshot's entries back.
func (s *fileStore) release(files map[string]*entry) {
	for _, e := range files {
		s.releaseEntry(e)
	}
}

func (s *fileStore) releaseEntry(e *entry) {
	if e.content != nil {
		for _, p := range e.content.pages {
			if p != 0 {
				s.arena.release(pageRun{p - 1, 1})
			}
		}
	}
	in := e.inode
	if in == nil {
		return
	}
	if in.last == e.content {
		in.last = nil
	}
	if in.refs--; in.refs == 0 {
		if in.obj != nil {
			in.obj.close()
		}
		_ = uapi.Unlink(in.link)
		delete(s.inodes, in.id)
	}
}

func (in *storedInode) open() error {
	if in.obj != nil {
		return nil
	}
	fd, err := uapi.Open(in.link, uapi.ORdwr|uapi.ONofollow)
	if err != nil {
		return fail(ReasonFile, "open a kept inode: %v", err)
	}
	in.obj = &object{id: in.id, name: in.link, fd: fd}
	return nil
}

// rest closes what opening a kept inode took; thousands of files must not stay open.
func (in *storedInode) rest() {
	if in.obj != nil {
		in.obj.close()
		in.obj = nil
	}
}

// events reads what fanotify has to tell into the set of touched paths.
func (s *fileStore) events() error {
	for i := range s.dirs {
		if s.dirs[i].watch < 0 {
			continue
		}
		for {
			n, err := uapi.Read(s.dirs[i].watch, s.buf)
			if err != nil || n <= 0 {
				break
			}
			if err := s.note(s.buf[:n]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *fileStore) note(b []byte) error {
	for {
		ev, rest, ok := uapi.FanotifyNext(b)
		if !ok {
			return nil
		}
		b = rest
		if ev.Mask&uapi.FanQOverflow != 0 {
			return fail(ReasonEventsLost, "the queue of file events ran over")
		}
		if !ev.Parsed {
			continue
		}
		dir, ok := s.known[string(ev.Dir)]
		if !ok || s.dirOf(dir) == nil {
			continue
		}
		path := dir
		if len(ev.Name) > 0 && string(ev.Name) != "." {
			path = dir + "/" + string(ev.Name)
		}
		if !s.touch[path] && !s.hiddenPath(path) {
			s.touch[path] = true
		}
	}
}
