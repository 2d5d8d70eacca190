package image

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sys"
)

// Init is where the first file system has this program, and Marker what tells it that it is
// process 1 of a machine.
const (
	Init   = "/init"
	Marker = "/pommel-machine"
	// ModulesDir is where the kernel's modules are, in the order of their names.
	ModulesDir = "/modules"
)

// BuildInitramfs makes the first file system of machines of a base: a program and the
// kernel's modules.
func BuildInitramfs(ctx context.Context, cache string, b *Base, program string) (path string, err error) {
	if err := static(program); err != nil {
		return "", err
	}
	sum, err := digest(program)
	if err != nil {
		return "", err
	}
	key, err := keyOf([]any{format, b.Key, sum})
	if err != nil {
		return "", err
	}
	entry, err := sys.Store{Dir: filepath.Join(cache, "initramfs"), Keep: keepBases}.Get(ctx, key, func(_ context.Context, folder string) error {
		f, err := os.Create(filepath.Join(folder, "initramfs"))
		if err != nil {
			return fmt.Errorf("make initramfs: %w", err)
		}
		defer f.Close()
		if err := writeInitramfs(f, b, program); err != nil {
			return fmt.Errorf("make initramfs: %w", err)
		}
		return f.Close()
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(entry.Path, "initramfs"), nil
}

// static says why a program cannot be process 1: there are no libraries beside it.
func static(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("look at the program: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fault.New(fault.Unsupported, "this program needs shared libraries, so it cannot run as process 1 of a machine").
				WithHint("build it with CGO_ENABLED=0, as make does")
		}
	}
	return nil
}

func writeInitramfs(w io.Writer, b *Base, program string) error {
	a := &archive{w: w}
	for _, dir := range []string{"dev", "proc", "sys", "root", "modules"} {
		a.add(dir, modeDir|0o755, nil)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	a.add(Init[1:], modeFile|0o755, text)
	a.add(Marker[1:], modeFile|0o444, nil)
	files, err := filepath.Glob(filepath.Join(b.Modules, "*.ko"))
	if err != nil {
		return err
	}
	sort.Strings(files)
	for _, f := range files {
		if text, err = os.ReadFile(f); err != nil {
			return err
		}
		a.add(ModulesDir[1:]+"/"+filepath.Base(f), modeFile|0o444, text)
	}
	a.add("TRAILER!!!", 0, nil)
	return a.err
}

// Modes of cpio's entries.
const (
	modeFile = 0o100000
	modeDir  = 0o040000
)

// archive writes the format "newc" of cpio, which is what kernels read (initramfs buffer
// format of the kernel's documentation). Owners are root, times are zero: the same files give
// the same bytes.
type archive struct {
	w     io.Writer
	inode int
	err   error
}

func (a *archive) add(name string, mode int, data []byte) {
	if a.err != nil {
		return
	}
	a.inode++
	var b bytes.Buffer
	fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	pad(&b, b.Len())
	b.Write(data)
	pad(&b, len(data))
	_, a.err = a.w.Write(b.Bytes())
}

// pad fills up to a multiple of four bytes.
func pad(b *bytes.Buffer, n int) { b.Write(make([]byte, -n&3)) }
