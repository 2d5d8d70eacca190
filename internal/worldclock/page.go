package worldclock

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

// PageSize is the size of the file behind a page.
const PageSize = 4096

// nanoBits is the width of the part below the second. With the seconds above it an instant
// is one word: it is read with one load, and never half of it.
const nanoBits = 30

// lastSecond is the last that fits, in the year 2514.
const lastSecond = 1<<(64-nanoBits) - 1

// Page is the memory in which the instant of a world stands.
type Page struct {
	mem  []byte
	word *atomic.Uint64
}

// OpenPage maps the file of a page, which is as long as PageSize. The file may be closed after.
func OpenPage(f *os.File, write bool) (*Page, error) {
	mem, err := uapi.MapShared(int(f.Fd()), PageSize, write)
	if err != nil {
		return nil, fmt.Errorf("map clock page: %w", err)
	}
	return &Page{mem: mem, word: &uapi.View[atomic.Uint64](mem, 1)[0]}, nil
}

// CreatePage makes the file of a page, which everybody may read and only root may write.
func CreatePage(path string, at time.Time) (_ *os.File, err error) {
	word, err := pack(at)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make clock page: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(path)
		}
	}()
	if err := f.Truncate(PageSize); err != nil {
		return nil, fmt.Errorf("make clock page: %w", err)
	}
	if err := f.Chmod(0o444); err != nil {
		return nil, fmt.Errorf("make clock page: %w", err)
	}
	p, err := OpenPage(f, true)
	if err != nil {
		return nil, err
	}
	p.word.Store(word)
	return f, p.Close()
}

// Now is the instant that the world's programs read.
func (p *Page) Now() time.Time { return unpack(p.word.Load()) }

// Set puts another instant in place, at once for every program of the world.
func (p *Page) Set(at time.Time) error {
	word, err := pack(at)
	if err == nil {
		p.word.Store(word)
	}
	return err
}

// Close unmaps the page on this side.
func (p *Page) Close() error {
	if p.mem == nil {
		return nil
	}
	mem := p.mem
	p.mem, p.word = nil, nil
	return uapi.Unmap(mem)
}

func pack(at time.Time) (uint64, error) {
	s := at.Unix()
	if s < 0 || s > lastSecond {
		return 0, fmt.Errorf("the instant %v is out of a world clock's range, 1970 to 2514", at)
	}
	return uint64(s)<<nanoBits | uint64(at.Nanosecond()), nil
}

func unpack(word uint64) time.Time {
	return time.Unix(int64(word>>nanoBits), int64(word&(1<<nanoBits-1))).UTC()
}
